// SPDX-License-Identifier: Apache-2.0
// What several algorithms answer to Algorithm::unsupported: empty, or why not.
#pragma once

#include <initializer_list>
#include <string>

#include "plan/plan_request.h"

namespace hocket {

// One of these collectives, between at least two ranks.
std::string only_for(std::initializer_list<Collective> served, const PlanRequest& request);

// The request accepts only plans that combine in rank order.
bool canonical_required(const PlanRequest& request);
// For reductions that combine in another order.
std::string any_order(const PlanRequest& request);

// Fused receive-and-send steps around a cycle: with one slot, every rank holds a full one and waits for a free one.
std::string two_slots(const PlanRequest& request);

}  // namespace hocket
