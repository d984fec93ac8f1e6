// SPDX-License-Identifier: Apache-2.0
// Flat: blocks go straight from the rank that has them to the ranks that want them, one hop, nothing combined.
//
//   broadcast        all_gather        gather           scatter
//     0               0  1  2  3      0  1  2  3           0
//   ╱ │ ╲             │╲╱│╲╱│╲╱│       ╲ │ │ ╱           ╱ │ ╲
//   1 2 3             all to all          0              1 2 3
//
//   1. the owner writes its block once for all (broadcast, all_gather) or to the one who wants it, and keeps its own copy
//   2. the others copy it out, one lane per peer, so that no late peer holds up the others
//
// Cost: 1 hop; each byte written once and copied out once by each that wants it. n = 4, all_gather, rank 2:
//   receive  multicast(3) ─▶ output 3,  multicast(0) ─▶ output 0,  multicast(1) ─▶ output 1
//   send     input ─▶ {output 2, multicast}
//
// No rank needs to know the size of a block that it neither has nor wants: gather and scatter serve unknown counts.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  return only_for({Collective::broadcast, Collective::all_gather, Collective::gather, Collective::scatter}, request);
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double bytes = call_bytes(request);
  const double block = bytes / n;
  const double copies = multicast_ends(request);
  if (request.collective == Collective::all_gather) {
    return time_us(request, even_work(request, 1, block, {copies + n - 1, (copies + 0.5) * block + (n - 1) * block}));
  }
  if (request.collective == Collective::broadcast) {
    const Load root{copies, (copies + 0.5) * bytes};
    return time_us(request, {1, bytes, 0, root, {root.ends + n - 1, root.bytes + (n - 1) * bytes}});
  }
  const Load root{n - 1, bytes};
  return time_us(request, {1, block, 0, root, {root.ends + n - 1, root.bytes + (n - 1) * block}});
}

std::vector<Lane> broadcast(int rank, int root) {
  if (rank == root) return {{"send", {step({input()}, {output(), to_all()}, 0)}}};
  return {{"receive", {step({from(root, Port::multicast)}, {output()}, 0)}}};
}

std::vector<Lane> receive_from_all(int rank, int n_ranks, Port port) {
  std::vector<Lane> lanes;
  for (int peer : peers_after(rank, n_ranks)) {
    lanes.push_back({"receive", {step({from(peer, port)}, {output()}, peer)}});
  }
  return lanes;
}

std::vector<Lane> all_gather(int rank, int n_ranks) {
  std::vector<Lane> lanes = receive_from_all(rank, n_ranks, Port::multicast);
  lanes.push_back({"send", {step({input()}, {output(), to_all()}, rank)}});
  return lanes;
}

std::vector<Lane> gather(int rank, int n_ranks, int root) {
  if (rank != root) return {{"send", {step({input()}, {to(root, Port::pair_a)}, rank)}}};
  std::vector<Lane> lanes = receive_from_all(root, n_ranks, Port::pair_a);
  lanes.push_back({"own", {step({input()}, {output()}, root)}});
  return lanes;
}

std::vector<Lane> scatter(int rank, int n_ranks, int root) {
  if (rank != root) return {{"receive", {step({from(root, Port::pair_a)}, {output()}, rank)}}};
  std::vector<Lane> lanes;
  for (int peer : peers_after(root, n_ranks)) {
    lanes.push_back({"send", {step({input()}, {to(peer, Port::pair_a)}, peer)}});
  }
  lanes.push_back({"own", {step({input()}, {output()}, root)}});
  return lanes;
}

Plan build(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  if (request.collective == Collective::broadcast) return plan_of(1, broadcast(rank, request.root));
  if (request.collective == Collective::all_gather) return plan_of(n, all_gather(rank, n));
  if (request.collective == Collective::gather) return plan_of(n, gather(rank, n, request.root));
  return plan_of(n, scatter(rank, n, request.root));
}

}  // namespace

const Algorithm& algorithm_flat() {
  static constexpr Algorithm kFlat{"flat", unsupported, predicted_us, build, false, 0};
  return kFlat;
}

}  // namespace hocket
