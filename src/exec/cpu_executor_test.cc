// SPDX-License-Identifier: Apache-2.0
// What an execution says of itself while it waits. That it computes the right thing is tests/transport/executor_test.cc's
// part.
#include "exec/cpu_executor.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "exec/small_program.h"
#include "plan/planner.h"
#include "shm/shm_transport.h"

namespace hocket {
namespace {

constexpr int kRanks = 3;

// Three ranks in this thread, each with the same all_reduce of eight numbers.
class Waiting : public testing::Test {
 protected:
  void SetUp() override {
    Settings settings;
    settings.slot_bytes = 256;
    const ShmLayout layout(kRanks, settings);
    auto memory = Mapping::anonymous(layout.total_bytes());
    ASSERT_TRUE(memory);
    const auto shared = std::make_shared<Mapping>(std::move(*memory));
    for (int rank = 0; rank < kRanks; ++rank)
      transports_.push_back(std::make_unique<ShmTransport>(rank, kRanks, layout, shared));
  }

  const Program& program(int rank, const char* algorithm, Collective collective = Collective::all_reduce,
                         int root = 0) {
    PlanRequest request;
    request.collective = collective;
    request.n_ranks = kRanks;
    request.root = root;
    request.bytes = sizeof in_[0];
    request.algorithm = algorithm;
    request.caps = transports_[0]->caps();
    auto plan = make_plan(request, rank);
    EXPECT_TRUE(plan && plan->algorithm == algorithm);
    auto made = make_program(std::move(*plan), *transports_[static_cast<std::size_t>(rank)]);
    EXPECT_TRUE(made);
    programs_.push_back(std::make_unique<Program>(std::move(*made)));
    return *programs_.back();
  }

  CallData data(int rank, const Program& program, std::uint32_t fingerprint = 5) {
    const auto r = static_cast<std::size_t>(rank);
    CallData data;
    for (int& value : in_[r]) value = rank + 1;
    data.input = reinterpret_cast<const std::byte*>(in_[r]);
    data.output = reinterpret_cast<std::byte*>(out_[r]);
    data.input_blocks.count = 8;
    data.input_blocks.n_blocks = static_cast<std::size_t>(program.plan.n_blocks);
    data.output_blocks = data.input_blocks;
    data.element_bytes = data.partial_bytes = sizeof(int);
    data.move = move_function(hocketInt32, hocketSum);
    data.fingerprint = fingerprint;
    return data;
  }

  std::vector<int> awaited(const Execution& execution) {
    std::vector<int> ranks;
    execution.add_awaited(ranks);
    return ranks;
  }

  std::vector<std::unique_ptr<ShmTransport>> transports_;
  std::vector<std::unique_ptr<Program>> programs_;
  int in_[kRanks][8] = {};
  int out_[kRanks][8] = {};
  Doorbells none_;
};

TEST_F(Waiting, AwaitedShrinkAsPeersCome) {
  Execution executions[kRanks];
  const auto start = [&](int rank) {
    const Program& made = program(rank, "one_shot");
    executions[rank].start(made, data(rank, made), none_);
  };
  start(1);
  while (executions[1].advance()) {
  }
  EXPECT_FALSE(executions[1].could_advance());
  EXPECT_EQ(awaited(executions[1]), (std::vector<int>{0, 2}));
  EXPECT_EQ(executions[1].mismatched_peer(), -1);
  start(2);
  executions[2].advance();
  EXPECT_EQ(awaited(executions[1]), std::vector<int>{0});
  EXPECT_FALSE(executions[1].could_advance());
  start(0);
  executions[0].advance();
  EXPECT_TRUE(executions[1].could_advance());
  EXPECT_TRUE(awaited(executions[1]).empty());
  for (Execution& execution : executions) {
    while (execution.advance()) {
    }
    EXPECT_TRUE(execution.done());
  }
  for (const auto& out : out_)
    for (const int value : out) EXPECT_EQ(value, 6);
}

TEST_F(Waiting, DataOfAnotherCallNameTheirSender) {
  Execution mine, theirs;
  const Program& made = program(1, "one_shot");
  const Program& other = program(2, "one_shot");
  mine.start(made, data(1, made, 5), none_);
  theirs.start(other, data(2, other, 6), none_);
  mine.advance();
  theirs.advance();
  EXPECT_FALSE(mine.advance());
  EXPECT_EQ(mine.mismatched_peer(), 2);
  EXPECT_EQ(theirs.mismatched_peer(), 1);
  EXPECT_EQ(awaited(mine), (std::vector<int>{0, 2})) << "data of another call are none";
}

TEST_F(Waiting, ProducersNameTheConsumersThatKeepThem) {
  Execution execution;
  const Program& made = program(0, "flat", Collective::broadcast);
  for (int call = 0; call < 100; ++call) {
    execution.start(made, data(0, made), none_);
    while (execution.advance()) {
    }
    if (!execution.done()) break;
  }
  ASSERT_FALSE(execution.done()) << "slots run out";
  EXPECT_EQ(awaited(execution), (std::vector<int>{1, 2}));
}

TEST_F(Waiting, FastPathSaysTheSame) {
  const Program& mine = program(1, "one_shot");
  const CallData call = data(1, mine);
  auto small = SmallProgram::make(mine, call);
  if (!small) GTEST_SKIP() << "one_shot takes the general walk between three ranks";
  std::vector<int> ranks;
  const Status status = small->run(call.input, call.output, 5, none_, [&](auto&& ready) -> Status {
    EXPECT_FALSE(ready());
    small->add_awaited(5, ranks);
    EXPECT_EQ(small->mismatched_peer(5), -1);
    return fail(hocketErrorTimeout, "enough");
  });
  EXPECT_FALSE(status);
  EXPECT_EQ(ranks, (std::vector<int>{0, 2}));

  Execution theirs;
  const Program& other = program(2, "one_shot");
  theirs.start(other, data(2, other, 9), none_);
  theirs.advance();
  EXPECT_EQ(small->mismatched_peer(5), 2);
}

TEST_F(Waiting, NothingToMoveIsDoneAtOnce) {
  Execution execution;
  const Program& made = program(0, "one_shot");
  CallData empty = data(0, made);
  empty.input_blocks.count = empty.output_blocks.count = 0;
  execution.start(made, empty, none_);
  EXPECT_TRUE(execution.done());
  EXPECT_FALSE(execution.advance());
}

TEST_F(Waiting, MissingRingsAreAnErrorWithTheirName) {
  PlanRequest request;
  request.n_ranks = 7;  // more than the transport connects
  request.bytes = 32;
  request.algorithm = "ring";
  auto plan = make_plan(request, 2);
  ASSERT_TRUE(plan);
  const auto made = make_program(std::move(*plan), *transports_[2]);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, hocketInternalError);
  EXPECT_NE(made.error().text.find("shm gives no"), std::string::npos) << made.error().text;
}

}  // namespace
}  // namespace hocket
