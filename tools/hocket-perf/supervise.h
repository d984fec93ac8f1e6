// SPDX-License-Identifier: Apache-2.0
// Forked processes that live and die together.
#pragma once

#include <functional>

namespace hocket::perf {

// Runs body(0) … body(n - 1), each in a process of its own, and returns what became of them: an error before wrong results
// before success. When one fails, the others get a moment to say what they saw of it and are then killed; when this process
// dies, they die too. `ranks_per_process`: for messages.
int supervise(int n_processes, int ranks_per_process, const std::function<int(int)>& body);

}  // namespace hocket::perf
