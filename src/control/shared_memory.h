// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "base/error.h"
#include "base/unique_fd.h"

namespace hocket::control {

// An amount that this machine or container cannot give at all is refused before anything is taken: a memfd knows no limit of
// its own, and asking it for too much ends in the kernel killing some process.
Status check_memory_is_there(std::size_t bytes);

// A memfd whose bytes are there, not only promised: later writes cannot fault for lack of memory. Takes about 0.2 s for
// 64 MiB; ends early when `cancel` becomes true.
Result<UniqueFd> reserve_shared_memory(std::size_t bytes, const std::atomic<bool>* cancel);

}  // namespace hocket::control
