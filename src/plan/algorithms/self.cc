// SPDX-License-Identifier: Apache-2.0
// One rank alone: every collective is a copy, or nothing.
//
//   input ─▶ output
//
// Cost: no hop, the bytes once. In place the copy has nothing to do. A reduction of one is still finished: an average
// divides by one, a pre-multiplied sum scales.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  if (request.collective == Collective::send || request.collective == Collective::recv) return std::string(kOtherCollective);
  if (request.n_ranks > 1) return "there are peers";
  return {};
}

double predicted_us(const PlanRequest& request) {
  return time_us(request, even_work(request, 0, 0, {0, call_bytes(request)}));
}

Plan build(const PlanRequest& request, int) {
  Lane lane{"copy", {}};
  if (request.collective != Collective::barrier) {
    lane.steps = {reduces(request.collective) ? finish({input()}, {output()}, 0) : step({input()}, {output()}, 0)};
  }
  Plan plan = plan_of(1, {lane});
  plan.sliced = false;
  plan.canonical_order = reduces(request.collective);
  return plan;
}

}  // namespace

const Algorithm& algorithm_self() {
  static constexpr Algorithm kSelf{"self", unsupported, predicted_us, build};
  return kSelf;
}

}  // namespace hocket
