// SPDX-License-Identifier: Apache-2.0
// Ring: every block travels once around, collecting, and once more, spreading. Each rank talks to its neighbours alone, so
// this is the pattern for links that are joined in a ring.
//
//   0 ─▶ 1 ─▶ 2 ─▶ 3 ─▶ 0        block k starts at rank k+1 and is complete when it reaches rank k
//
//   1. own share of block r-1 leaves
//   2. blocks r-2, ..., r+1 pass: add mine, hand on
//   3. block r is complete here: keep it, hand on
//   4. results r-1, ..., r+2 pass: keep, hand on
//   5. result r+1 is the last: keep
//
// reduce_scatter is 1, 2 and the first half of 3; all_gather is the second half of 3, then 4 and 5.
//
// Cost per rank: 2(n-1) hops, 2(n-1)/n of the bytes sent. n = 4, rank 2:
//   input 1 ─▶ pair_a(3)                                                        1.
//   {pair_a(1), input} 0 ─▶ pair_a(3),  {pair_a(1), input} 3 ─▶ pair_a(3)       2.
//   {pair_a(1), input} 2 ─▶ {output, pair_a(3)}                                 3.
//   pair_a(1) ─▶ {output, pair_a(3)}, blocks 1 and 0                            4.
//   pair_a(1) ─▶ output 3                                                       5.
//
// One lane: in place, a block is overwritten only after it was added. The order of combination differs from block to block.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  std::string why = only_for({Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}, request);
  if (why.empty()) why = any_order(request);
  return why.empty() ? two_slots(request) : why;
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double block = call_bytes(request) / n;
  const double collected = (n - 2) * (0.5 + widening(request)) * block;  // step 2
  const double spread = ((n - 2) * 1.5 + 1) * block;                     // steps 4 and 5
  const double hops = n - 1;
  if (request.collective == Collective::all_gather) {
    return time_us(request, even_work(request, hops, block, {2 * hops, 1.5 * block + spread}));
  }
  if (request.collective == Collective::reduce_scatter) {
    return time_us(request, even_work(request, hops, block, {2 * hops, 2.5 * block + collected}));
  }
  return time_us(request, even_work(request, 2 * hops, block, {4 * hops, 3 * block + collected + spread}));
}

struct Neighbours {
  int rank;
  int n_ranks;
  Operand from_prev() const { return from(mod(rank - 1, n_ranks), Port::pair_a); }
  Operand to_next() const { return to(mod(rank + 1, n_ranks), Port::pair_a); }
  // Block r-distance, as it comes by while results are collected: after two inputs, it is a partial result.
  Operand collected(int distance) const { return distance > 2 ? partial(from_prev()) : from_prev(); }
};

void append_collect(Lane& lane, const Neighbours& ring) {
  const int r = ring.rank;
  const int n = ring.n_ranks;
  lane.steps.push_back(step({input()}, {ring.to_next()}, mod(r - 1, n)));
  for (int distance = 2; distance < n; ++distance) {
    lane.steps.push_back(step({ring.collected(distance), input()}, {partial(ring.to_next())}, mod(r - distance, n)));
  }
}

void append_spread(Lane& lane, const Neighbours& ring) {
  const int r = ring.rank;
  const int n = ring.n_ranks;
  for (int distance = 1; distance < n - 1; ++distance) {
    lane.steps.push_back(step({ring.from_prev()}, {output(), ring.to_next()}, mod(r - distance, n)));
  }
  lane.steps.push_back(step({ring.from_prev()}, {output()}, mod(r + 1, n)));
}

Plan build(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  const Neighbours ring{rank, n};
  Lane lane{"ring", {}};
  switch (request.collective) {
    case Collective::all_gather:
      lane.steps.push_back(step({input()}, {output(), ring.to_next()}, rank));
      append_spread(lane, ring);
      break;
    case Collective::reduce_scatter:
      append_collect(lane, ring);
      lane.steps.push_back(finish({ring.collected(n), input()}, {output()}, rank));
      break;
    case Collective::all_reduce:
      append_collect(lane, ring);
      lane.steps.push_back(finish({ring.collected(n), input()}, {output(), ring.to_next()}, rank));
      append_spread(lane, ring);
      break;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier:
    case Collective::send:
    case Collective::recv: break;
  }
  return plan_of(n, {lane});
}

}  // namespace

const Algorithm& algorithm_ring() {
  static constexpr Algorithm kRing{"ring", unsupported, predicted_us, build, true};
  return kRing;
}

}  // namespace hocket
