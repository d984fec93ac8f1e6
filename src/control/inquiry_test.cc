// SPDX-License-Identifier: Apache-2.0
#include "control/inquiry.h"

#include <gtest/gtest.h>

#include "plan/plan.h"

namespace hocket::control {
namespace {

CallRecord call(std::uint64_t sequence, Collective collective, std::uint64_t count) {
  CallRecord record;
  record.sequence = sequence;
  record.collective = static_cast<std::uint8_t>(collective);
  record.datatype = hocketFloat32;
  record.op = hocketSum;
  record.count = count;
  return record;
}

class Inquiry : public ::testing::Test {
 protected:
  explicit Inquiry(int n_ranks = 4) {
    for (int rank = 0; rank < n_ranks; ++rank) ranks_.push_back({rank, rank + 100, "a"});
    witnesses_.resize(static_cast<std::size_t>(n_ranks));
  }
  void in_call(int rank, const CallRecord& record) {
    Statement statement;
    statement.report = {record.sequence, true, false, record};
    witnesses_[static_cast<std::size_t>(rank)].statement = statement;
  }
  // As seen from the question about call 7: its last call is an earlier one.
  void idle_after(int rank, const CallRecord& record) {
    Statement statement;
    statement.report = {record.sequence, false, false, std::nullopt};
    statement.last = record;
    witnesses_[static_cast<std::size_t>(rank)].statement = statement;
  }
  Verdict verdict(std::vector<std::int32_t> awaited, std::optional<Error> fallback = {}) {
    return judge({0, 7, std::move(awaited), std::move(fallback)}, ranks_, witnesses_);
  }

  const CallRecord reduce_ = call(7, Collective::all_reduce, 1000);
  const CallRecord gather_ = call(7, Collective::all_gather, 250);
  const CallRecord before_ = call(6, Collective::all_reduce, 8);
  std::vector<RankInfo> ranks_;
  std::vector<Witness> witnesses_;
};

TEST_F(Inquiry, NamesBothCallsAndTheOddRank) {
  for (const int rank : {0, 1, 3}) in_call(rank, reduce_);
  in_call(2, gather_);
  const Verdict found = verdict({2});
  ASSERT_TRUE(found.failure);
  EXPECT_EQ(found.failure->code, hocketErrorMismatch);
  EXPECT_EQ(found.failure->text,
            "call 7: ranks 0,1,3 called AllReduce(count 1000, Float32, Sum), rank 2 called AllGather(count 250, Float32); every "
            "rank makes the same calls in the same order");
}

TEST_F(Inquiry, TheMajorityIsNamedFirstAndThenTheLowestRank) {
  in_call(0, gather_);
  in_call(1, reduce_);
  in_call(2, reduce_);
  EXPECT_TRUE(verdict({1}).failure->text.starts_with("call 7: ranks 1,2 called AllReduce"));
  witnesses_[2].statement.reset();
  EXPECT_TRUE(verdict({1}).failure->text.starts_with("call 7: rank 0 called AllGather"));
}

TEST_F(Inquiry, TheHistoryOfARankThatWentOnCountsToo) {
  in_call(0, reduce_);
  Statement ahead;
  ahead.report = {9, true, false, gather_};
  witnesses_[1].statement = ahead;
  EXPECT_EQ(verdict({1}).failure->code, hocketErrorMismatch);
  ahead.report.record.reset();  // forgotten: nothing to compare
  ahead.last = call(9, Collective::barrier, 0);
  witnesses_[1].statement = ahead;
  const Verdict found = verdict({1});
  EXPECT_FALSE(found.failure);
  EXPECT_EQ(found.explanation, "rank 1 (pid 101, host a) has passed call 7: it is in call 9 Barrier()");
}

TEST_F(Inquiry, PointToPointCallsAreNotCompared) {
  in_call(0, call(7, Collective::send, 1));
  in_call(1, call(7, Collective::recv, 2));
  EXPECT_FALSE(verdict({1}).failure);
}

TEST_F(Inquiry, LateRanksAreNamedWithWhatTheyDo) {
  in_call(0, reduce_);
  idle_after(2, before_);
  EXPECT_EQ(verdict({2}).explanation,
            "rank 2 (pid 102, host a) has not come to call 7: it is not in a call, its last was call 6 AllReduce(count 8, "
            "Float32, Sum)");
  witnesses_[2].statement->report.in_call = true;
  EXPECT_EQ(verdict({2}).explanation,
            "rank 2 (pid 102, host a) has not come to call 7: it is in call 6 AllReduce(count 8, Float32, Sum)");
  witnesses_[2].statement->report.point_to_point = true;
  EXPECT_EQ(verdict({2}).explanation,
            "rank 2 (pid 102, host a) has not come to call 7: it is in a point-to-point call after call 6 AllReduce(count 8, "
            "Float32, Sum)");
  witnesses_[2].statement = Statement{};
  EXPECT_EQ(verdict({2}).explanation, "rank 2 (pid 102, host a) has not come to call 7: it is not in a call and has made none");
  witnesses_[2].statement.reset();
  EXPECT_EQ(verdict({2}).explanation, "rank 2 (pid 102, host a) does not answer (stopped?)");
  in_call(1, reduce_);
  EXPECT_EQ(verdict({1, 2}).explanation,
            "rank 1 (pid 101, host a) is in the same call; rank 2 (pid 102, host a) does not answer (stopped?)");
}

TEST_F(Inquiry, AnAwaitedRankThatLeftIsAFailure) {
  in_call(0, reduce_);
  witnesses_[1].presence = Presence::left;
  const Verdict left = verdict({1});
  ASSERT_TRUE(left.failure);
  EXPECT_EQ(left.failure->code, hocketRemoteError);
  EXPECT_EQ(left.failure->text,
            "rank 1 (pid 101, host a) has destroyed its communicator; call 7 AllReduce(count 1000, Float32, Sum) cannot complete");
  witnesses_[1].presence = Presence::dead;
  EXPECT_TRUE(verdict({1}).failure->text.starts_with("rank 1 (pid 101, host a) died; call 7"));
  in_call(2, reduce_);
  EXPECT_FALSE(verdict({2}).failure) << "nobody waits for rank 1";
  witnesses_[0].statement->report.in_call = false;
  EXPECT_FALSE(verdict({1}).failure) << "the wait is over meanwhile";
}

TEST_F(Inquiry, AMismatchThatWasSeenIsAFailureInAnyCase) {
  in_call(0, reduce_);
  in_call(1, reduce_);
  const Error fallback{hocketErrorMismatch, "rank 1 sent 8 bytes, 4 fit"};
  EXPECT_EQ(verdict({}, fallback).failure->text, fallback.text);
  in_call(1, gather_);
  EXPECT_NE(verdict({}, fallback).failure->text, fallback.text);
}

TEST(RanksText, JoinsRuns) {
  EXPECT_EQ(ranks_text({2}), "rank 2");
  EXPECT_EQ(ranks_text({0, 1, 3}), "ranks 0,1,3");
  EXPECT_EQ(ranks_text({0, 1, 2, 3, 7}), "ranks 0-3,7");
}

TEST(CallText, ShowsWhatRanksAgreeOn) {
  CallRecord record = call(1, Collective::reduce, 1024);
  record.root = 2;
  EXPECT_EQ(call_text(record), "Reduce(count 1024, Float32, Sum, root 2)");
  record = call(1, Collective::barrier, 0);
  EXPECT_EQ(call_text(record), "Barrier()");
  record = call(1, Collective::broadcast, 3);
  record.datatype = hocketBfloat16;
  EXPECT_EQ(call_text(record), "Broadcast(count 3, Bfloat16, root 0)");
  record = call(1, Collective::all_to_all, 0);
  record.vector_form = 1;
  EXPECT_EQ(call_text(record), "AlltoAllV(Float32)");
  record.collective = 99;
  EXPECT_EQ(call_text(record), "unknown call 99");
}

}  // namespace
}  // namespace hocket::control
