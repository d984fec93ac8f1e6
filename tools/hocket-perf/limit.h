// SPDX-License-Identifier: Apache-2.0
// What two cores of this machine can do at best, measured beside the results so that a figure means something anywhere:
//  (a) the one-way hand-over of a cache line from one core to the other: half of a ping-pong
//  (b) the ideal all-reduce of two ranks: each core reads its half of both buffers and writes the sum to both, in
//  place, in
//      memory that both have mapped and touched before. No synchronisation, no copy: nothing can need fewer bytes.
//  (c) memcpy by one core
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "shared_memory.h"

namespace hocket::perf {

struct Limit {
  double hand_over_ns = 0;
  // Nothing below 4 KiB: there the two halves are no work, and synchronisation is all.
  std::optional<double> plain_gbyte_s, streaming_gbyte_s, memcpy_gbyte_s;
};

struct LimitSamples {
  std::vector<double> hand_over_ns, plain_us, streaming_us, memcpy_us;

  Limit summary(std::size_t bytes) const;  // from medians
};

// Shared by two sides, 0 and 1: threads, or processes forked after it was made.
class LimitMeter {
 public:
  // Sides run on the first two of `cpus` while they measure, wherever else their threads may run.
  LimitMeter(std::size_t max_bytes, std::vector<int> cpus);

  // One round of every measurement; both sides call it. Side 0 gets the samples.
  void measure(int side, std::size_t bytes, LimitSamples& samples) const;

 private:
  struct Control;
  struct Work;

  Control& control() const;
  void meet(int side) const;
  void measure_hand_over(int side, LimitSamples& samples) const;
  void measure_work(int side, Work work, std::vector<double>& samples_us) const;

  std::size_t max_bytes_;
  std::vector<int> cpus_;
  SharedMemory memory_;  // Control, then the two buffers
};

// For runs in which no two ranks can measure: two threads of their own. One Limit per size.
std::vector<Limit> measure_limits(const std::vector<std::size_t>& sizes, const std::vector<int>& cpus);

}  // namespace hocket::perf
