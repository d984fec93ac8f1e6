// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/message.h"

namespace hocket::control {

// The first setting in which two ranks differ: "rank 1 has X, rank 0 has Y; ...". Nothing when they agree.
std::optional<std::string> settings_difference(int rank, const Hello& hello, int reference_rank, const Hello& reference);

}  // namespace hocket::control
