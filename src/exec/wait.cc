// SPDX-License-Identifier: Apache-2.0
#include "exec/wait.h"

#include <sched.h>

namespace hocket {

void Waiter::yield() { ::sched_yield(); }

}  // namespace hocket
