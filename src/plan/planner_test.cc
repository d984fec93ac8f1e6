// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "plan/algorithm.h"
#include "plan/check.h"

namespace hocket {
namespace {

PlanRequest request_of(Collective collective, int n_ranks, std::size_t bytes) {
  PlanRequest request;
  request.collective = collective;
  request.n_ranks = n_ranks;
  request.bytes = bytes;
  return request;
}

Plan plan_for(const PlanRequest& request, int rank = 0) {
  const Result<Plan> plan = make_plan(request, rank);
  EXPECT_TRUE(plan) << plan.error().text;
  return plan.value_or(Plan{});
}

std::string chosen(const PlanRequest& request) { return plan_for(request).algorithm; }

std::string why_not(const Plan& plan, const std::string& algorithm) {
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.algorithm == algorithm) return candidate.why_not;
  }
  return "not listed";
}

std::vector<Collective> collectives() {
  std::vector<Collective> all;
  for (int kind = 0; kind < kCollectiveCount; ++kind) all.push_back(static_cast<Collective>(kind));
  return all;
}

TEST(Planner, AllReduceOfTwoRanksGoesFromOneShotToTwoShotToDirect) {
  EXPECT_EQ(chosen(request_of(Collective::all_reduce, 2, 8)), "one_shot");
  EXPECT_EQ(chosen(request_of(Collective::all_reduce, 2, 1024)), "one_shot");
  EXPECT_EQ(chosen(request_of(Collective::all_reduce, 2, 64 * 1024)), "two_shot");
  EXPECT_EQ(chosen(request_of(Collective::all_reduce, 2, 256 << 20)), "two_shot");
  PlanRequest mapped = request_of(Collective::all_reduce, 2, 64 * 1024);
  mapped.mapped_buffers = true;
  EXPECT_EQ(chosen(mapped), "direct");
  mapped.bytes = 8;
  EXPECT_EQ(chosen(mapped), "one_shot");
}

TEST(Planner, MappedBuffersGoDirectFrom256KiB) {
  for (Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::broadcast,
                                Collective::all_gather, Collective::gather, Collective::scatter, Collective::all_to_all}) {
    PlanRequest request = request_of(collective, 2, 256 * 1024);
    request.mapped_buffers = true;
    EXPECT_EQ(chosen(request), "direct") << to_string(collective);
  }
}

TEST(Planner, CrowdedCoresPreferFewWaits) {
  PlanRequest request = request_of(Collective::all_reduce, 8, 8);
  request.caps.cores_per_rank = 0.25;
  EXPECT_EQ(chosen(request), "one_shot");
  request.bytes = 1 << 20;
  EXPECT_EQ(chosen(request), "two_shot");
}

TEST(Planner, OneRankCopies) {
  for (Collective collective : collectives()) {
    const bool point_to_point = collective == Collective::send || collective == Collective::recv;
    EXPECT_EQ(chosen(request_of(collective, 1, 64)), point_to_point ? "p2p" : "self") << to_string(collective);
  }
}

TEST(Planner, CandidatesSayWhy) {
  const Plan plan = plan_for(request_of(Collective::all_reduce, 4, 1 << 20));
  ASSERT_FALSE(plan.candidates.empty());
  EXPECT_EQ(plan.candidates[0].algorithm, plan.algorithm);
  EXPECT_EQ(plan.candidates[0].why_not, "");
  EXPECT_EQ(plan.candidates[0].predicted_us, plan.predicted_us);
  EXPECT_EQ(why_not(plan, "one_shot"), "slower");
  EXPECT_EQ(why_not(plan, "direct"), "the buffers are not mapped by the peers");
  EXPECT_EQ(why_not(plan, "self"), "there are peers");
  EXPECT_EQ(why_not(plan, "pairwise"), "not listed");  // does something else
}

TEST(Planner, ForcedAlgorithm) {
  PlanRequest request = request_of(Collective::all_reduce, 4, 8);
  request.algorithm = "ring";
  Plan plan = plan_for(request);
  EXPECT_EQ(plan.algorithm, "ring");
  EXPECT_EQ(plan.candidates[0].algorithm, "ring");
  EXPECT_EQ(why_not(plan, "one_shot"), "another was asked for");

  request.deterministic = true;
  plan = plan_for(request);
  EXPECT_EQ(plan.algorithm, "one_shot");
  EXPECT_EQ(why_not(plan, "ring"), "does not combine in rank order, which deterministic results need");

  request.collective = Collective::barrier;
  EXPECT_EQ(why_not(plan_for(request), "ring"), std::string(kOtherCollective));
  request.algorithm = "rnig";
  EXPECT_EQ(why_not(plan_for(request), "rnig"), "there is no such algorithm");
}

TEST(Planner, OnlyCanonicalPlansWhereOrderMatters) {
  for (Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
    for (int n : {2, 3, 8, 300}) {
      for (std::size_t bytes : {8, 4096, 1 << 20}) {
        for (const Algorithm* algorithm : algorithms()) {
          PlanRequest request = request_of(collective, n, bytes);
          request.algorithm = algorithm->name;
          request.deterministic = bytes == 8;
          request.commutative = bytes == 8;
          request.mapped_buffers = true;
          EXPECT_TRUE(plan_for(request).canonical_order) << algorithm->name << " " << to_string(collective) << " " << n;
        }
      }
    }
  }
}

TEST(Planner, PremultipliedInputsAreNotReadByPeers) {
  PlanRequest request = request_of(Collective::all_reduce, 2, 1 << 20);
  request.mapped_buffers = true;
  request.premultiplied = true;
  EXPECT_FALSE(plan_for(request).needs_mapped_buffers);
}

TEST(Planner, UnknownSizesArePlannedBySize) {
  for (Collective collective : {Collective::all_to_all, Collective::gather, Collective::scatter}) {
    PlanRequest request = request_of(collective, 4, 0);
    request.bytes.reset();
    request.mapped_buffers = true;
    const Plan plan = plan_for(request);
    EXPECT_EQ(plan.protocol, Protocol::by_size) << to_string(collective);
    EXPECT_FALSE(plan.needs_mapped_buffers);
  }
  PlanRequest uneven = request_of(Collective::all_gather, 4, 1024);
  uneven.uneven = true;  // one block may be all of it
  EXPECT_EQ(plan_for(uneven).protocol, Protocol::by_size);
}

TEST(Planner, LowLatencyProtocolWhereEveryTransferFits) {
  PlanRequest request = request_of(Collective::all_reduce, 2, 1792);
  request.algorithm = "one_shot";
  EXPECT_EQ(plan_for(request).protocol, Protocol::ll);
  request.bytes = 1793;
  EXPECT_EQ(plan_for(request).protocol, Protocol::simple);
  request.bytes = 2 * 1792;
  request.algorithm = "two_shot";  // half of it per transfer
  EXPECT_EQ(plan_for(request).protocol, Protocol::ll);

  // Partial results travel wide; finished ones do not.
  request.bytes = 1792;
  request.element_bytes = 2;
  request.partial_bytes = 4;
  request.algorithm = "one_shot";
  EXPECT_EQ(plan_for(request).protocol, Protocol::ll);
  request.algorithm = "recursive_doubling";
  EXPECT_EQ(plan_for(request).protocol, Protocol::simple);
  request.bytes = 896;
  EXPECT_EQ(plan_for(request).protocol, Protocol::ll);

  request.collective = Collective::barrier;
  EXPECT_EQ(plan_for(request).protocol, Protocol::ll);
}

TEST(Planner, EveryRankDerivesTheSameDecision) {
  for (Collective collective : collectives()) {
    for (std::size_t bytes : {0, 8, 100, 1 << 20}) {
      PlanRequest request = request_of(collective, 7, bytes);
      request.root = 3;
      request.channels = 2;
      const Plan first = plan_for(request, 0);
      for (int rank = 1; rank < 7; ++rank) {
        const Plan plan = plan_for(request, rank);
        EXPECT_EQ(plan.rank, rank);
        EXPECT_EQ(plan.algorithm, first.algorithm);
        EXPECT_EQ(plan.protocol, first.protocol);
        EXPECT_EQ(plan.candidates, first.candidates);
        EXPECT_EQ(plan.channels.size(), first.channels.size());
      }
    }
  }
}

TEST(Planner, WrongRanksAreRefused) {
  EXPECT_FALSE(make_plan(request_of(Collective::all_reduce, 4, 8), 4));
  EXPECT_FALSE(make_plan(request_of(Collective::all_reduce, 4, 8), -1));
  EXPECT_FALSE(make_plan(request_of(Collective::all_reduce, 0, 8), 0));
  PlanRequest request = request_of(Collective::broadcast, 4, 8);
  request.root = 4;
  EXPECT_FALSE(make_plan(request, 0));
}

TEST(Planner, ManyRanksArePlannedQuickly) {
  PlanRequest request = request_of(Collective::all_reduce, 300, 1 << 20);
  request.caps.cores_per_rank = 2.0 / 300;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(plan_for(request, 150).n_ranks, 300);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  EXPECT_LT(spent.count(), 100);
}

TEST(Planner, ManyRanksArePlannedRight) {
  for (std::size_t bytes : {8, 8192, 16 << 20}) {
    PlanRequest request = request_of(Collective::all_reduce, 100, bytes);
    request.caps.cores_per_rank = 0.02;
    std::vector<Plan> plans;
    for (int rank = 0; rank < request.n_ranks; ++rank) plans.push_back(plan_for(request, rank));
    const Status status = check(plans, {.rounds = 1, .in_place = true, .slices_per_block = {}});
    EXPECT_TRUE(status) << status.error().text;
  }
}

}  // namespace
}  // namespace hocket
