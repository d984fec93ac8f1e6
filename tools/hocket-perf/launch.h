// SPDX-License-Identifier: Apache-2.0
// Starts the ranks as the options say and runs the session on them.
#pragma once

#include "options.h"

namespace hocket::perf {

// Returns the exit code of the program.
int launch(const Options& options);

}  // namespace hocket::perf
