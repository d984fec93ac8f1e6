// SPDX-License-Identifier: Apache-2.0
// Waiting as one policy: spin, yield, sleep. A rank that sleeps is woken by the peer that publishes or frees a slot for it;
// the peer pays one load of a shared line when nobody sleeps (docs/concepts/waiting.md).
#pragma once

#include <chrono>
#include <cstdint>

#include "base/doorbell.h"
#include "base/error.h"

namespace hocket {

inline void cpu_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What a wait may end with besides success; owned by the communicator.
class WaitMonitor {
 public:
  virtual ~WaitMonitor() = default;
  // Called now and then during a wait, never in the first microseconds; `waited` since the last progress. An error ends
  // the wait.
  virtual Status check(std::chrono::steady_clock::duration waited) = 0;
};

struct WaitPolicy {
  std::chrono::microseconds spin{10};
  std::chrono::microseconds sleep_after{1000};
  bool crowded = false;
};

// One wait. Call pause() after every pass without progress, progressed() after one with.
class Waiter {
 public:
  Waiter(const WaitPolicy& policy, Doorbells& bells, WaitMonitor& monitor)
      : policy_(policy), bells_(bells), monitor_(monitor), free_passes_(policy.crowded ? 2 : kSpinPasses) {}

  void progressed() {
    passes_ = 0;
    started_ = {};
  }

  // `ready()`: would the next pass make progress?
  template <class Ready>
  Status pause(Ready&& ready) {
    if (++passes_ < free_passes_) {
      if (passes_ > kEagerPasses) cpu_pause();
      return {};
    }
    return pause_longer(ready);
  }

 private:
  static constexpr std::uint32_t kEagerPasses = 64;
  static constexpr std::uint32_t kSpinPasses = 200;   // then look at the clock every kPassesPerLook
  static constexpr std::uint32_t kPassesPerLook = 32;

  template <class Ready>
  Status pause_longer(Ready&& ready) {
    if (!policy_.crowded && passes_ % kPassesPerLook != 0 && !yielding_) {
      cpu_pause();
      return {};
    }
    const auto now = std::chrono::steady_clock::now();
    if (started_ == std::chrono::steady_clock::time_point{}) {
      started_ = now;
      yielding_ = false;
    }
    const auto waited = now - started_;
    if (waited > policy_.sleep_after) {
      HOCKET_TRY(monitor_.check(waited));
      bells_.sleep(kLongestSleep, ready);
    } else {
      if (waited > policy_.sleep_after / 4) HOCKET_TRY(monitor_.check(waited));
      yielding_ = policy_.crowded || waited > policy_.spin;
      if (yielding_) yield();
    }
    return {};
  }
  static void yield();

  // Bounds how late a cancelled or timed-out wait notices, should a wake-up be missed.
  static constexpr std::chrono::microseconds kLongestSleep{50000};

  const WaitPolicy& policy_;
  Doorbells& bells_;
  WaitMonitor& monitor_;
  std::uint32_t free_passes_;
  std::uint32_t passes_ = 0;
  bool yielding_ = false;
  std::chrono::steady_clock::time_point started_{};
};

}  // namespace hocket
