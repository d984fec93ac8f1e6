// SPDX-License-Identifier: Apache-2.0
// Chain: the ring's pattern in rank order, for reductions that must combine in that order and for broadcasts of data so
// large that the way along the chain is filled with slices.
//
//   combine   0 ─▶ 1 ─▶ 2 ─▶ 3        1. combine: rank r adds its input to what comes from r-1; complete at rank n-1
//   results   3 ─▶ 0 ─▶ 1 ─▶ 2        2. results travel on: all_reduce around to everyone,
//                                        reduce to the root, reduce_scatter block k to rank k
//   broadcast is a chain from the root: root ─▶ root+1 ─▶ ... ─▶ root-1
//
// Cost per rank: n-1 hops to combine, and for the results n-1 (all_reduce) or 1; the bytes passed on once per phase.
// n = 4, all_reduce:
//   rank 0   combine  input ─▶ pair_a(1)                   results  pair_b(3) ─▶ {output, pair_b(1)}
//   rank 1   combine  {pair_a(0), input} ─▶ pair_a(2)      results  pair_b(0) ─▶ {output, pair_b(2)}
//   rank 2   combine  {pair_a(1), input} ─▶ pair_a(3)      results  pair_b(1) ─▶ output
//   rank 3   combine  {pair_a(2), input} ─▶ {output, pair_b(0)}
//
// The phases are lanes, so that results flow while later slices are still combined. No cycle: one slot is enough.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  return only_for({Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::broadcast}, request);
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double bytes = call_bytes(request);
  const Load combine{2, (0.5 + widening(request)) * bytes};
  const Load pass{2, 1.5 * bytes};
  switch (request.collective) {
    case Collective::all_reduce:
      return time_us(request, pipeline_work(request, 2 * (n - 1), bytes, {combine.ends + pass.ends, combine.bytes + pass.bytes}));
    case Collective::reduce_scatter:
      return time_us(request, pipeline_work(request, n, bytes / n, {combine.ends * n + 1, combine.bytes + bytes / n}));
    case Collective::broadcast: return time_us(request, pipeline_work(request, n - 1, bytes, pass));
    case Collective::reduce:
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier:
    case Collective::send:
    case Collective::recv: break;
  }
  return time_us(request, pipeline_work(request, n, bytes, {combine.ends + 1, combine.bytes + bytes}));
}

// Where the last rank sends a finished block.
std::vector<Operand> result_sinks(const PlanRequest& request, int block) {
  const int last = request.n_ranks - 1;
  if (request.collective == Collective::all_reduce) return {output(), to(0, Port::pair_b)};
  const int owner = request.collective == Collective::reduce ? request.root : block;
  return {owner == last ? output() : to(owner, Port::pair_b)};
}

Step combine_step(const PlanRequest& request, int rank, int block) {
  const int last = request.n_ranks - 1;
  if (rank == 0) return step({input()}, {to(1, Port::pair_a)}, block);
  const Operand so_far = from(rank - 1, Port::pair_a);
  const std::vector<Operand> sources{rank == 1 ? so_far : partial(so_far), input()};
  if (rank == last) return finish(sources, result_sinks(request, block), block);
  return step(sources, {partial(to(rank + 1, Port::pair_a))}, block);
}

Lane combine_lane(const PlanRequest& request, int rank, int n_blocks) {
  Lane lane{"combine", {}};
  for (int block = 0; block < n_blocks; ++block) lane.steps.push_back(combine_step(request, rank, block));
  return lane;
}

// None on the last rank: it has its result already.
std::vector<Lane> result_lanes(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  const int last = n - 1;
  if (rank == last) return {};
  const Operand from_last = from(last, Port::pair_b);
  if (request.collective == Collective::reduce_scatter) return {{"results", {step({from_last}, {output()}, rank)}}};
  if (request.collective == Collective::reduce) {
    if (rank != request.root) return {};
    return {{"results", {step({from_last}, {output()}, 0)}}};
  }
  std::vector<Operand> sinks{output()};
  if (rank + 1 < last) sinks.push_back(to(rank + 1, Port::pair_b));
  return {{"results", {step({from(mod(rank - 1, n), Port::pair_b)}, std::move(sinks), 0)}}};
}

Plan build_broadcast(int rank, int n_ranks, int root) {
  const int next = mod(rank + 1, n_ranks);
  std::vector<Operand> sinks{output()};
  if (next != root) sinks.push_back(to(next, Port::pair_a));
  const Operand source = rank == root ? input() : from(mod(rank - 1, n_ranks), Port::pair_a);
  return plan_of(1, {{"pass", {step({source}, std::move(sinks), 0)}}});
}

Plan build(const PlanRequest& request, int rank) {
  if (request.collective == Collective::broadcast) return build_broadcast(rank, request.n_ranks, request.root);
  const int n_blocks = request.collective == Collective::reduce_scatter ? request.n_ranks : 1;
  std::vector<Lane> lanes = result_lanes(request, rank);
  lanes.push_back(combine_lane(request, rank, n_blocks));
  Plan plan = plan_of(n_blocks, std::move(lanes));
  plan.canonical_order = true;
  return plan;
}

}  // namespace

const Algorithm& algorithm_chain() {
  static constexpr Algorithm kChain{"chain", unsupported, predicted_us, build, true};
  return kChain;
}

}  // namespace hocket
