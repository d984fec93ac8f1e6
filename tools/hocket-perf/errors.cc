// SPDX-License-Identifier: Apache-2.0
#include "errors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace hocket::perf {
namespace {

// An error usually reaches all ranks at about the same time: time for the other threads' sentences.
constexpr auto kGrace = std::chrono::milliseconds(300);

}  // namespace

void end_with_error(std::string_view sentence) {
  const std::string line = fmt::format("hocket-perf: {}\n", sentence);
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);  // one write: lines of several ranks do not mix
  std::this_thread::sleep_for(kGrace);
  // Not exit(): other threads are inside calls that may never return, and destructors would wait for them.
  _exit(kExitError);
}

void must(hocketResult_t result, std::string_view function, int rank, hocketComm_t comm) {
  if (result == hocketSuccess) return;
  const std::string who = rank < 0 ? std::string() : fmt::format("rank {}: ", rank);
  end_with_error(fmt::format("{}{}: {} (code {}): {}", who, function, hocketGetErrorString(result),
                             static_cast<int>(result), hocketGetLastError(comm)));
}

}  // namespace hocket::perf
