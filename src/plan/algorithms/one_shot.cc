// SPDX-License-Identifier: Apache-2.0
// One-shot: everyone sends everything in one hop, then combines. The fastest for small messages.
//
//        0   1   2   3        1. each rank writes its input once, for all (to the root alone in a reduce)
//        │╲ ╱│╲ ╱│╲ ╱│        2. each rank combines its own input and the peers' slots, in rank order
//        ▼ ▼ ▼ ▼ ▼ ▼ ▼
//        Σ   Σ   Σ   Σ        A barrier does the same with nothing in the slots.
//
// Cost per rank: 1 hop; the bytes written once and read n times. n = 4, rank 2:
//   input ─▶ multicast        {multicast(0), multicast(1), input, multicast(3)} ─▶ output
//
// Both steps are in one lane: in place, step 2 overwrites the input that step 1 reads.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  return only_for({Collective::all_reduce, Collective::reduce, Collective::barrier}, request);
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  if (request.collective == Collective::barrier) {
    return time_us(request, even_work(request, 1, 0, {multicast_ends(request) + n - 1, 0}));
  }
  const double bytes = call_bytes(request);
  const Load combine{n - 1, bytes * (n + 1) / 2};
  if (request.collective == Collective::reduce) {
    return time_us(request, {1, bytes, 0, combine, {combine.ends + n - 1, combine.bytes + (n - 1) * bytes}});
  }
  const double copies = multicast_ends(request);
  return time_us(request, even_work(request, 1, bytes, {copies + combine.ends, copies * bytes + combine.bytes}));
}

Plan build_barrier(int rank, int n_ranks) {
  Lane lane{"tokens", {}};
  append_token_exchange(lane, rank, n_ranks);
  Plan plan = plan_of(1, {lane});
  plan.sliced = false;
  return plan;
}

Plan build_all_reduce(int rank, int n_ranks) {
  return plan_of(1, {{"all", {step({input()}, {to_all()}, 0),
                              finish(all_in_rank_order(rank, n_ranks, Port::multicast), {output()}, 0)}}});
}

Plan build_reduce(int rank, int n_ranks, int root) {
  if (rank != root) return plan_of(1, {{"send", {step({input()}, {to(root, Port::pair_a)}, 0)}}});
  return plan_of(1, {{"reduce", {finish(all_in_rank_order(root, n_ranks, Port::pair_a), {output()}, 0)}}});
}

Plan build(const PlanRequest& request, int rank) {
  if (request.collective == Collective::barrier) return build_barrier(rank, request.n_ranks);
  Plan plan = request.collective == Collective::reduce ? build_reduce(rank, request.n_ranks, request.root)
                                                       : build_all_reduce(rank, request.n_ranks);
  plan.canonical_order = true;
  return plan;
}

}  // namespace

const Algorithm& algorithm_one_shot() {
  static constexpr Algorithm kOneShot{"one_shot", unsupported, predicted_us, build, false, 0};
  return kOneShot;
}

}  // namespace hocket
