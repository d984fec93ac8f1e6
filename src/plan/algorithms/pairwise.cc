// SPDX-License-Identifier: Apache-2.0
// Pairwise all-to-all: every rank exchanges with every other directly; at distance d, rank r sends to r+d and receives from
// r-d, so that all pairs are different at any moment.
//
//   d = 1:  0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0        1. send to r+1, r+2, ...      a lane each: no pair waits for another
//   d = 2:  0 ◀▶ 2    1 ◀▶ 3             2. receive from r-1, r-2, ...  a lane each
//   d = 3:  0 ─▶ 3 ─▶ 2 ─▶ 1 ─▶ 0        3. copy the own block
//
// Cost per rank: 1 hop; (n-1)/n of the bytes sent and (n-1)/n copied out, 1/n copied. n = 4, rank 2:
//   receive  pair_a(1) ─▶ output 1,  pair_a(0) ─▶ output 0,  pair_a(3) ─▶ output 3
//   send     input 3 ─▶ pair_a(3),  input 0 ─▶ pair_a(0),  input 1 ─▶ pair_a(1)
//   own      input 2 ─▶ output 2
//
// A pair's block is known to both its ends and to nobody else: unknown counts are served.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) { return only_for({Collective::all_to_all}, request); }

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double block = call_bytes(request) / n;
  return time_us(request, even_work(request, 1, block, {2 * (n - 1), (2 * (n - 1) + 1) * block}));
}

Plan build(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  std::vector<Lane> lanes;
  for (int distance = 1; distance < n; ++distance) {
    const int peer = mod(rank - distance, n);
    lanes.push_back({"receive", {step({from(peer, Port::pair_a)}, {output()}, peer)}});
  }
  for (int distance = 1; distance < n; ++distance) {
    const int peer = mod(rank + distance, n);
    lanes.push_back({"send", {step({input()}, {to(peer, Port::pair_a)}, peer)}});
  }
  lanes.push_back({"own", {step({input()}, {output()}, rank)}});
  return plan_of(n, std::move(lanes));
}

}  // namespace

const Algorithm& algorithm_pairwise() {
  static constexpr Algorithm kPairwise{"pairwise", unsupported, predicted_us, build, false, 0};
  return kPairwise;
}

}  // namespace hocket
