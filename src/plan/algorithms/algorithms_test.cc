// SPDX-License-Identifier: Apache-2.0
// Every algorithm, for every collective it serves, between 2 and 33 ranks, from every root, through the symbolic check.
#include "plan/algorithm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "plan/check.h"
#include "plan/planner.h"

namespace hocket {
namespace {

struct Case {
  std::string algorithm;
  Collective collective = Collective::all_reduce;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.algorithm << " " << to_string(c.collective); }

bool is_rooted(Collective kind) {
  return kind == Collective::broadcast || kind == Collective::reduce || kind == Collective::gather ||
         kind == Collective::scatter;
}

PlanRequest request_for(const Case& c, int n_ranks, int root = 0) {
  PlanRequest request;
  request.collective = c.collective;
  request.n_ranks = n_ranks;
  request.root = root;
  request.bytes = 1 << 20;
  request.mapped_buffers = true;
  request.algorithm = c.algorithm;
  return request;
}

// The plans of all ranks; empty when the algorithm does not serve the request.
std::vector<Plan> plans_for(const PlanRequest& request) {
  std::vector<Plan> plans;
  for (int rank = 0; rank < request.n_ranks; ++rank) {
    Result<Plan> plan = make_plan(request, rank);
    if (!plan) ADD_FAILURE() << plan.error().text;
    if (!plan || plan->algorithm != request.algorithm) return {};
    plans.push_back(*std::move(plan));
  }
  return plans;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const Algorithm* algorithm : algorithms()) {
    for (int kind = 0; kind < kCollectiveCount; ++kind) {
      const Case c{std::string(algorithm->name), static_cast<Collective>(kind)};
      const bool point_to_point = c.collective == Collective::send || c.collective == Collective::recv;
      if (!point_to_point && algorithm->unsupported(request_for(c, 4)).empty()) cases.push_back(c);
    }
  }
  return cases;
}

// All roots of small groups; of larger ones an end and the middle.
std::vector<int> roots(const Case& c, int n) {
  if (!is_rooted(c.collective)) return {0};
  if (n > 9) return {n % 2 == 0 ? 0 : n - 1, n / 2};
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class EveryAlgorithm : public testing::TestWithParam<Case> {
 protected:
  // One plan with one number of slots, in place and not, with even and uneven blocks.
  void check_shapes(const std::vector<Plan>& plans, int slots, std::vector<int> rounds) {
    static constexpr int kUneven[] = {2, 0, 5, 1, 0, 0, 3};
    static constexpr int kFirstOnly[] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    for (bool in_place : {false, true}) {
      CheckOptions options{.slots = slots, .in_place = in_place, .slices_per_block = {}};
      for (int r : rounds) {
        options.rounds = r;
        expect_ok(plans, options);
      }
      options.slices_per_block = kUneven;
      expect_ok(plans, options);
      options.slices_per_block = kFirstOnly;
      expect_ok(plans, options);
    }
  }

  void expect_ok(const std::vector<Plan>& plans, const CheckOptions& options) {
    const Status status = check(plans, options);
    EXPECT_TRUE(status) << plans.size() << " ranks, root " << plans[0].root << ", " << options.slots << " slots, "
                        << options.rounds << " rounds, in place " << options.in_place << ", uneven "
                        << !options.slices_per_block.empty() << "\n  " << status.error().text;
    ++checked_;
  }

  // Stops at the first wrong plan: what follows would say the same again.
  bool go_on() const { return !HasFailure(); }

  int checked_ = 0;
};

TEST_P(EveryAlgorithm, SmallGroupsFromEveryRootWithEveryDepth) {
  for (int n = 2; n <= 9 && go_on(); ++n) {
    for (int root : roots(GetParam(), n)) {
      for (int slots : {1, 2, 4, 8}) {
        PlanRequest request = request_for(GetParam(), n, root);
        request.caps.slots = slots;
        const std::vector<Plan> plans = plans_for(request);
        if (plans.empty()) continue;
        check_shapes(plans, slots, {0, 1, 3, 9});
        if (!go_on()) return;
      }
    }
  }
  EXPECT_GT(checked_, 0);
}

TEST_P(EveryAlgorithm, LargerGroups) {
  for (int n = 10; n <= 33 && go_on(); ++n) {
    for (int root : roots(GetParam(), n)) {
      const int slots = std::vector{2, 4, 8}[static_cast<std::size_t>(n) % 3];
      PlanRequest request = request_for(GetParam(), n, root);
      request.caps.slots = slots;
      const std::vector<Plan> plans = plans_for(request);
      check_shapes(plans, slots, {n % 4 == 1 ? 9 : 3});
      if (!go_on()) return;
    }
  }
  EXPECT_GT(checked_, 0);
}

TEST_P(EveryAlgorithm, OneSlotWhereItIsClaimed) {
  for (int n : {10, 16, 31, 33}) {
    PlanRequest request = request_for(GetParam(), n, n / 2);
    request.caps.slots = 1;
    const std::vector<Plan> plans = plans_for(request);
    if (!plans.empty()) check_shapes(plans, 1, {1, 9});
  }
}

TEST_P(EveryAlgorithm, DeterministicPlansAreCanonical) {
  for (int n = 2; n <= 12; ++n) {
    for (int root : roots(GetParam(), n)) {
      PlanRequest request = request_for(GetParam(), n, root);
      request.deterministic = true;
      const std::vector<Plan> plans = plans_for(request);
      if (plans.empty()) continue;
      EXPECT_TRUE(plans[0].canonical_order || !reduces(plans[0].collective));
      expect_ok(plans, {.slots = 4, .rounds = 2, .slices_per_block = {}});
    }
  }
}

TEST_P(EveryAlgorithm, ChannelsAreCopies) {
  PlanRequest request = request_for(GetParam(), 5, 3);
  request.channels = 3;
  const std::vector<Plan> plans = plans_for(request);
  ASSERT_EQ(plans.size(), 5u);
  EXPECT_EQ(plans[0].channels.size(), GetParam().collective == Collective::barrier ? 1u : 3u);
  expect_ok(plans, {.slots = 4, .rounds = 2, .slices_per_block = {}});
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return info.param.algorithm + "_" + std::string(to_string(info.param.collective));
}
// `self` serves one rank alone: see below.
INSTANTIATE_TEST_SUITE_P(Plans, EveryAlgorithm, testing::ValuesIn(all_cases()), case_name);

TEST(Algorithms, AreSortedByNameAndUnique) {
  const auto all = algorithms();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](auto* a, auto* b) { return a->name <= b->name; }));
  EXPECT_GE(all.size(), 10u);
}

TEST(Self, EveryCollectiveOfOneRankIsACopy) {
  for (int kind = 0; kind < kCollectiveCount; ++kind) {
    const Case c{"self", static_cast<Collective>(kind)};
    if (c.collective == Collective::send || c.collective == Collective::recv) continue;
    for (bool in_place : {false, true}) {
      const std::vector<Plan> plans = plans_for(request_for(c, 1));
      ASSERT_EQ(plans.size(), 1u);
      const Status status = check(plans, {.in_place = in_place, .slices_per_block = {}});
      EXPECT_TRUE(status) << status.error().text;
    }
  }
}

TEST(PointToPoint, SendMatchesReceive) {
  for (int slots : {1, 4}) {
    for (int rounds : {0, 1, 9}) {
      const Result<Plan> send = make_plan(request_for({"p2p", Collective::send}, 4, 1), 3);
      const Result<Plan> recv = make_plan(request_for({"p2p", Collective::recv}, 4, 3), 1);
      ASSERT_TRUE(send && recv);
      const Status status = check_send_recv(*send, *recv, {.slots = slots, .rounds = rounds, .slices_per_block = {}});
      EXPECT_TRUE(status) << status.error().text;
    }
  }
}

TEST(DoubleBinaryTree, NoRankButTheRootHasChildrenInBothTrees) {
  for (int n = 2; n <= 65; ++n) {
    for (int rank = 0; rank < n; ++rank) {
      const Result<Plan> plan = make_plan(request_for({"double_binary_tree", Collective::reduce}, n, n / 3), rank);
      ASSERT_TRUE(plan);
      int trees_with_children = 0;
      for (const Lane& lane : plan->channels[0].lanes) trees_with_children += lane.steps[0].sources.size() > 1;
      EXPECT_EQ(trees_with_children, rank == n / 3 ? 2 : std::min(trees_with_children, 1)) << n << " ranks, rank " << rank;
    }
  }
}

}  // namespace
}  // namespace hocket
