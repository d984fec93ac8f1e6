// SPDX-License-Identifier: Apache-2.0
#include "plan/rules.h"

#include <algorithm>

#include "plan/algorithm.h"

namespace hocket {

std::string only_for(std::initializer_list<Collective> served, const PlanRequest& request) {
  if (std::find(served.begin(), served.end(), request.collective) == served.end()) return std::string(kOtherCollective);
  return request.n_ranks > 1 ? "" : "there are no peers";
}

bool canonical_required(const PlanRequest& request) { return request.deterministic || !request.commutative; }

std::string any_order(const PlanRequest& request) {
  if (!reduces(request.collective) || !canonical_required(request)) return {};
  return request.deterministic ? "does not combine in rank order, which deterministic results need"
                               : "does not combine in rank order, which the operation needs";
}

std::string two_slots(const PlanRequest& request) {
  return request.caps.slots >= 2 ? "" : "needs two slots per connection";
}

}  // namespace hocket
