// SPDX-License-Identifier: Apache-2.0
#include "plan/print.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plan/algorithm.h"
#include "plan/planner.h"

namespace hocket {
namespace {

Plan plan_for(const std::string& algorithm, Collective collective, int n_ranks, int rank, int root = 0) {
  PlanRequest request;
  request.collective = collective;
  request.n_ranks = n_ranks;
  request.root = root;
  request.bytes = 1 << 20;
  request.mapped_buffers = true;
  request.algorithm = algorithm;
  const Result<Plan> plan = make_plan(request, rank);
  EXPECT_TRUE(plan) << plan.error().text;
  return plan.value_or(Plan{});
}

// Costs change with the model; the golden texts are about steps.
std::string steps_text(Plan plan) {
  plan.predicted_us = 1;
  plan.candidates.clear();
  return to_text(plan);
}

TEST(PlanText, TwoShot) {
  EXPECT_EQ(steps_text(plan_for("two_shot", Collective::all_reduce, 3, 1)),
            R"(all_reduce by two_shot, rank 1 of 3: 3 blocks, simple, canonical order, 1.00 us
  channel 0, share 1
    lane gather
      block 2: multicast(2) -> output
    lane gather
      block 0: multicast(0) -> output
    lane reduce
      block 1: pair_a(0) + input + pair_a(2) -> output, multicast(all)  (finish)
    lane scatter
      block 2: input -> pair_a(2)
      block 0: input -> pair_a(0)
)");
}

TEST(PlanText, RingMarksPartialResults) {
  EXPECT_EQ(steps_text(plan_for("ring", Collective::all_reduce, 4, 2)),
            R"(all_reduce by ring, rank 2 of 4: 4 blocks, simple, 1.00 us
  channel 0, share 1
    lane ring
      block 1: input -> pair_a(3)
      block 0: pair_a(1) + input -> pair_a(3)~
      block 3: pair_a(1)~ + input -> pair_a(3)~
      block 2: pair_a(1)~ + input -> output, pair_a(3)  (finish)
      block 1: pair_a(1) -> output, pair_a(3)
      block 0: pair_a(1) -> output, pair_a(3)
      block 3: pair_a(1) -> output
)");
}

TEST(PlanText, DirectEndsWithTokens) {
  EXPECT_EQ(steps_text(plan_for("direct", Collective::reduce, 3, 0, 2)),
            R"(reduce by direct, rank 0 of 3, root 2: 3 blocks, ll, canonical order, mapped buffers, 1.00 us
  channel 0, share 1
    lane direct
      block 0: input + peer_input(1) + peer_input(2) -> peer_output(2)  (finish)
      token: -> multicast(all)
      token: multicast(1) + multicast(2) ->
)");
}

TEST(PlanText, RecursiveDoublingWithExtraRanks) {
  EXPECT_EQ(steps_text(plan_for("recursive_doubling", Collective::all_reduce, 5, 0)),
            R"(all_reduce by recursive_doubling, rank 0 of 5: 1 block, simple, scratch, 1.00 us
  channel 0, share 1
    lane doubling
      block 0: input + pair_a(4) -> scratch, pair_a(1)~
      block 0: scratch + pair_a(1) -> scratch, pair_a(2)~
      block 0: scratch + pair_a(2)~ -> output, pair_a(4)  (finish)
)");
}

TEST(PlanText, Candidates) {
  Plan plan;
  plan.algorithm = "one_shot";
  plan.candidates = {{"one_shot", 0.25, ""}, {"ring", 12.5, "slower"}, {"direct", 0, "the buffers are not mapped by the peers"}};
  EXPECT_EQ(to_text(plan), R"(all_reduce by one_shot, rank 0 of 1: 1 block, simple, 0.00 us
  candidates
    one_shot                   0.25 us  chosen
    ring                      12.50 us  slower
    direct                              the buffers are not mapped by the peers
)");
}

TEST(PlanJson, OneStep) {
  const Plan plan = plan_for("p2p", Collective::send, 4, 1, 3);
  EXPECT_EQ(to_json(plan)["channels"].dump(),
            R"([{"lanes":[{"name":"send","steps":[{"block":0,"sinks":[{"peer":3,"port":"p2p","where":"connection"}],)"
            R"("sources":[{"where":"input"}]}]}],"share":1.0}])");
}

TEST(PlanJson, EveryPlanComesBackEqual) {
  for (const Algorithm* algorithm : algorithms()) {
    for (int kind = 0; kind < kCollectiveCount; ++kind) {
      for (int rank : {0, 4}) {
        const Plan plan = plan_for(std::string(algorithm->name), static_cast<Collective>(kind), 5, rank, 2);
        const Result<Plan> back = plan_from_json(nlohmann::json::parse(to_json(plan).dump()));
        ASSERT_TRUE(back) << back.error().text;
        EXPECT_EQ(*back, plan) << to_text(plan);
      }
    }
  }
}

TEST(PlanJson, ErrorsNameTheField) {
  const nlohmann::json right = to_json(plan_for("ring", Collective::all_reduce, 4, 2));
  const auto error_of = [](const nlohmann::json& value) {
    const Result<Plan> plan = plan_from_json(value);
    return plan ? std::string("no error") : plan.error().text;
  };
  EXPECT_EQ(error_of(right), "no error");

  nlohmann::json wrong = right;
  wrong["channels"][0]["lanes"][0]["steps"][1]["block"] = "two";
  EXPECT_EQ(error_of(wrong), "plan from JSON: channels: lanes: steps: block: is not a whole number");
  wrong = right;
  wrong["channels"][0]["lanes"][0]["steps"][1]["sources"][0]["where"] = "attic";
  EXPECT_EQ(error_of(wrong), "plan from JSON: channels: lanes: steps: sources: where: has no meaning \"attic\"");
  wrong = right;
  wrong["n_ranks"] = 1e40;
  EXPECT_EQ(error_of(wrong), "plan from JSON: n_ranks: is not a whole number");
  wrong["n_ranks"] = 5000000000;
  EXPECT_EQ(error_of(wrong), "plan from JSON: n_ranks: is out of range");
  wrong = right;
  wrong["channels"] = 7;
  EXPECT_EQ(error_of(wrong), "plan from JSON: channels: is not a list");
  for (const nlohmann::json& odd : {nlohmann::json(), nlohmann::json(7), nlohmann::json::array(), nlohmann::json("text")}) {
    EXPECT_NE(error_of(odd), "no error");
  }
  for (const auto& [name, value] : right.items()) {
    wrong = right;
    wrong.erase(name);
    EXPECT_NE(error_of(wrong).find(name), std::string::npos) << error_of(wrong);
  }
}

}  // namespace
}  // namespace hocket
