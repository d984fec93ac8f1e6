// SPDX-License-Identifier: Apache-2.0
#include "base/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace hocket {
namespace {

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

// Not FUTEX_PRIVATE_FLAG: the word is in memory shared between processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::chrono::microseconds limit) {
  timespec time{};
  time.tv_sec = limit.count() / 1000000;
  time.tv_nsec = limit.count() % 1000000 * 1000;
  ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, &time, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

int membarrier(int command) { return static_cast<int>(::syscall(SYS_membarrier, command, 0, 0)); }

bool membarrier_works() {
  static const bool works = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
  return works;
}

}  // namespace

void register_for_membarrier() { membarrier_works(); }

Doorbells::Doorbells(SleeperCount* sleepers, BellLine* bells, int rank, int n_ranks, bool crowded)
    : sleepers_(sleepers), bells_(bells), rank_(rank), n_ranks_(n_ranks), crowded_(crowded) {}

void Doorbells::arm() {
  bells_[rank_].armed.store(1, std::memory_order_relaxed);
  sleepers_->count.fetch_add(1, std::memory_order_seq_cst);
  // The bell is visible before `ready` looks again. Pairs with: ring(), which publishes first and looks at the bell then.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!crowded_ && membarrier_works()) membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

void Doorbells::disarm() {
  sleepers_->count.fetch_sub(1, std::memory_order_seq_cst);
  bells_[rank_].armed.store(0, std::memory_order_relaxed);
}

void Doorbells::block(std::chrono::microseconds limit) {
  // Without membarrier a wake-up can be missed when the ringing side has a CPU to itself: look again soon.
  if (!crowded_ && !membarrier_works()) limit = std::min(limit, std::chrono::microseconds(500));
  futex_wait(bells_[rank_].armed, 1, limit);
}

void Doorbells::wake_sleepers() {
  for (int rank = 0; rank < n_ranks_; ++rank)
    if (rank != rank_) wake(rank);
}

void Doorbells::wake(int rank) {
  if (bells_ == nullptr) return;
  auto& bell = bells_[rank].armed;
  if (bell.load(std::memory_order_relaxed) == 1 && bell.exchange(0, std::memory_order_seq_cst) == 1) futex_wake(bell);
}

}  // namespace hocket
