// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>

namespace hocket {

spdlog::logger& logger() {
  // Never destroyed: destructors of other objects may still log while the process ends.
  static spdlog::logger* const instance = [] {
    auto* made = new spdlog::logger("hocket", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    const char* level = std::getenv("HOCKET_LOG");
    made->set_level(level != nullptr ? spdlog::level::from_str(level) : spdlog::level::warn);
    made->set_pattern("[%H:%M:%S.%e] hocket %P %l: %v");
    return made;
  }();
  return *instance;
}

}  // namespace hocket
