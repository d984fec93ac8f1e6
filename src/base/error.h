// SPDX-License-Identifier: Apache-2.0
// Errors as values. A message has three parts: what was being done with which objects, the exact cause, what to do.
#pragma once

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>

#include "hocket/hocket.h"

namespace hocket {

struct [[nodiscard]] Error {
  hocketResult_t code = hocketInternalError;
  std::string text;

  // Adds where it happened on the way up: "<context>: <text>".
  Error with_context(std::string_view context) && { return {code, fmt::format("{}: {}", context, text)}; }
};

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

template <class... Args>
tl::unexpected<Error> fail(hocketResult_t code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::make_unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

// "<text>: No such file or directory (2)". `error` is an errno value.
template <class... Args>
tl::unexpected<Error> fail_errno(int error, fmt::format_string<Args...> format, Args&&... args) {
  return tl::make_unexpected(Error{hocketSystemError,
                                   fmt::format("{}: {} ({})", fmt::format(format, std::forward<Args>(args)...),
                                               std::generic_category().message(error), error)});
}

}  // namespace hocket

// Evaluates a Status or Result and returns its error from the enclosing function.
#define HOCKET_TRY(expression)                                                                \
  do {                                                                                        \
    if (auto hocket_status = (expression); !hocket_status) [[unlikely]]                       \
      return tl::make_unexpected(std::move(hocket_status).error());                           \
  } while (false)

// Our own mistakes only; runtime input earns a Result.
#ifdef NDEBUG
#define HOCKET_DCHECK(condition) static_cast<void>(0)
#else
#include <cassert>
#define HOCKET_DCHECK(condition) assert(condition)
#endif
