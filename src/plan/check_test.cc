// SPDX-License-Identifier: Apache-2.0
// Plans with a planted defect: check() must name it. That right plans pass is algorithms_test.cc's part.
#include "plan/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plan/algorithm.h"
#include "plan/planner.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using Plans = std::vector<Plan>;

Plans plans_of(const std::string& algorithm, Collective collective, int n_ranks = 4, int root = 0) {
  PlanRequest request;
  request.collective = collective;
  request.n_ranks = n_ranks;
  request.root = root;
  request.bytes = 1 << 20;
  request.mapped_buffers = true;
  request.algorithm = algorithm;
  Plans plans;
  for (int rank = 0; rank < n_ranks; ++rank) {
    Result<Plan> plan = make_plan(request, rank);
    if (plan && plan->algorithm == algorithm) plans.push_back(*std::move(plan));
  }
  EXPECT_EQ(plans.size(), static_cast<std::size_t>(n_ranks)) << algorithm;
  return plans;
}

Lane& lane_of(Plan& plan, const std::string& name) {
  for (Lane& lane : plan.channels[0].lanes) {
    if (lane.name == name) return lane;
  }
  ADD_FAILURE() << "no lane " << name;
  return plan.channels[0].lanes[0];
}

CheckOptions with_slots(int slots) { return {.slots = slots, .slices_per_block = {}}; }
CheckOptions in_place() { return {.in_place = true, .slices_per_block = {}}; }

void expect_ok(const Plans& plans, const CheckOptions& options = {}) {
  const Status status = check(plans, options);
  EXPECT_TRUE(status) << status.error().text;
}

void expect_error(const Plans& plans, const std::string& part, const CheckOptions& options = {}) {
  const Status status = check(plans, options);
  ASSERT_FALSE(status) << "expected: " << part;
  EXPECT_NE(status.error().text.find(part), std::string::npos) << status.error().text << "\n  expected: " << part;
}

// ---- Progress ----

TEST(Check, FusedRingNeedsTwoSlots) {
  const Plans plans = plans_of("ring", Collective::all_reduce);
  expect_error(plans, "deadlock: rank 0 lane 0 (ring) step 1 round 0 waits for ever for a free slot to rank 1 on pair_a",
               with_slots(1));
  for (int slots : {2, 4, 8}) expect_ok(plans, with_slots(slots));
}

TEST(Check, ReceivingBeforeSendingDeadlocks) {
  Plans plans = plans_of("recursive_doubling", Collective::all_reduce, 2);
  for (Plan& plan : plans) std::swap(lane_of(plan, "doubling").steps[0], lane_of(plan, "doubling").steps[1]);
  expect_error(plans, "waits for ever for a slot from rank 1 on pair_a");
}

TEST(Check, OneLaneForAllPhasesOfTwoShotDeadlocksWhenSlotsRunOut) {
  // Scatter to all, reduce, gather is fine in one lane; gather before reduce is not.
  Plans plans = plans_of("two_shot", Collective::all_reduce, 2);
  for (Plan& plan : plans) {
    Lane all{"all", {}};
    all.steps = {lane_of(plan, "scatter").steps[0], lane_of(plan, "reduce").steps[0], lane_of(plan, "gather").steps[0]};
    plan.channels[0].lanes = {all};
  }
  expect_ok(plans);
  for (Plan& plan : plans) std::swap(plan.channels[0].lanes[0].steps[1], plan.channels[0].lanes[0].steps[2]);
  expect_error(plans, "deadlock");
}

TEST(Check, SlotsLeftBehind) {
  Plans plans = plans_of("one_shot", Collective::all_reduce);
  // Rank 2 forgets rank 3: with one slice it gets by, but its slot stays.
  lane_of(plans[2], "all").steps[1].sources.pop_back();
  expect_error(plans, "rank 2 leaves 1 slots of rank 3's multicast behind", {.rounds = 1, .slices_per_block = {}});
}

// ---- Agreement of both ends ----

TEST(Check, SwappedStepsGiveTheWrongBlock) {
  Plans plans = plans_of("ring", Collective::all_gather);
  std::swap(lane_of(plans[1], "ring").steps[1], lane_of(plans[1], "ring").steps[2]);
  expect_error(plans, "pair_a from rank 0: gets block 0 instead of 3");
}

TEST(Check, OneEndCallsItPartial) {
  Plans plans = plans_of("chain", Collective::all_reduce);
  lane_of(plans[2], "combine").steps[0].sources[0].partial = false;
  expect_error(plans, "pair_a from rank 1: a partial result sent, elements expected");
}

TEST(Check, BothEndsAgreeOnTheWrongFormat) {
  Plans plans = plans_of("chain", Collective::all_reduce);
  lane_of(plans[1], "combine").steps[0].sinks[0].partial = false;
  lane_of(plans[2], "combine").steps[0].sources[0].partial = false;
  expect_error(plans, "sends block 0 of ranks 0, 1 on pair_a without calling it a partial result");
}

TEST(Check, DataInsteadOfAToken) {
  Plans plans = plans_of("one_shot", Collective::all_reduce);
  const Plans barrier = plans_of("one_shot", Collective::barrier);
  plans[3].channels = barrier[3].channels;
  expect_error(plans, "multicast from rank 0: gets data instead of a token");
}

TEST(Check, TwoLanesOnOneEnd) {
  Plans plans = plans_of("two_shot", Collective::all_reduce);
  Lane& scatter = lane_of(plans[1], "scatter");
  Lane more{"more", {scatter.steps[0]}};
  plans[1].channels[0].lanes.push_back(more);
  expect_error(plans, "pair_a to 2 is lane 4's: one lane per end");
}

// ---- Results ----

TEST(Check, MissingFinish) {
  Plans plans = plans_of("one_shot", Collective::all_reduce);
  lane_of(plans[1], "all").steps[1].finish = false;
  expect_error(plans, "rank 1 lane 0 (all) step 1 round 0: writes an unfinished combination");
}

TEST(Check, FinishedTwice) {
  Plans plans = plans_of("two_shot", Collective::all_reduce);
  lane_of(plans[1], "gather").steps[0].finish = true;
  expect_error(plans, "finishes block 2 of ranks 0, 1, 2, 3, finished again");
}

TEST(Check, FinishedTooEarly) {
  Plans plans = plans_of("chain", Collective::reduce);
  Step& early = lane_of(plans[1], "combine").steps[0];
  early.finish = true;
  early.sinks[0].partial = false;
  lane_of(plans[2], "combine").steps[0].sources[0].partial = false;
  expect_error(plans, "combines block 0 of ranks 0, 1, finished after it was finished");
}

TEST(Check, RankCountedTwice) {
  Plans plans = plans_of("one_shot", Collective::reduce);
  lane_of(plans[0], "reduce").steps[0].sources.push_back(steps::input());
  expect_error(plans, "counts rank 0 twice");
}

TEST(Check, RankMissingInTheResult) {
  Plans plans = plans_of("direct", Collective::all_reduce);
  std::vector<Operand>& sources = lane_of(plans[1], "direct").steps[0].sources;
  sources.erase(sources.begin());
  expect_error(plans, "rank 0: output block 1 slice 0 holds block 1 of ranks 1, 2, 3, finished, not block 1 of ranks 0, 1, 2, 3");
}

TEST(Check, CanonicalOrderIsProved) {
  Plans plans = plans_of("one_shot", Collective::all_reduce);
  std::vector<Operand>& sources = lane_of(plans[3], "all").steps[1].sources;
  std::swap(sources[0], sources[1]);
  expect_error(plans, "rank 3: output block 0 slice 0 was not combined in canonical order: block 0 of ranks 1, 0, 2, 3");
  for (Plan& plan : plans) plan.canonical_order = false;
  expect_ok(plans);
}

TEST(Check, RightOrderButNotALeftFold) {
  Plans plans = plans_of("recursive_doubling", Collective::all_reduce);
  expect_ok(plans);
  for (Plan& plan : plans) plan.canonical_order = true;
  expect_error(plans, "was not combined in canonical order");
}

TEST(Check, OutputNeverWritten) {
  Plans plans = plans_of("flat", Collective::all_gather);
  lane_of(plans[2], "send").steps[0].sinks.erase(lane_of(plans[2], "send").steps[0].sinks.begin());
  expect_error(plans, "rank 2: output block 2 slice 0 is never written");
  expect_ok(plans, in_place());  // where the block already lies
}

TEST(Check, AllToAllToTheWrongRank) {
  Plans plans = plans_of("pairwise", Collective::all_to_all);
  for (Lane& lane : plans[1].channels[0].lanes) {
    if (lane.name == "send" && lane.steps[0].block == 2) lane.steps[0].block = 3;
  }
  expect_error(plans, "rank 2: output block 1 slice 0 holds block 3 of rank 1, not block 2 of rank 1");
}

TEST(Check, BarrierThatDoesNotWaitForAll) {
  // Tokens around a ring: nobody hears of the rank opposite.
  Plans plans = plans_of("dissemination", Collective::barrier);
  for (Plan& plan : plans) plan.channels[0].lanes[0].steps.resize(2);
  expect_error(plans, "rank 0 may leave before rank 1 has come");
}

// ---- Buffers ----

TEST(Check, OnlyDocumentedBuffersAreWritten) {
  Plans plans = plans_of("chain", Collective::reduce, 4, 0);
  lane_of(plans[2], "combine").steps[0] = steps::step({steps::partial(steps::from(1, Port::pair_a)), steps::input()},
                                                      {steps::output(), steps::partial(steps::to(3, Port::pair_a))}, 0);
  expect_error(plans, "rank 2: lane 0 (combine) step 0: rank 2 has no output block 0: only documented buffers may be touched");

  plans = plans_of("chain", Collective::reduce, 4, 0);
  lane_of(plans[2], "combine").steps[0].sinks.push_back(steps::input());
  expect_error(plans, "writes the input");
}

TEST(Check, ScratchIsReadBeforeItHoldsAnything) {
  Plans plans = plans_of("recursive_doubling", Collective::all_reduce);
  lane_of(plans[1], "doubling").steps[1].sources[1] = steps::scratch();
  expect_error(plans, "rank 1 lane 0 (doubling) step 1 round 0: reads scratch before it holds anything");
}

TEST(Check, InPlaceRaceBetweenLanes) {
  // In two lanes, the result may overwrite an input that was not yet sent.
  Plans plans = plans_of("one_shot", Collective::all_reduce);
  for (Plan& plan : plans) {
    const std::vector<Step> both = plan.channels[0].lanes[0].steps;
    plan.channels[0].lanes = {{"combine", {both[1]}}, {"send", {both[0]}}};
  }
  expect_ok(plans);
  expect_error(plans, "nothing orders the two", in_place());
}

TEST(Check, RaceBetweenRanksOnMappedBuffers) {
  // Rank 2 writes what rank 1 writes, too: the right value, but nothing orders the two.
  Plans plans = plans_of("direct", Collective::all_gather);
  Lane& lane = lane_of(plans[2], "direct");
  lane.steps.insert(lane.steps.begin(), steps::step({steps::input_of(1, 2)}, {steps::output_of(0, 2)}, 1));
  expect_error(plans, "rank 2 lane 0 (direct) step 0 round 0: writes peer_output while rank 1 lane 0 (direct) writes it");
}

TEST(Check, MissingTokenLetsARankLeaveEarly) {
  Plans plans = plans_of("direct", Collective::all_gather);
  for (Plan& plan : plans) lane_of(plan, "direct").steps.resize(1);
  expect_error(plans, "rank 0 may return while rank 1 lane 0 (direct) still uses its buffers");
}

TEST(Check, TokenBeforeTheDataSaysNothing) {
  Plans plans = plans_of("direct", Collective::all_gather);
  for (Plan& plan : plans) std::swap(lane_of(plan, "direct").steps[0], lane_of(plan, "direct").steps[1]);
  expect_error(plans, "may return while");
}

TEST(Check, MappedBuffersMustBeAskedFor) {
  Plans plans = plans_of("direct", Collective::all_gather);
  for (Plan& plan : plans) plan.needs_mapped_buffers = false;
  expect_error(plans, "peer_output, but needs_mapped_buffers is not set");
}

// ---- Plans that fit nothing ----

TEST(Check, PlansThatDoNotBelongTogether) {
  expect_error({}, "no plans");
  Plans plans = plans_of("ring", Collective::all_reduce);
  std::swap(plans[0], plans[1]);
  expect_error(plans, "rank 0: is for rank 1");

  plans = plans_of("ring", Collective::all_reduce);
  plans[2] = plans_of("two_shot", Collective::reduce_scatter)[2];
  expect_error(plans, "rank 2: is for reduce_scatter, rank 0's for all_reduce");

  plans = plans_of("chain", Collective::broadcast);
  plans[2].root = 1;
  expect_error(plans, "rank 2: has root 1, rank 0's 0");

  plans = plans_of("ring", Collective::all_reduce);
  plans.pop_back();
  expect_error(plans, "is for 4 ranks, given are 3");
}

TEST(Check, NumbersOutOfRange) {
  const auto broken = [](const std::function<void(Plan&)>& damage) {
    Plans plans = plans_of("ring", Collective::all_reduce);
    damage(plans[1]);
    return plans;
  };
  const auto first_step = [](Plan& plan) -> Step& { return plan.channels[0].lanes[0].steps[0]; };
  expect_error(broken([](Plan& p) { p.root = 4; }), "root 4 is not a rank");
  expect_error(broken([](Plan& p) { p.n_blocks = 0; }), "0 blocks");
  expect_error(broken([](Plan& p) { p.n_blocks = 1 << 30; }), "1073741824 blocks");
  expect_error(broken([](Plan& p) { p.channels.clear(); }), "has no channel");
  expect_error(broken([](Plan& p) { p.channels[0].share = 0.5; }), "shares add up to 0.5, not 1");
  expect_error(broken([&](Plan& p) { first_step(p).block = 4; }), "there is no block 4");
  expect_error(broken([&](Plan& p) { first_step(p).block = -2; }), "there is no block -2");
  expect_error(broken([&](Plan& p) { first_step(p).sinks.clear(); }), "has no sink");
  expect_error(broken([&](Plan& p) { first_step(p).sources.clear(); }), "has no source");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].peer = 4; }), "peer 4 is not a rank");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].peer = -7; }), "peer -7 is not a rank");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].peer = kAllPeers; }), "goes to all peers");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].peer = 1; }), "connects the rank to itself");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].port = static_cast<Port>(9); }), "unknown port");
  expect_error(broken([&](Plan& p) { first_step(p).sinks[0].where = static_cast<Buffer>(9); }), "unknown buffer");
  expect_error(broken([](Plan&) {}), "0 slots", with_slots(0));
}

TEST(Check, SendWithoutItsReceive) {
  PlanRequest request;
  request.collective = Collective::send;
  request.n_ranks = 3;
  request.root = 2;
  const Result<Plan> send = make_plan(request, 0);
  request.collective = Collective::recv;
  request.root = 1;
  const Result<Plan> recv = make_plan(request, 2);
  ASSERT_TRUE(send && recv);
  EXPECT_FALSE(check_send_recv(*send, *recv));
}

// ---- Every small change to a right plan ----

bool has_peer(const Operand& operand) {
  return operand.where == Buffer::connection || operand.where == Buffer::peer_input || operand.where == Buffer::peer_output;
}

bool touches_connection(const Step& step) {
  const auto is_connection = [](const Operand& operand) { return operand.where == Buffer::connection; };
  return std::any_of(step.sources.begin(), step.sources.end(), is_connection) ||
         std::any_of(step.sinks.begin(), step.sinks.end(), is_connection);
}

// A small change to one step of a lane that makes the plan wrong.
struct Damage {
  const char* what;
  std::function<void(Lane&)> apply;
};

std::vector<Damage> damages(const Step& step, std::size_t index) {
  const auto at = static_cast<std::ptrdiff_t>(index);
  std::vector<Damage> all{
      {"step dropped", [=](Lane& lane) { lane.steps.erase(lane.steps.begin() + at); }},
      {"finish turned", [=](Lane& lane) { lane.steps[index].finish ^= true; }},
      {"next block", [=](Lane& lane) { ++lane.steps[index].block; }},
  };
  // A local copy made twice is no harm.
  if (touches_connection(step)) {
    all.push_back({"made twice", [=](Lane& lane) { lane.steps.insert(lane.steps.begin() + at, step); }});
  }
  for (std::size_t i = 0; i < step.sources.size(); ++i) {
    all.push_back({"source dropped", [=](Lane& lane) {
                     std::vector<Operand>& sources = lane.steps[index].sources;
                     sources.erase(sources.begin() + static_cast<std::ptrdiff_t>(i));
                   }});
    all.push_back({"source partial turned", [=](Lane& lane) { lane.steps[index].sources[i].partial ^= true; }});
    if (!has_peer(step.sources[i])) continue;
    all.push_back({"source from the next peer", [=](Lane& lane) { ++lane.steps[index].sources[i].peer; }});
  }
  for (std::size_t i = 0; i < step.sinks.size(); ++i) {
    all.push_back({"sink dropped", [=](Lane& lane) {
                     std::vector<Operand>& sinks = lane.steps[index].sinks;
                     sinks.erase(sinks.begin() + static_cast<std::ptrdiff_t>(i));
                   }});
    all.push_back({"sink partial turned", [=](Lane& lane) { lane.steps[index].sinks[i].partial ^= true; }});
    if (!has_peer(step.sinks[i])) continue;
    all.push_back({"sink to the next peer", [=](Lane& lane) { ++lane.steps[index].sinks[i].peer; }});
  }
  return all;
}

// Returns how many damaged plans it made.
int expect_damage_is_found(const Plans& right) {
  int made = 0;
  for (std::size_t rank = 0; rank < right.size(); ++rank) {
    const std::vector<Lane>& lanes = right[rank].channels[0].lanes;
    for (std::size_t l = 0; l < lanes.size(); ++l) {
      for (std::size_t s = 0; s < lanes[l].steps.size(); ++s) {
        for (const Damage& damage : damages(lanes[l].steps[s], s)) {
          Plans damaged = right;
          damage.apply(damaged[rank].channels[0].lanes[l]);
          EXPECT_FALSE(check(damaged)) << right[0].algorithm << " " << to_string(right[0].collective) << " rank " << rank
                                       << " lane " << l << " step " << s << ": " << damage.what;
          ++made;
        }
      }
    }
  }
  return made;
}

TEST(Check, FindsEverySmallChange) {
  int made = 0;
  for (const Algorithm* algorithm : algorithms()) {
    for (int kind = 0; kind < kCollectiveCount; ++kind) {
      const auto collective = static_cast<Collective>(kind);
      PlanRequest request;
      request.collective = collective;
      request.n_ranks = 5;
      request.bytes = 1 << 20;
      request.mapped_buffers = true;
      const bool point_to_point = collective == Collective::send || collective == Collective::recv;
      if (point_to_point || !algorithm->unsupported(request).empty()) continue;
      made += expect_damage_is_found(plans_of(std::string(algorithm->name), collective, 5, 2));
    }
  }
  EXPECT_GT(made, 1000);
}

}  // namespace
}  // namespace hocket
