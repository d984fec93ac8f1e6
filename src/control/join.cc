// SPDX-License-Identifier: Apache-2.0
// How a communicator enters the control plane: make_unique_id(), end_meeting() and join().
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "control/auth.h"
#include "control/joiner.h"
#include "control/link.h"
#include "control/meetings.h"
#include "control/shared_memory.h"

namespace hocket {
namespace control {
namespace {

Status check(const JoinOptions& options) {
  if (options.n_ranks < 1 || options.n_ranks > kMaxRanks) {
    return fail(hocketInvalidArgument, "init: n_ranks is {}; it is 1 to {}", options.n_ranks, kMaxRanks);
  }
  if (options.rank < 0 || options.rank >= options.n_ranks) {
    return fail(hocketInvalidArgument, "init: rank is {} of {}; it is 0 to n_ranks - 1", options.rank, options.n_ranks);
  }
  if (options.timeout_ms < 0) {
    return fail(hocketInvalidArgument, "init: the time limit is {} ms; it is 0 (none) or more", options.timeout_ms);
  }
  if (options.settings.size() > kMaxSettingsBytes) {
    return fail(hocketInvalidArgument, "init: {} bytes of settings are more than {}", options.settings.size(), kMaxSettingsBytes);
  }
  return {};
}

bool is_cancelled(const JoinOptions& options) {
  // Relaxed: a flag alone, nothing is published with it.
  return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
}

// Waits for the control thread; does for it what takes long, and passes on an abort.
Result<Admission> wait_for_admission(const ServiceUse& use, const JoinOptions& options, Joiner& joiner, JoinProgress& progress) {
  constexpr std::chrono::milliseconds kCancelPoll{20};
  std::unique_lock lock(progress.mutex);
  const auto news = [&] { return progress.result.has_value() || progress.memory_wanted; };
  for (;;) {
    if (options.cancel == nullptr) {
      progress.changed.wait(lock, news);
    } else {
      progress.changed.wait_for(lock, kCancelPoll, news);
    }
    if (progress.result) return std::move(*progress.result);
    const bool memory_wanted = std::exchange(progress.memory_wanted, false);
    if (!memory_wanted && !is_cancelled(options)) continue;
    lock.unlock();
    if (memory_wanted) {
      const Result<UniqueFd> memory = reserve_shared_memory(options.shared_bytes, options.cancel);
      use->run([&] { joiner.memory_made(memory); });
    }
    if (is_cancelled(options)) use->run([&] { joiner.cancel(); });
    lock.lock();
  }
}

}  // namespace

Result<std::unique_ptr<ControlLink>> join_as(const JoinOptions& options, std::uint32_t version) {
  HOCKET_TRY(check(options));
  auto place = decode(options.id);
  if (!place) return tl::make_unexpected(std::move(place).error());
  auto use = ServiceUse::start();
  if (!use) return tl::make_unexpected(std::move(use).error());

  JoinProgress progress;
  std::unique_ptr<Joiner> joiner;
  (*use)->run([&] {
    joiner = std::make_unique<Joiner>(use->again(), options, *place, version, progress);
    joiner->begin();
  });
  auto admission = wait_for_admission(*use, options, *joiner, progress);
  (*use)->run([&] { joiner.reset(); });
  if (!admission) return tl::make_unexpected(std::move(admission).error());
  const auto hosted = options.rank == 0 ? std::optional(place->meeting) : std::nullopt;
  return std::make_unique<SocketLink>(std::move(*use), options.rank, hosted, std::move(*admission));
}

}  // namespace control

Result<hocketUniqueId> make_unique_id() {
  auto use = control::ServiceUse::start();
  if (!use) return tl::make_unexpected(std::move(use).error());
  control::MeetingPlace place;
  control::fill_random(place.meeting);
  control::fill_random(place.secret);
  Status opened;
  (*use)->run([&] {
    auto centre = (*use)->meetings().open(use->again(), place);
    if (!centre) opened = tl::make_unexpected(std::move(centre).error());
  });
  HOCKET_TRY(opened);
  return control::encode(place);
}

Status end_meeting(const hocketUniqueId& id) {
  const auto place = control::decode(id);
  if (!place) return tl::make_unexpected(place.error());
  auto use = control::ServiceUse::start();
  if (!use) return tl::make_unexpected(std::move(use).error());
  (*use)->run([&] {
    control::Centre* const centre = (*use)->meetings().find(place->meeting);
    if (centre != nullptr && !centre->is_hosted()) {
      centre->fail_init({hocketRemoteError, "the process that made the unique id ended its meeting"});
    }
  });
  return {};
}

Result<std::unique_ptr<ControlLink>> join(const JoinOptions& options) {
  return control::join_as(options, HOCKET_VERSION_CODE);
}

}  // namespace hocket
