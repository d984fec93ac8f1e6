// SPDX-License-Identifier: Apache-2.0
// Dissemination barrier: in hop j each rank tells rank r + 2^j that it, and all it has heard of, are here. For many ranks.
//
//   hop 0   0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0        knows of 2 ranks       each hop: 1. tell r + 2^j
//   hop 1   0 ◀▶ 2    1 ◀▶ 3             knows of 4 ranks                 2. hear from r - 2^j
//
// Cost per rank: log2(n) hops, rounded up, two tokens each, any n. n = 4, rank 2:
//   ─▶ pair_a(3),  pair_a(1) ─▶,  ─▶ pair_a(0),  pair_a(0) ─▶
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) { return only_for({Collective::barrier}, request); }

double predicted_us(const PlanRequest& request) {
  const double hops = ceil_log2(request.n_ranks);
  return time_us(request, even_work(request, hops, 0, {2 * hops, 0}));
}

Plan build(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  Lane lane{"tokens", {}};
  for (int distance = 1; distance < n; distance *= 2) {
    lane.steps.push_back(step({}, {to(mod(rank + distance, n), Port::pair_a)}, kToken));
    lane.steps.push_back(step({from(mod(rank - distance, n), Port::pair_a)}, {}, kToken));
  }
  Plan plan = plan_of(1, {lane});
  plan.sliced = false;
  return plan;
}

}  // namespace

const Algorithm& algorithm_dissemination() {
  static constexpr Algorithm kDissemination{"dissemination", unsupported, predicted_us, build};
  return kDissemination;
}

}  // namespace hocket
