// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace hocket::control {

// A duplicate of the descriptor of allocation `allocation` of this process; empty when there is none.
UniqueFd look_up_allocation(std::uint64_t allocation);

}  // namespace hocket::control
