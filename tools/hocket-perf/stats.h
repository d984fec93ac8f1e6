// SPDX-License-Identifier: Apache-2.0
// The clock, and the figures that are reported of a set of samples.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

namespace hocket::perf {

using Clock = std::chrono::steady_clock;

inline double elapsed_us(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

// The smallest sample that at least `part` of all samples do not exceed; 0 of no samples.
inline double percentile(std::vector<double> samples, double part) {
  if (samples.empty()) return 0;
  const double position = std::ceil(part * static_cast<double>(samples.size())) - 1;
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::max(position, 0.0));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

inline double median(const std::vector<double>& samples) { return percentile(samples, 0.5); }

}  // namespace hocket::perf
