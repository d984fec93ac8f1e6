// SPDX-License-Identifier: Apache-2.0
// What a process tells the others about itself, and whether another one still lives.
#pragma once

#include "control/message.h"

namespace hocket::control {

Member describe_this_process(int rank);

// For printing: bytes that are not printable ASCII become "\xNN", so that messages are valid text whatever the name is.
std::string printable(std::string_view text);

// Looks the process up now. unknown: it is not visible from here.
enum class Alive { yes, no, unknown };
Alive is_alive(const Member& member);

}  // namespace hocket::control
