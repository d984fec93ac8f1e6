// SPDX-License-Identifier: Apache-2.0
// Recursive doubling: in stage j, partners at distance 2^j swap what they have and both combine it. log2(n) hops with
// little work per rank: for small data and many ranks.
//
//   rank      0   1   2   3   4 5        p = 4: the largest power of two; ranks p, p+1, ... are extra
//   fold in   ▲───┼───┼───┼───╯ │        1. an extra rank gives its input to rank - p, which combines the two
//             │   ▲───┼───┼─────╯
//   stage 0   ◀───▶   ◀───▶              2. stage j: swap with the partner at distance 2^j and combine, the lower rank's
//   stage 1   ◀───────▶                     part first, so that both get the same bits
//                 ◀───────▶
//   fold out  ╰───┼───┼───┼───▶ │        3. the finished result goes to the output and to the extra rank
//                 ╰───┼───┼─────▶
//
// Cost: log2(p) hops, two more with extra ranks; the bytes sent and combined once per stage. n = 4, rank 2:
//   input ─▶ pair_a(3)
//   {input, pair_a(3)} ─▶ {scratch, pair_a(0)}
//   {pair_a(0), scratch} ─▶ output
//
// What one stage makes is kept in scratch and sent to the next stage's partner in the same move. One lane, and each round
// waits for earlier rounds alone: one slot is enough. Two ranks combine in rank order; more do not.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  const std::string why = only_for({Collective::all_reduce}, request);
  if (!why.empty() || request.n_ranks == 2) return why;
  return any_order(request);
}

int largest_power_of_two(int n) {
  int p = 1;
  while (2 * p <= n) p *= 2;
  return p;
}

double predicted_us(const PlanRequest& request) {
  const double bytes = call_bytes(request);
  const double w = widening(request);
  const int p = largest_power_of_two(request.n_ranks);
  const int stages = ceil_log2(p);
  const int folds = p < request.n_ranks ? 2 : 0;
  // The first stage sends an input; each stage but the last reads, keeps and sends partial results.
  const Load each{2.0 * stages + folds, (1 + (stages - 1) * 2 * w + 1 + w + folds) * bytes};
  return time_us(request, even_work(request, stages + folds, bytes * w, each));
}

// A rank below p.
struct Core {
  int rank;
  int n_ranks;
  int p;

  bool has_extra(int r) const { return r + p < n_ranks; }
  // Whether rank r sends an unfinished combination in this stage, or its bare input.
  bool sends_partial(int r, int stage) const { return stage > 0 || has_extra(r); }

  Operand to_partner(int stage) const {
    const Operand operand = to(rank ^ (1 << stage), Port::pair_a);
    return sends_partial(rank, stage) ? partial(operand) : operand;
  }
  Operand from_partner(int stage) const {
    const int partner = rank ^ (1 << stage);
    return sends_partial(partner, stage) ? partial(from(partner, Port::pair_a)) : from(partner, Port::pair_a);
  }
  // What this rank has before the stage, and what the partner has: lower rank first.
  std::vector<Operand> both(int stage) const {
    const Operand mine = sends_partial(rank, stage) ? scratch() : input();
    const bool partner_is_lower = (rank & (1 << stage)) != 0;
    if (partner_is_lower) return {from_partner(stage), mine};
    return {mine, from_partner(stage)};
  }
};

Lane core_lane(const Core& core) {
  const int stages = ceil_log2(core.p);
  const Operand from_extra = from(core.rank + core.p, Port::pair_a);
  const Operand to_extra = to(core.rank + core.p, Port::pair_a);
  const bool folds = core.has_extra(core.rank);

  Lane lane{"doubling", {}};
  if (folds) {
    lane.steps.push_back(step({input(), from_extra}, {scratch(), core.to_partner(0)}, 0));
  } else {
    lane.steps.push_back(step({input()}, {core.to_partner(0)}, 0));
  }
  for (int stage = 0; stage + 1 < stages; ++stage) {
    lane.steps.push_back(step(core.both(stage), {scratch(), core.to_partner(stage + 1)}, 0));
  }
  std::vector<Operand> results{output()};
  if (folds) results.push_back(to_extra);
  lane.steps.push_back(finish(core.both(stages - 1), std::move(results), 0));
  return lane;
}

Lane extra_lane(int core_rank) {
  return {"extra", {step({input()}, {to(core_rank, Port::pair_a)}, 0), step({from(core_rank, Port::pair_a)}, {output()}, 0)}};
}

Plan build(const PlanRequest& request, int rank) {
  const int p = largest_power_of_two(request.n_ranks);
  Plan plan = plan_of(1, {rank < p ? core_lane({rank, request.n_ranks, p}) : extra_lane(rank - p)});
  plan.needs_scratch = request.n_ranks > 2;
  plan.canonical_order = request.n_ranks == 2;
  return plan;
}

}  // namespace

const Algorithm& algorithm_recursive_doubling() {
  static constexpr Algorithm kRecursiveDoubling{"recursive_doubling", unsupported, predicted_us, build, true};
  return kRecursiveDoubling;
}

}  // namespace hocket
