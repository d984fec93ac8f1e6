// SPDX-License-Identifier: Apache-2.0
// Host streams: order, query, errors at synchronisation, several streams, and ends with work pending (G3).
#include <memory>

#include "collectives/call.h"

namespace hocket::test {
namespace {

class HostStream {
 public:
  HostStream() { ok(hocketStreamCreate(&stream_)); }
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream() { hocketStreamDestroy(stream_); }
  operator hocketStream_t() const { return stream_; }
  hocketStream_t get() const { return stream_; }

 private:
  hocketStream_t stream_ = nullptr;
};

TEST(Streams, EveryCollective) {
  for (const int n : {1, 3}) {
    const LocalRanks ranks(n);
    std::vector<std::unique_ptr<PreparedCall>> calls;
    for (int k = 0; k < kKindCount; ++k)
      for (const std::size_t count : {5, 5000}) {
        Call call{.kind = kind_at(k), .type = hocketInt16, .root = n - 1, .count = count, .seed = count};
        if (vector_form(call.kind)) call.counts = random_counts(call.kind, n, count, 30, count);
        calls.push_back(std::make_unique<PreparedCall>(call, n));
      }
    ranks.run([&](int rank, hocketComm_t comm) {
      const HostStream stream;
      for (const auto& call : calls) ok(call->issue(rank, comm, stream));
      ok(hocketStreamSynchronize(stream));
      ok(hocketStreamQuery(stream));
    });
    for (const auto& call : calls) EXPECT_EQ(call->wrong(), "");
  }
}

// Each call adds to what the one before left: only this order gives this result.
TEST(Streams, CallsRunInOrder) {
  const LocalRanks ranks(2);
  ranks.run([](int rank, hocketComm_t comm) {
    const HostStream stream;
    std::int64_t value = rank + 1;  // 1 and 2
    for (int i = 0; i < 20; ++i) {
      ok(hocketAllReduce(&value, &value, 1, hocketInt64, hocketSum, comm, stream));
      ok(hocketBroadcast(&value, &value, 1, hocketInt64, i % 2, comm, stream));
    }
    ok(hocketStreamSynchronize(stream));
    EXPECT_EQ(value, std::int64_t{3} << 19);
  });
}

TEST(Streams, QueryTellsWhetherWorkIsLeft) {
  const LocalRanks ranks(2);
  const HostStream stream;
  ok(hocketStreamQuery(stream));
  std::int32_t in[2] = {1, 2}, out[2] = {0, 0};
  // Rank 1 is not there yet.
  ok(hocketAllReduce(&in[0], &out[0], 1, hocketInt32, hocketSum, ranks[0], stream));
  EXPECT_EQ(hocketStreamQuery(stream), hocketInProgress);
  ok(hocketAllReduce(&in[1], &out[1], 1, hocketInt32, hocketSum, ranks[1], nullptr));
  EXPECT_TRUE(wait_until([&] { return hocketStreamQuery(stream) == hocketSuccess; }));
  EXPECT_EQ(out[0], 3);
}

TEST(Streams, TwoStreamsOfOneCommunicatorKeepTheOrderOfCalls) {
  const LocalRanks ranks(2);
  ranks.run([](int rank, hocketComm_t comm) {
    const HostStream first, second;
    std::vector<std::int32_t> sums(60);
    const std::int32_t mine = rank + 1;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      // Blocking calls between them, and another mixture on each rank, take their turn too.
      const std::size_t choice = (i * static_cast<std::size_t>(rank + 1) + static_cast<std::size_t>(rank)) % 5;
      const hocketStream_t stream = choice < 2 ? first.get() : choice < 4 ? second.get() : nullptr;
      ok(hocketAllReduce(&mine, &sums[i], 1, hocketInt32, i % 2 == 0 ? hocketSum : hocketProd, comm, stream));
    }
    ok(hocketStreamSynchronize(second));
    ok(hocketStreamSynchronize(first));
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], i % 2 == 0 ? 3 : 2);
  });
}

TEST(Streams, CountArraysAreReadBeforeTheCallReturns) {
  const LocalRanks ranks(2);
  ranks.run([](int rank, hocketComm_t comm) {
    const HostStream stream;
    std::int32_t in[3] = {rank, rank, rank}, out[5] = {-1, -1, -1, -1, -1};
    std::size_t counts[2] = {3, 2}, displs[2] = {0, 3};
    ok(hocketAllGatherV(in, counts[rank], out, counts, displs, hocketInt32, comm, stream));
    counts[0] = counts[1] = displs[1] = 77;
    ok(hocketStreamSynchronize(stream));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(out[i], i < 3 ? 0 : 1);
  });
}

TEST(Streams, GroupOverTwoStreams) {
  const LocalRanks ranks(2), others(2);
  ranks.run([&](int rank, hocketComm_t comm) {
    const HostStream first, second;
    std::int32_t in = rank + 1, out = 0, other = 0, after = 0;
    hocketGroupStart();
    ok(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, comm, first));
    ok(hocketAllReduce(&in, &other, 1, hocketInt32, hocketProd, others[rank], second));
    ok(hocketGroupEnd());
    ok(hocketAllReduce(&other, &after, 1, hocketInt32, hocketSum, others[rank], second));
    ok(hocketStreamSynchronize(first));
    ok(hocketStreamSynchronize(second));
    EXPECT_EQ(out, 3);
    EXPECT_EQ(other, 2);
    EXPECT_EQ(after, 4);
  });
}

TEST(Streams, ArgumentErrorsComeAtOnceAndOthersAtSynchronize) {
  LocalRanks ranks(2);
  const HostStream stream;
  std::int32_t in = 1, out = 0;
  refused(hocketAllReduce(&in, nullptr, 1, hocketInt32, hocketSum, ranks[0], stream), hocketInvalidArgument,
          "recvbuff");
  ok(hocketStreamSynchronize(stream));
  // Rank 1 leaves while rank 0's stream waits for it.
  ok(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], stream));
  ok(hocketCommAbort(ranks[1]));
  ranks.forget(1);
  refused(hocketStreamSynchronize(stream), hocketRemoteError, "rank 1");
  ok(hocketStreamSynchronize(stream));  // told once
  hocketResult_t state = hocketSuccess;
  ok(hocketCommGetAsyncError(ranks[0], &state));
  EXPECT_EQ(state, hocketRemoteError);
  refused(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], stream), hocketRemoteError, "rank 1");
}

TEST(Streams, DestroyCompletesPendingWork) {
  LocalRanks ranks(2);
  std::int32_t in[2] = {1, 2}, out[2][50] = {};
  ranks.run([&](int rank, hocketComm_t comm) {
    const HostStream stream;
    for (int i = 0; i < 50; ++i) ok(hocketAllReduce(&in[rank], &out[rank][i], 1, hocketInt32, hocketSum, comm, stream));
    ok(hocketCommDestroy(comm));
    for (const std::int32_t sum : out[rank]) EXPECT_EQ(sum, 3);
    ok(hocketStreamSynchronize(stream));
  });
  ranks.forget(0);
  ranks.forget(1);
}

TEST(Streams, DestroyWithWorkThatNoPeerJoinsIsBounded) {
  LocalRanks ranks(2);
  const HostStream stream;
  std::int32_t in = 1, out = 0;
  for (int i = 0; i < 3; ++i) ok(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], stream));
  const auto started = std::chrono::steady_clock::now();
  refused(hocketCommDestroy(ranks[0]), hocketInvalidUsage, "destroyed with 3");
  EXPECT_LT(std::chrono::steady_clock::now() - started, 15s);
  ranks.forget(0);
  EXPECT_NE(hocketStreamSynchronize(stream), hocketSuccess);
  hocketResult_t state = hocketSuccess;
  EXPECT_TRUE(wait_until(
      [&] { return hocketCommGetAsyncError(ranks[1], &state) == hocketSuccess && state == hocketRemoteError; }));
}

TEST(Streams, FinalizeThenOnlyDestroy) {
  LocalRanks ranks(2);
  std::int32_t in[2] = {1, 2}, out[2] = {};
  ranks.run([&](int rank, hocketComm_t comm) {
    const HostStream stream;
    ok(hocketAllReduce(&in[rank], &out[rank], 1, hocketInt32, hocketSum, comm, stream));
    ok(hocketCommFinalize(comm));
    EXPECT_EQ(out[rank], 3);
    refused(hocketAllReduce(&in[rank], &out[rank], 1, hocketInt32, hocketSum, comm, nullptr), hocketInvalidUsage,
            "finalized");
    refused(hocketBarrier(comm, stream), hocketInvalidUsage, "finalized");
    int count = 0;
    ok(hocketCommCount(comm, &count));
    EXPECT_EQ(count, 2);
  });
}

TEST(Streams, DeadStreamsAreRefused) {
  const LocalRanks ranks(2);
  hocketStream_t stream = nullptr;
  ok(hocketStreamCreate(&stream));
  ok(hocketStreamDestroy(stream));
  refused(hocketStreamDestroy(stream), hocketInvalidArgument, "stream");
  refused(hocketStreamSynchronize(stream), hocketInvalidArgument, "stream");
  refused(hocketStreamQuery(stream), hocketInvalidArgument, "stream");
  refused(hocketStreamSynchronize(nullptr), hocketInvalidArgument, "stream");
  refused(hocketStreamCreate(nullptr), hocketInvalidArgument, "NULL");
  std::int32_t in = 1, out = 0;
  refused(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], stream), hocketInvalidArgument, "stream");
  refused(hocketBarrier(ranks[0], reinterpret_cast<hocketStream_t>(&in)), hocketInvalidArgument, "stream");
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 3}});
}

}  // namespace
}  // namespace hocket::test
