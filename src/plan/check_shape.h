// SPDX-License-Identifier: Apache-2.0
// What a set of plans must satisfy before it can be run at all: ranks, blocks, buffers and ends of connections are in
// range and used as plan.h says. After it, the run needs no more range checks.
#pragma once

#include <span>

#include "base/error.h"
#include "plan/plan.h"

namespace hocket {

Status check_shape(std::span<const Plan> plans);

}  // namespace hocket
