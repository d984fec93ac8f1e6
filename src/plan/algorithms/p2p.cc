// SPDX-License-Identifier: Apache-2.0
// Point to point: one end of a send and its receive. The peer is the request's root.
//
//   sender  input ─▶ p2p ─▶ output  receiver
//
// Cost: 1 hop; the bytes written once and copied out once. Of four ranks, the other two have no part in it.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  const bool served = request.collective == Collective::send || request.collective == Collective::recv;
  return served ? std::string() : std::string(kOtherCollective);
}

double predicted_us(const PlanRequest& request) {
  const double bytes = call_bytes(request);
  return time_us(request, {1, bytes, 0, {1, bytes}, {2, 2 * bytes}});
}

Plan build(const PlanRequest& request, int) {
  if (request.collective == Collective::send) {
    return plan_of(1, {{"send", {step({input()}, {to(request.root, Port::p2p)}, 0)}}});
  }
  return plan_of(1, {{"receive", {step({from(request.root, Port::p2p)}, {output()}, 0)}}});
}

}  // namespace

const Algorithm& algorithm_p2p() {
  static constexpr Algorithm kP2p{"p2p", unsupported, predicted_us, build};
  return kP2p;
}

}  // namespace hocket
