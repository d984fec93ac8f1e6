// SPDX-License-Identifier: Apache-2.0
// How a rank that sleeps is woken: by the peer that publishes or frees a slot for it. The peer pays one load of a shared
// line when nobody sleeps (docs/concepts/waiting.md).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/ring.h"

namespace hocket {

// How many ranks of the communicator are asleep: the one line that a producer looks at after each transfer.
struct alignas(kCacheLine) SleeperCount {
  std::atomic<std::uint32_t> count;
};

// One per rank: 1 while the rank sleeps on it (a futex).
struct alignas(kCacheLine) BellLine {
  std::atomic<std::uint32_t> armed;
};

// The sleepers of a communicator, as one rank sees them.
class Doorbells {
 public:
  Doorbells() = default;
  // `crowded`: ranks outnumber the CPUs they may use; then sleeping is common and the ringing side pays the fence.
  Doorbells(SleeperCount* sleepers, BellLine* bells, int rank, int n_ranks, bool crowded);

  // By the thread that rings and sleeps; wake_self() may be called by others at the same time.
  void set_crowded(bool crowded) { crowded_ = crowded; }

  // After publishing or freeing something: wakes whoever sleeps. Almost always one load.
  void ring() {
    if (sleepers_ == nullptr) return;
    // The store that was just made is visible before we look for sleepers. Where ranks have a CPU each, the sleeper forces
    // this order from its side (membarrier), and the common path needs no fence.
    if (crowded_) std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers_->count.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake_sleepers();
  }

  // Sleeps until rung, or `limit` has passed. `ready` is asked once after the bell is armed.
  template <class Ready>
  void sleep(std::chrono::microseconds limit, Ready&& ready) {
    arm();
    if (!ready()) block(limit);
    disarm();
  }

  void wake_self() { wake(rank_); }

 private:
  void arm();
  void disarm();
  void block(std::chrono::microseconds limit);
  void wake_sleepers();
  void wake(int rank);

  SleeperCount* sleepers_ = nullptr;
  BellLine* bells_ = nullptr;  // one per rank
  int rank_ = 0;
  int n_ranks_ = 1;
  bool crowded_ = false;
};

// Registers this process for membarrier, once. Where the kernel has none, sleeps are short instead.
void register_for_membarrier();

}  // namespace hocket
