// SPDX-License-Identifier: Apache-2.0
// Two-shot: reduce-scatter in one hop, then all-gather in one hop. Rank k owns block k. The data-parallel choice for large
// messages through slots.
//
//   rank 0   rank 1   rank 2   rank 3        1. scatter: block k of the input goes to rank k
//   0123     0123     0123     0123          2. reduce: rank k combines its block with the peers' slots, in rank order
//     ╲        ╲╳╱      ╱                       and writes the result to its output and to everyone
//   Σ0       Σ1       Σ2       Σ3            3. gather: the results of the others are copied to the output
//     ╲        ╲╳╱      ╱
//   Σ0123    Σ0123    Σ0123    Σ0123         reduce_scatter stops after 2; reduce sends the results to the root alone.
//
// Cost per rank: 2 hops; (n-1)/n of the bytes sent, 1/n of them combined from n sources, (n-1)/n copied out.
// n = 4, rank 2:
//   gather   multicast(3) ─▶ output 3,  multicast(0) ─▶ output 0,  multicast(1) ─▶ output 1         a lane each
//   reduce   {pair_a(0), pair_a(1), input, pair_a(3)} ─▶ {output, multicast}                         block 2
//   scatter  input 3 ─▶ pair_a(3),  input 0 ─▶ pair_a(0),  input 1 ─▶ pair_a(1)
//
// The phases are lanes, so that slices flow through all three at once; lanes that drain come first. In place, block k of
// the input is overwritten by its result, which exists only after block k has left: scatter at this rank comes before
// reduce at rank k, which comes before gather at this rank.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  return only_for({Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}, request);
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double block = call_bytes(request) / n;
  const double others = (n - 1) * block;
  const Load scatter{n - 1, others};
  if (request.collective == Collective::reduce_scatter) {
    return time_us(request, even_work(request, 1, block, {scatter.ends + n - 1, scatter.bytes + (n + 1) / 2 * block}));
  }
  if (request.collective == Collective::reduce) {
    const Load each{scatter.ends + n, scatter.bytes + (n + 1) / 2 * block};
    const Load gather{n - 1, others};
    return time_us(request, {2, block, 0, {each.ends + gather.ends, each.bytes + gather.bytes},
                             {each.ends * n + gather.ends, each.bytes * n + gather.bytes}});
  }
  const double copies = multicast_ends(request);
  const Load reduce{n - 1 + copies, (n + 1 + copies) / 2 * block};
  return time_us(request, even_work(request, 2, block, {scatter.ends + reduce.ends + n - 1, 2 * others + reduce.bytes}));
}

// Where rank k's finished block goes.
std::vector<Operand> result_sinks(const PlanRequest& request, int rank) {
  if (request.collective == Collective::all_reduce) return {output(), to_all()};
  if (request.collective == Collective::reduce && rank != request.root) return {to(request.root, Port::pair_b)};
  return {output()};
}

std::vector<Lane> gather_lanes(const PlanRequest& request, int rank) {
  const bool has_result = request.collective == Collective::all_reduce ||
                          (request.collective == Collective::reduce && rank == request.root);
  if (!has_result) return {};
  const Port port = request.collective == Collective::all_reduce ? Port::multicast : Port::pair_b;
  std::vector<Lane> lanes;
  for (int peer : peers_after(rank, request.n_ranks)) {
    lanes.push_back({"gather", {step({from(peer, port)}, {output()}, peer)}});
  }
  return lanes;
}

Lane scatter_lane(int rank, int n_ranks) {
  Lane lane{"scatter", {}};
  for (int peer : peers_after(rank, n_ranks)) lane.steps.push_back(step({input()}, {to(peer, Port::pair_a)}, peer));
  return lane;
}

Plan build(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  std::vector<Lane> lanes = gather_lanes(request, rank);
  lanes.push_back({"reduce", {finish(all_in_rank_order(rank, n, Port::pair_a), result_sinks(request, rank), rank)}});
  lanes.push_back(scatter_lane(rank, n));
  Plan plan = plan_of(n, std::move(lanes));
  plan.canonical_order = true;
  return plan;
}

}  // namespace

const Algorithm& algorithm_two_shot() {
  static constexpr Algorithm kTwoShot{"two_shot", unsupported, predicted_us, build, false, 0};
  return kTwoShot;
}

}  // namespace hocket
