// SPDX-License-Identifier: Apache-2.0
// How slots are written, chosen by what it has cost so far. Ordinary stores win while two cores share a cache; where they do
// not, or where the slot is still in the reader's cache, storing past the caches wins, several times. Which one holds
// depends on where ranks run, and that changes while they run: so it is measured, call by call. The choice is this rank's
// own; results do not depend on it.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "exec/move.h"

namespace hocket {

class StoreChoice {
 public:
  // Calls below this are not worth two looks at the clock.
  static constexpr std::size_t kSmallest = 4096;

  // How to write the slots of the next call of `bytes`.
  Store choose(std::size_t bytes) const {
    const Entry& entry = entries_[index(bytes)];
    const Store better = entry.us[1] < entry.us[0] ? Store::streaming : Store::cached;
    if (entry.calls < kFirstLooks) return entry.calls % 2 == 0 ? Store::cached : Store::streaming;
    if (entry.calls % kPeriod != 0) return better;
    return better == Store::cached ? Store::streaming : Store::cached;
  }

  void report(std::size_t bytes, Store used, std::chrono::steady_clock::duration time) {
    Entry& entry = entries_[index(bytes)];
    float& mean = entry.us[used == Store::streaming ? 1 : 0];
    const float us = std::chrono::duration<float, std::micro>(time).count();
    // A late peer says nothing of the store: outliers count little.
    const float sample = mean > 0 && us > 2 * mean ? 2 * mean : us;
    mean = mean > 0 ? mean + (sample - mean) * kWeight : us;
    ++entry.calls;
  }

 private:
  static constexpr std::uint32_t kFirstLooks = 8;
  static constexpr std::uint32_t kPeriod = 32;  // then every so many calls the other one is tried
  static constexpr float kWeight = 0.25F;

  struct Entry {
    float us[2] = {0, 0};
    std::uint32_t calls = 0;
  };
  static std::size_t index(std::size_t bytes) { return static_cast<std::size_t>(std::bit_width(bytes)); }

  std::array<Entry, 65> entries_{};
};

}  // namespace hocket
