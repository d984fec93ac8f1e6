// SPDX-License-Identifier: Apache-2.0
// A drawing of the results: bus bandwidth over size, and latency over size.
#pragma once

#include <string>
#include <vector>

#include "result.h"

namespace hocket::perf {

// `subtitle` says how it was measured.
std::string to_svg(const std::vector<Result>& results, const std::string& subtitle);

}  // namespace hocket::perf
