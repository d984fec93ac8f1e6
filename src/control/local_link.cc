// SPDX-License-Identifier: Apache-2.0
// join_locally(): all ranks are in this process, so the control plane is one object that the links share. The same inquiries
// and the same events as through sockets, on the same thread, but nothing is sent.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "control/allocations.h"
#include "control/inquiry_desk.h"
#include "control/line.h"
#include "control/message.h"
#include "control/process.h"
#include "control/service.h"

namespace hocket {
namespace control {
namespace {

// Lives on the control thread but for what says otherwise.
class LocalGroup final : private InquiryDesk::Floor {
 public:
  LocalGroup(Service& service, std::vector<RankInfo> ranks)
      : ranks_(std::move(ranks)),
        desk_(service, static_cast<InquiryDesk::Floor&>(*this), ranks_),
        events_(ranks_.size()),
        left_(std::make_unique<std::atomic<bool>[]>(ranks_.size())) {}

  const std::vector<RankInfo>& ranks() const { return ranks_; }  // any thread

  void start(int rank, ControlEvents* events) {
    events_[static_cast<std::size_t>(rank)] = events;
    if (failure_ && failing_rank_ != rank) events->failed(*failure_);
  }
  void question(Question question) {
    if (failure_ && !question.fallback) {
      if (ControlEvents* const events = events_of(question.reporter)) events->failed(*failure_);
      return;
    }
    desk_.question(std::move(question));
  }
  void fail_others(int rank, const Error& error) {
    if (failure_) return;  // everyone has been told about an earlier one, which wins
    failure_ = error;
    failing_rank_ = rank;
    for (int other = 0; other < static_cast<int>(ranks_.size()); ++other) {
      if (ControlEvents* const events = events_of(other); events != nullptr && other != rank) events->failed(error);
    }
  }
  void leave(int rank) {
    events_[static_cast<std::size_t>(rank)] = nullptr;
    // Relaxed: a flag alone, nothing is published with it.
    left_[static_cast<std::size_t>(rank)].store(true, std::memory_order_relaxed);
    desk_.gone(rank, Presence::left);
  }
  bool has_left(int rank) const {  // any thread
    return rank >= 0 && rank < static_cast<int>(ranks_.size()) &&
           left_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
  }

 private:
  ControlEvents* events_of(int rank) const { return events_[static_cast<std::size_t>(rank)]; }

  void ask(int rank, const Query& query) override {
    desk_.answer(rank, {query.number, state(events_of(rank), query.sequence)});
  }
  void fail_everyone(const Error& error) override { fail_others(-1, error); }
  void explain(int rank, const Explained& explained) override {
    if (ControlEvents* const events = events_of(rank)) events->stall_explained(explained.sequence, explained.text);
  }

  const std::vector<RankInfo> ranks_;
  InquiryDesk desk_;
  std::vector<ControlEvents*> events_;
  std::optional<Error> failure_;
  int failing_rank_ = -1;
  const std::unique_ptr<std::atomic<bool>[]> left_;
};

class LocalLink final : public ControlLink {
 public:
  // Shared by all links of the group; the last one to leave frees it.
  LocalLink(ServiceUse use, std::shared_ptr<LocalGroup> group, int rank)
      : use_(std::move(use)), group_(std::move(group)), rank_(rank) {}
  ~LocalLink() override {
    if (!use_.in_this_process()) return;
    use_->run([this] {
      group_->leave(rank_);
      group_.reset();
    });
  }

  const std::vector<RankInfo>& ranks() const override { return group_->ranks(); }
  UniqueFd take_shared_memory() override { return UniqueFd(); }
  void start(ControlEvents* events) override {
    use_->post([group = group_, rank = rank_, events] { group->start(rank, events); });
  }
  void report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int) override {
    Question question{rank_, sequence, {awaited.begin(), awaited.end()}, std::nullopt};
    use_->post([group = group_, question = std::move(question)] { group->question(question); });
  }
  void report_mismatch(std::uint64_t sequence, const Error& fallback) override {
    use_->post([group = group_, question = Question{rank_, sequence, {}, fallback}] { group->question(question); });
  }
  void broadcast_failure(const Error& error) override {
    use_->post([group = group_, rank = rank_, error] { group->fail_others(rank, error); });
  }
  Result<UniqueFd> fetch_allocation(int, std::uint64_t allocation, int) override {
    UniqueFd memory = look_up_allocation(allocation);
    if (memory) return memory;
    return fail(hocketInvalidArgument, "this process has no allocation {} (freed?)", allocation);
  }
  bool has_left(int rank) const override { return group_->has_left(rank); }

 private:
  ServiceUse use_;
  std::shared_ptr<LocalGroup> group_;
  const int rank_;
};

}  // namespace
}  // namespace control

Result<std::vector<std::unique_ptr<ControlLink>>> join_locally(int n_ranks) {
  if (n_ranks < 1 || n_ranks > control::kMaxRanks) {
    return fail(hocketInvalidArgument, "init: n_ranks is {}; it is 1 to {}", n_ranks, control::kMaxRanks);
  }
  auto use = control::ServiceUse::start();
  if (!use) return tl::make_unexpected(std::move(use).error());
  std::vector<RankInfo> ranks(static_cast<std::size_t>(n_ranks), control::describe_this_process(0).info);
  for (int rank = 0; rank < n_ranks; ++rank) ranks[static_cast<std::size_t>(rank)].rank = rank;
  const auto group = std::make_shared<control::LocalGroup>(**use, std::move(ranks));
  std::vector<std::unique_ptr<ControlLink>> links;
  for (int rank = 0; rank < n_ranks; ++rank) {
    links.push_back(std::make_unique<control::LocalLink>(use->again(), group, rank));
  }
  return links;
}

}  // namespace hocket
