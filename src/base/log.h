// SPDX-License-Identifier: Apache-2.0
// One logger for the library, on stderr, level from HOCKET_LOG (error, warn, info, debug, trace; default warn).
#pragma once

#include <spdlog/spdlog.h>

#include <utility>

namespace hocket {

spdlog::logger& logger();

template <class... Args>
void log_warn(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().warn(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().info(format, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(spdlog::format_string_t<Args...> format, Args&&... args) {
  logger().debug(format, std::forward<Args>(args)...);
}

}  // namespace hocket
