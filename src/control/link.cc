// SPDX-License-Identifier: Apache-2.0
#include "control/link.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "control/allocations.h"
#include "control/centre.h"
#include "control/meetings.h"

namespace hocket::control {

SocketLink::SocketLink(ServiceUse use, int rank, std::optional<MeetingId> hosted, Admission admission)
    : use_(std::move(use)),
      rank_(rank),
      hosted_(hosted),
      memory_(std::move(admission.memory)),
      line_(std::move(admission.line)) {
  for (const Member& member : line_->members()) ranks_.push_back(member.info);
}

SocketLink::~SocketLink() {
  if (!use_.in_this_process()) {
    // In a fork()ed child: the line is the parent's, and closing it properly would say so to the kernel.
    static_cast<void>(line_.release());
    return;
  }
  use_->run([this] {
    // Rank 0 tells directly, not through its socket: the process may end before the thread would hear that.
    line_->leave(!hosted_);
    if (hosted_) {
      if (Centre* const centre = use_->meetings().find(*hosted_)) centre->host_leaves();
    }
    line_.reset();
  });
}

void SocketLink::start(ControlEvents* events) {
  use_->post([line = line_.get(), events] { line->start(events); });
}

void SocketLink::report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int waited_ms) {
  use_->post([line = line_.get(), sequence, awaited, waited_ms] { line->report_stall(sequence, awaited, waited_ms); });
}

void SocketLink::report_mismatch(std::uint64_t sequence, const Error& fallback) {
  use_->post([line = line_.get(), sequence, fallback] { line->report_mismatch(sequence, fallback); });
}

void SocketLink::broadcast_failure(const Error& error) {
  use_->post([line = line_.get(), error] { line->broadcast_failure(error); });
}

Result<UniqueFd> SocketLink::fetch_allocation(int rank, std::uint64_t allocation, int timeout_ms) {
  if (rank == rank_) {
    UniqueFd memory = look_up_allocation(allocation);
    if (memory) return memory;
    return fail(hocketInvalidArgument, "this process has no allocation {} (freed?)", allocation);
  }
  // Shared by the waiting caller and the control thread: whichever is later frees it.
  struct Reply {
    std::mutex mutex;
    std::condition_variable changed;
    std::optional<Result<UniqueFd>> memory;
  };
  const auto reply = std::make_shared<Reply>();
  const std::uint32_t number = next_fetch_.fetch_add(1, std::memory_order_relaxed);  // a unique number, orders nothing
  use_->post([line = line_.get(), rank, allocation, number, reply] {
    line->fetch(rank, allocation, number, [reply](Result<UniqueFd> memory) {
      const std::lock_guard lock(reply->mutex);
      reply->memory.emplace(std::move(memory));
      reply->changed.notify_one();
    });
  });
  std::unique_lock lock(reply->mutex);
  if (reply->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] { return reply->memory.has_value(); })) {
    return std::move(*reply->memory);
  }
  lock.unlock();
  use_->post([line = line_.get(), number] { line->forget_fetch(number); });
  return fail(hocketErrorTimeout, "{} did not pass the memory of its allocation {} within {} ms (stopped?)",
              rank >= 0 && rank < static_cast<int>(ranks_.size()) ? ranks_[static_cast<std::size_t>(rank)].text() : "an unknown rank",
              allocation, timeout_ms);
}

}  // namespace hocket::control
