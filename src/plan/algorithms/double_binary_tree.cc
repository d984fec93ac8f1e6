// SPDX-License-Identifier: Apache-2.0
// Double binary tree: two trees over the same ranks, each carrying half of the data; a rank that has children in one is a
// leaf in the other, so that everyone does the same work (Sanders, Speck, Träff: Two-tree algorithms). log2(n) hops at
// the bandwidth of a pipeline: for large data and many ranks.
//
//        tree 0: block 0        tree 1: block 1        The root feeds, or collects from, both trees. The others are
//            root                   root               numbered 1 ... n-1 after it. Tree 0: an odd number is a leaf; an
//             │                      │                 even one stands between the two halves of its subtree. Tree 1 is
//             4                      3                 the same with numbers mirrored (n odd) or shifted by one (n even).
//           ╱   ╲                  ╱   ╲
//          2     6                1     5              1. up: add the children's results to the own input, hand it up;
//         ╱ ╲   ╱ ╲              ╱ ╲   ╱ ╲                complete at the root
//        1   3 5   7            7   2 4   6            2. down: take results from the parent, keep them, hand them down
//
// all_reduce is both, with the root turning around in one move; reduce is 1, broadcast 2 from the root's input.
//
// Cost: 2 log2(n) hops; per rank the bytes sent and received about twice, in both directions at once. n = 4, all_reduce,
// root 0, tree 0 (0 ─ 2, 2 ─ 1, 2 ─ 3):
//   rank 1 and 3   up  input ─▶ pair_a(2)                             down  pair_a(2) ─▶ output
//   rank 2         up  {input, pair_a(1), pair_a(3)} ─▶ pair_a(0)     down  pair_a(0) ─▶ {output, pair_a(1), pair_a(3)}
//   rank 0         up  {input, pair_a(2)} ─▶ {output, pair_a(2)}
//
// Up and down are lanes, so that both directions flow at once. In place, a result overwrites an input that has gone up.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

constexpr int kTrees = 2;

std::string unsupported(const PlanRequest& request) {
  const std::string why = only_for({Collective::all_reduce, Collective::broadcast, Collective::reduce}, request);
  return why.empty() ? any_order(request) : why;
}

double predicted_us(const PlanRequest& request) {
  const double w = widening(request);
  const double half = call_bytes(request) / kTrees;
  const double hops = ceil_log2(request.n_ranks);
  // In one tree an inner node (two children), in the other a leaf.
  const Load up{4, ((1 + 3 * w) / 2 + 1) * half};
  const Load down{4, (2 + 1) * half};
  if (request.collective == Collective::reduce) return time_us(request, pipeline_work(request, hops, half, up));
  if (request.collective == Collective::broadcast) return time_us(request, pipeline_work(request, hops, half, down));
  return time_us(request, pipeline_work(request, 2 * hops, half, {up.ends + down.ends, up.bytes + down.bytes}));
}

// A rank's place in one of the trees. Inside, ranks have the numbers of the picture, the root 0.
class Node {
 public:
  Node(int rank, int n_ranks, int root, int tree) : n_(n_ranks), root_(root), tree_(tree), number_(number_of(rank)) {}

  bool is_root() const { return number_ == 0; }
  Port port() const { return tree_ == 0 ? Port::pair_a : Port::pair_b; }
  int parent() const { return rank_of(parent_of(number_)); }

  struct Child {
    int rank;
    bool is_leaf;
  };
  std::vector<Child> children() const {
    std::vector<Child> result;
    for (int child : children_of(number_)) result.push_back({rank_of(child), is_leaf(child)});
    return result;
  }
  bool is_leaf() const { return is_leaf(number_); }

 private:
  bool mirrored() const { return n_ % 2 == 1; }
  int number_of(int rank) const {
    const int v = mod(rank - root_, n_);
    if (tree_ == 0 || v == 0) return v;
    return mirrored() ? n_ - v : mod(v, n_ - 1) + 1;
  }
  int rank_of(int number) const {
    int v = number;
    if (tree_ == 1 && v != 0) v = mirrored() ? n_ - v : mod(v - 2, n_ - 1) + 1;
    return mod(root_ + v, n_);
  }

  // Half the width of the subtree around an inner number; the number itself for the top one.
  static int lowest_bit(int number) { return number & -number; }
  int top() const {
    int bit = 1;
    while (2 * bit < n_) bit *= 2;
    return bit;
  }
  bool is_leaf(int number) const { return number % 2 == 1; }

  int parent_of(int number) const {
    if (number == top()) return 0;
    const int bit = lowest_bit(number);
    const int up = (number ^ bit) | (2 * bit);
    return up < n_ ? up : number ^ bit;
  }
  std::vector<int> children_of(int number) const {
    if (number == 0) return {top()};
    std::vector<int> result;
    const int bit = lowest_bit(number);
    if (bit > 1) result.push_back(number - bit / 2);
    // The upper half may be cut short by n: its top is then further down.
    for (int half = bit / 2; half > 0; half /= 2) {
      if (number + half >= n_) continue;
      result.push_back(number + half);
      break;
    }
    return result;
  }

  int n_;
  int root_;
  int tree_;
  int number_;
};

std::vector<Operand> children_sinks(const Node& node) {
  std::vector<Operand> sinks;
  for (const Node::Child& child : node.children()) sinks.push_back(to(child.rank, node.port()));
  return sinks;
}

// What the root does with the finished block, or the others with what they got.
std::vector<Operand> keep_and_pass_down(const Node& node) {
  std::vector<Operand> sinks = children_sinks(node);
  sinks.insert(sinks.begin(), output());
  return sinks;
}

Lane up_lane(const Node& node, int block, bool results_go_down) {
  std::vector<Operand> sources{input()};
  for (const Node::Child& child : node.children()) {
    const Operand result = from(child.rank, node.port());
    sources.push_back(child.is_leaf ? result : partial(result));
  }
  if (node.is_root()) {
    return {"up", {finish(std::move(sources), results_go_down ? keep_and_pass_down(node) : std::vector{output()}, block)}};
  }
  const Operand parent = to(node.parent(), node.port());
  return {"up", {step(std::move(sources), {node.is_leaf() ? parent : partial(parent)}, block)}};
}

Lane down_lane(const Node& node, int block) {
  const Operand source = node.is_root() ? input() : from(node.parent(), node.port());
  return {"down", {step({source}, keep_and_pass_down(node), block)}};
}

// The root of an all_reduce is no one's choice: any will do.
Plan build(const PlanRequest& request, int rank) {
  const bool goes_up = reduces(request.collective);
  const bool goes_down = request.collective != Collective::reduce;
  std::vector<Lane> lanes;
  for (int tree = 0; tree < kTrees; ++tree) {
    const Node node(rank, request.n_ranks, request.root, tree);
    const bool turns_around = goes_up && node.is_root();
    if (goes_down && !turns_around) lanes.push_back(down_lane(node, tree));
    if (goes_up) lanes.push_back(up_lane(node, tree, goes_down));
  }
  return plan_of(kTrees, std::move(lanes));
}

}  // namespace

const Algorithm& algorithm_double_binary_tree() {
  static constexpr Algorithm kDoubleBinaryTree{"double_binary_tree", unsupported, predicted_us, build, true};
  return kDoubleBinaryTree;
}

}  // namespace hocket
