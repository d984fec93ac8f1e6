// SPDX-License-Identifier: Apache-2.0
// What a launcher tells a process by environment variables, as a pure function.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "control/control.h"

namespace hocket::control {

// Everything that the answer depends on.
struct Surroundings {
  std::function<std::optional<std::string>(const char* name)> variable;
  uid_t user = 0;
  pid_t parent = 0;          // identifies the job where the launcher gives it no name
  std::uint64_t generation = 0;  // which communicator of this process it is, from 0: each gets a meeting of its own
};

Result<Launch> launch_from(const Surroundings& surroundings);

}  // namespace hocket::control
