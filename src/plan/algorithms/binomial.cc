// SPDX-License-Identifier: Apache-2.0
// Binomial tree: the number of ranks that have taken part doubles with every hop. For small data and many ranks.
//
//            0                   distances from the root, in binary: the parent of v is v without its lowest set bit
//         ╱  │  ╲
//        4   2   1               1. broadcast: take it from the parent, keep it, hand it to the children, the one with
//      ╱ │   │                      the largest subtree first
//     6  5   3                   2. reduce: add the children's results to the own input, hand it to the parent
//     │
//     7
//
// Cost: log2(n) hops; the bytes once per rank, log2(n) times at the root. n = 4, root 0, reduce:
//   rank 1  input ─▶ pair_a(0)                rank 3  input ─▶ pair_a(2)
//   rank 2  {input, pair_a(3)} ─▶ pair_a(0)   rank 0  {input, pair_a(1), pair_a(2)} ─▶ output
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

std::string unsupported(const PlanRequest& request) {
  const std::string why = only_for({Collective::broadcast, Collective::reduce}, request);
  return why.empty() ? any_order(request) : why;
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double bytes = call_bytes(request);
  const double depth = ceil_log2(request.n_ranks);
  const double width = request.collective == Collective::reduce ? widening(request) : 1;
  const Load root{depth, (depth * width + 2) / 2 * bytes};
  return time_us(request, {depth, bytes * width, depth - 1, root, {2 * (n - 1), (n + (n - 1) * width) * bytes}});
}

// Ranks count from the root here.
struct Node {
  int rank;
  int n_ranks;
  int root;

  int distance() const { return mod(rank - root, n_ranks); }
  int rank_at(int d) const { return mod(root + d, n_ranks); }
  // The span of distances below this node is [distance, distance + reach).
  int reach() const { return distance() == 0 ? 1 << ceil_log2(n_ranks) : distance() & -distance(); }
  int parent() const { return rank_at(distance() - reach()); }
  bool is_leaf(int d) const { return d % 2 == 1 || d + 1 >= n_ranks; }

  // Distances, nearest first: in that order their subtrees follow each other.
  std::vector<int> children() const {
    std::vector<int> nodes;
    for (int bit = 1; bit < reach() && distance() + bit < n_ranks; bit *= 2) nodes.push_back(distance() + bit);
    return nodes;
  }
};

Step broadcast_step(const Node& node) {
  std::vector<Operand> sinks{output()};
  const std::vector<int> children = node.children();
  for (auto child = children.rbegin(); child != children.rend(); ++child) {
    sinks.push_back(to(node.rank_at(*child), Port::pair_a));
  }
  const bool is_root = node.distance() == 0;
  return step({is_root ? input() : from(node.parent(), Port::pair_a)}, std::move(sinks), 0);
}

Step reduce_step(const Node& node) {
  std::vector<Operand> sources{input()};
  for (int child : node.children()) {
    const Operand result = from(node.rank_at(child), Port::pair_a);
    sources.push_back(node.is_leaf(child) ? result : partial(result));
  }
  if (node.distance() == 0) return finish(std::move(sources), {output()}, 0);
  const Operand parent = to(node.parent(), Port::pair_a);
  return step(std::move(sources), {node.is_leaf(node.distance()) ? parent : partial(parent)}, 0);
}

Plan build(const PlanRequest& request, int rank) {
  const Node node{rank, request.n_ranks, request.root};
  const bool down = request.collective == Collective::broadcast;
  return plan_of(1, {{down ? "down" : "up", {down ? broadcast_step(node) : reduce_step(node)}}});
}

}  // namespace

const Algorithm& algorithm_binomial() {
  static constexpr Algorithm kBinomial{"binomial", unsupported, predicted_us, build, true};
  return kBinomial;
}

}  // namespace hocket
