// SPDX-License-Identifier: Apache-2.0
// A line on the terminal that says what takes so long. Nothing where standard error is no terminal.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "stats.h"

namespace hocket::perf {

class Progress {
 public:
  explicit Progress(bool wanted) : enabled_(wanted && isatty(STDERR_FILENO) == 1), last_(Clock::now()) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows text() when the last change of the line is long enough ago. `now`: the caller usually knows it already.
  template <class Text>
  void update(Clock::time_point now, Text text) {
    if (!enabled_ || now - last_ < kInterval) return;
    const std::string line = text();
    std::fprintf(stderr, "\r\033[K# %s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
    last_ = now;
  }

  // Before anything else is printed.
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
    last_ = Clock::now();
  }

 private:
  static constexpr auto kInterval = std::chrono::milliseconds(300);

  bool enabled_;
  bool shown_ = false;
  Clock::time_point last_;
};

}  // namespace hocket::perf
