// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "plan/plan.h"
#include "plan/plan_request.h"

namespace hocket {

// The cheapest plan that keeps the request's contracts, for one rank; deterministic in the request, so every rank derives
// the plans that belong together. A forced algorithm that cannot serve the request is set aside and the reason is kept in
// `candidates`. Fails only when no algorithm serves the request.
Result<Plan> make_plan(const PlanRequest& request, int rank);

}  // namespace hocket
