// SPDX-License-Identifier: Apache-2.0
// Wrong arguments and dead handles: a code and a sentence, no crash, and a communicator that still works.
#include <cstring>

#include "collectives/call.h"

namespace hocket::test {
namespace {

alignas(16) std::int32_t in[64], out[64];

// Every call on a handle that is none.
void expect_refused_everywhere(hocketComm_t comm) {
  const auto code = hocketInvalidArgument;
  const std::size_t counts[4] = {1, 1, 1, 1}, displs[4] = {0, 1, 2, 3};
  const char* const word = "communicator";
  refused(hocketAllReduce(in, out, 1, hocketInt32, hocketSum, comm, nullptr), code, word);
  refused(hocketBroadcast(in, out, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketBcast(in, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketReduce(in, out, 1, hocketInt32, hocketSum, 0, comm, nullptr), code, word);
  refused(hocketAllGather(in, out, 1, hocketInt32, comm, nullptr), code, word);
  refused(hocketReduceScatter(in, out, 1, hocketInt32, hocketSum, comm, nullptr), code, word);
  refused(hocketAlltoAll(in, out, 1, hocketInt32, comm, nullptr), code, word);
  refused(hocketGather(in, out, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketScatter(in, out, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketBarrier(comm, nullptr), code, word);
  refused(hocketAllGatherV(in, 1, out, counts, displs, hocketInt32, comm, nullptr), code, word);
  refused(hocketReduceScatterV(in, out, counts, hocketInt32, hocketSum, comm, nullptr), code, word);
  refused(hocketAlltoAllV(in, counts, displs, out, counts, displs, hocketInt32, comm, nullptr), code, word);
  refused(hocketGatherV(in, 1, out, counts, displs, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketScatterV(in, counts, displs, out, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketSend(in, 1, hocketInt32, 0, comm, nullptr), code, word);
  refused(hocketRecv(out, 1, hocketInt32, 0, comm, nullptr), code, word);
  hocketGroupStart();
  refused(hocketBarrier(comm, nullptr), code, word);
  refused(hocketGroupEnd(), code, word);

  int number = 0;
  std::size_t length = 0;
  hocketResult_t state = hocketSuccess;
  hocketRedOp_t op;
  void* token = nullptr;
  refused(hocketCommCount(comm, &number), code, word);
  refused(hocketCommUserRank(comm, &number), code, word);
  refused(hocketCommCuDevice(comm, &number), code, word);
  refused(hocketCommGetAsyncError(comm, &state), code, word);
  refused(hocketCommDescribe(comm, nullptr, &length), code, word);
  refused(hocketCommFinalize(comm), code, word);
  refused(hocketCommDestroy(comm), code, word);
  refused(hocketCommAbort(comm), code, word);
  refused(hocketCommRegister(comm, in, 4, &token), code, word);
  refused(hocketCommDeregister(comm, token), code, word);
  refused(hocketRedOpCreatePreMulSum(&op, in, hocketInt32, hocketScalarHostImmediate, comm), code, word);
  refused(hocketRedOpCreateUser(
              &op, [](void*, const void*, std::size_t, hocketDataType_t, void*) {}, nullptr, comm),
          code, word);
  refused(hocketRedOpDestroy(hocketNumOps, comm), code, word);
  ASSERT_NE(hocketGetLastError(comm), nullptr);
}

TEST(Handles, NullAndGarbage) {
  const LocalRanks ranks(2);  // a live one beside them
  expect_refused_everywhere(nullptr);
  for (const std::uintptr_t garbage :
       {std::uintptr_t{1}, std::uintptr_t{0xfffff}, std::uintptr_t{1} << 20, ~std::uintptr_t{0},
        reinterpret_cast<std::uintptr_t>(in), std::uintptr_t{0xdeadbeefdeadbeef}})
    expect_refused_everywhere(reinterpret_cast<hocketComm_t>(garbage));
}

TEST(Handles, StaleAfterDestroy) {
  hocketComm_t comms[2];
  ASSERT_TRUE(ok(hocketCommInitAll(comms, 2, nullptr)));
  ok(hocketCommDestroy(comms[0]));
  ok(hocketCommDestroy(comms[1]));
  expect_refused_everywhere(comms[0]);
  // A new communicator takes the place, not the handle.
  const LocalRanks ranks(2);
  EXPECT_NE(ranks[0], comms[0]);
  expect_refused_everywhere(comms[1]);
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 9}});
}

TEST(Handles, UseAfterAbort) {
  LocalRanks ranks(3);
  ok(hocketCommAbort(ranks[1]));
  expect_refused_everywhere(ranks[1]);
  ranks.forget(1);
  hocketResult_t state = hocketSuccess;
  for (const int rank : {0, 2}) {
    EXPECT_TRUE(wait_until(
        [&] { return hocketCommGetAsyncError(ranks[rank], &state) == hocketSuccess && state != hocketSuccess; }));
    // Every later call returns the first error.
    for (int i = 0; i < 2; ++i)
      refused(hocketAllReduce(in, out, 4, hocketInt32, hocketSum, ranks[rank], nullptr), hocketRemoteError, "rank 1");
    refused(hocketSend(in, 1, hocketInt32, 1, ranks[rank], nullptr), hocketRemoteError, "rank 1");
    hocketGroupStart();
    hocketBarrier(ranks[rank], nullptr);
    refused(hocketGroupEnd(), hocketRemoteError, "rank 1");
    EXPECT_NE(std::string(hocketGetLastError(ranks[rank])).find("rank 1"), std::string::npos);
  }
}

// The same once the call's shape is known.
TEST(Handles, UseAfterAbortOfARepeatedCall) {
  LocalRanks ranks(2);
  for (int i = 0; i < 3; ++i)
    ranks.run([](int, hocketComm_t comm) {
      std::int32_t a = 1, b = 0;
      ok(hocketAllReduce(&a, &b, 1, hocketInt32, hocketSum, comm, nullptr));
    });
  ok(hocketCommAbort(ranks[1]));
  ranks.forget(1);
  refused(hocketAllReduce(in, out, 1, hocketInt32, hocketSum, ranks[0], nullptr), hocketRemoteError, "rank 1");
}

struct Arguments : ::testing::Test {
  const LocalRanks ranks{2};
  const hocketComm_t comm = ranks[0];
  static constexpr auto kCode = hocketInvalidArgument;
  void TearDown() override {
    // Nothing was sent: rank 1 knows of nothing.
    run_calls(ranks, {{.kind = Kind::all_reduce, .count = 33}, {.kind = Kind::ring_shift, .count = 5}});
  }
};

TEST_F(Arguments, NullBuffers) {
  const std::size_t counts[2] = {1, 1}, displs[2] = {0, 1};
  refused(hocketAllReduce(nullptr, out, 1, hocketInt32, hocketSum, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketAllReduce(in, nullptr, 1, hocketInt32, hocketSum, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketBroadcast(nullptr, out, 1, hocketInt32, 0, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketBroadcast(nullptr, nullptr, 1, hocketInt32, 1, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketBcast(nullptr, 1, hocketInt32, 0, comm, nullptr), kCode, "NULL");
  refused(hocketReduce(in, nullptr, 1, hocketInt32, hocketSum, 0, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketAllGather(in, nullptr, 1, hocketInt32, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketReduceScatter(nullptr, out, 1, hocketInt32, hocketSum, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketAlltoAll(nullptr, out, 1, hocketInt32, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketGather(in, nullptr, 1, hocketInt32, 0, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketScatter(nullptr, out, 1, hocketInt32, 0, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketSend(nullptr, 1, hocketInt32, 1, comm, nullptr), kCode, "sendbuff is NULL");
  refused(hocketRecv(nullptr, 1, hocketInt32, 1, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketAllGatherV(in, 1, nullptr, counts, displs, hocketInt32, comm, nullptr), kCode, "recvbuff is NULL");
  refused(hocketAlltoAllV(nullptr, counts, displs, out, counts, displs, hocketInt32, comm, nullptr), kCode,
          "sendbuff is NULL");
}

TEST_F(Arguments, NullCounts) {
  const std::size_t counts[2] = {1, 1}, displs[2] = {0, 1};
  refused(hocketAllGatherV(in, 1, out, nullptr, displs, hocketInt32, comm, nullptr), kCode, "NULL");
  refused(hocketReduceScatterV(in, out, nullptr, hocketInt32, hocketSum, comm, nullptr), kCode, "NULL");
  refused(hocketAlltoAllV(in, nullptr, displs, out, counts, displs, hocketInt32, comm, nullptr), kCode, "NULL");
  refused(hocketAlltoAllV(in, counts, displs, out, nullptr, displs, hocketInt32, comm, nullptr), kCode, "NULL");
  refused(hocketGatherV(in, 1, out, nullptr, displs, hocketInt32, 0, comm, nullptr), kCode, "NULL");
  refused(hocketScatterV(in, nullptr, displs, out, 1, hocketInt32, 0, comm, nullptr), kCode, "NULL");
}

TEST_F(Arguments, OwnCountsThatDisagree) {
  const std::size_t counts[2] = {2, 3}, displs[2] = {0, 2};
  refused(hocketAllGatherV(in, 1, out, counts, displs, hocketInt32, comm, nullptr), kCode, "recvcounts[0]");
  refused(hocketGatherV(in, 3, out, counts, displs, hocketInt32, 0, comm, nullptr), kCode, "recvcounts[0]");
  refused(hocketScatterV(in, counts, displs, out, 1, hocketInt32, 0, comm, nullptr), kCode, "sendcounts[0]");
  const std::size_t other[2] = {1, 3};
  refused(hocketAlltoAllV(in, counts, displs, out, other, displs, hocketInt32, comm, nullptr), kCode, "itself");
}

TEST_F(Arguments, RootsAndPeers) {
  for (const int root : {-1, 2, 1000, INT_MIN, INT_MAX}) {
    refused(hocketBroadcast(in, out, 1, hocketInt32, root, comm, nullptr), kCode, "root");
    refused(hocketBcast(in, 1, hocketInt32, root, comm, nullptr), kCode, "root");
    refused(hocketReduce(in, out, 1, hocketInt32, hocketSum, root, comm, nullptr), kCode, "root");
    refused(hocketGather(in, out, 1, hocketInt32, root, comm, nullptr), kCode, "root");
    refused(hocketScatter(in, out, 1, hocketInt32, root, comm, nullptr), kCode, "root");
    refused(hocketSend(in, 1, hocketInt32, root, comm, nullptr), kCode, "peer");
    refused(hocketRecv(out, 1, hocketInt32, root, comm, nullptr), kCode, "peer");
  }
}

TEST_F(Arguments, TypesAndOperations) {
  for (const int type : {-1, static_cast<int>(hocketNumTypes), 100, INT_MAX, INT_MIN}) {
    const auto wrong = static_cast<hocketDataType_t>(type);
    refused(hocketAllReduce(in, out, 1, wrong, hocketSum, comm, nullptr), kCode, "datatype");
    refused(hocketBroadcast(in, out, 1, wrong, 0, comm, nullptr), kCode, "datatype");
    refused(hocketSend(in, 1, wrong, 1, comm, nullptr), kCode, "datatype");
    hocketRedOp_t op;
    refused(hocketRedOpCreatePreMulSum(&op, in, wrong, hocketScalarHostImmediate, comm), kCode, "datatype");
  }
  for (const int op : {-1, static_cast<int>(hocketNumOps), 100, INT_MAX, INT_MIN}) {
    const auto wrong = static_cast<hocketRedOp_t>(op);
    refused(hocketAllReduce(in, out, 1, hocketInt32, wrong, comm, nullptr), kCode, "operation");
    refused(hocketReduceScatter(in, out, 1, hocketInt32, wrong, comm, nullptr), kCode, "operation");
    hocketGroupStart();
    const hocketResult_t at_call = hocketAllReduce(in, out, 1, hocketInt32, wrong, comm, nullptr);
    const hocketResult_t at_end = hocketGroupEnd();
    EXPECT_EQ(at_call == hocketSuccess ? at_end : at_call, kCode);
  }
  hocketRedOp_t op;
  refused(hocketRedOpCreatePreMulSum(&op, in, hocketInt32, static_cast<hocketScalarResidence_t>(7), comm), kCode,
          "residence");
}

TEST_F(Arguments, SizesThatOverflow) {
  // SIZE_MAX / 8 + 2 elements of 8 bytes are few bytes modulo 2^64.
  for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 8 + 2, SIZE_MAX / 16 + 2}) {
    refused(hocketAllReduce(in, out, count, hocketInt64, hocketSum, comm, nullptr), kCode, "overflow");
    refused(hocketAllGather(in, out, count, hocketInt64, comm, nullptr), kCode, "overflow");
    refused(hocketReduceScatter(in, out, count, hocketInt64, hocketSum, comm, nullptr), kCode, "overflow");
    refused(hocketAlltoAll(in, out, count, hocketInt64, comm, nullptr), kCode, "overflow");
    refused(hocketBroadcast(in, out, count, hocketInt64, 0, comm, nullptr), kCode, "overflow");
    refused(hocketBroadcast(in, out, count, hocketInt64, 1, comm, nullptr), kCode, "overflow");
    refused(hocketSend(in, count, hocketInt64, 1, comm, nullptr), kCode, "overflow");
  }
  // Each block fits, all of them do not.
  refused(hocketAllGather(in, out, SIZE_MAX / 16 - 1, hocketInt64, comm, nullptr), kCode, "overflow");
  const std::size_t counts[2] = {4, SIZE_MAX / 4}, displs[2] = {0, 4}, far[2] = {0, SIZE_MAX};
  const std::size_t fours[2] = {4, 4};
  refused(hocketAllGatherV(in, 4, out, counts, displs, hocketInt64, comm, nullptr), kCode, "overflow");
  refused(hocketAllGatherV(in, 4, out, fours, far, hocketInt64, comm, nullptr), kCode, "overflow");
  refused(hocketAlltoAllV(in, counts, displs, out, counts, displs, hocketInt64, comm, nullptr), kCode, "overflow");
  refused(hocketReduceScatterV(in, out, counts, hocketInt64, hocketSum, comm, nullptr), kCode, "overflow");
}

TEST_F(Arguments, NullResults) {
  refused(hocketCommCount(comm, nullptr), kCode, "NULL");
  refused(hocketCommUserRank(comm, nullptr), kCode, "NULL");
  refused(hocketCommCuDevice(comm, nullptr), kCode, "NULL");
  refused(hocketCommGetAsyncError(comm, nullptr), kCode, "NULL");
  refused(hocketRedOpCreateUser(nullptr, nullptr, nullptr, comm), kCode, "NULL");
  refused(hocketCommRegister(comm, in, 4, nullptr), kCode, "NULL");
}

TEST_F(Arguments, NotInThisVersion) {
  hocketComm_t made = nullptr;
  refused(hocketCommSplit(comm, 0, 0, &made, nullptr), hocketInvalidUsage, "not in this version");
  int excluded = 1;
  refused(hocketCommShrink(comm, &excluded, 1, &made, nullptr, 0), hocketInvalidUsage, "not in this version");
}

// ---- Init ----

TEST(Init, WrongSizesAndRanks) {
  hocketComm_t comm = nullptr;
  hocketUniqueId id;
  ASSERT_TRUE(ok(hocketGetUniqueId(&id)));
  refused(hocketGetUniqueId(nullptr), hocketInvalidArgument, "NULL");
  refused(hocketCommInitRank(nullptr, 2, id, 0), hocketInvalidArgument, "NULL");
  refused(hocketCommInitRank(&comm, 2, id, 2), hocketInvalidArgument, "rank 2");
  refused(hocketCommInitRank(&comm, 2, id, -1), hocketInvalidArgument, "rank -1");
  refused(hocketCommInitRank(&comm, 0, id, 0), hocketInvalidArgument, "0 ranks");
  refused(hocketCommInitRank(&comm, -5, id, 0), hocketInvalidArgument, "-5 ranks");
  refused(hocketCommInitAll(nullptr, 2, nullptr), hocketInvalidArgument, "NULL");
  refused(hocketCommInitAll(&comm, 0, nullptr), hocketInvalidArgument, "0 ranks");
  refused(hocketCommInitFromEnv(nullptr, nullptr), hocketInvalidArgument, "NULL");
  EXPECT_EQ(comm, nullptr);
}

TEST(Init, AnIdThatIsNone) {
  hocketUniqueId id;
  hocketConfig_t settings = config();
  settings.initTimeoutMs = 2000;
  hocketComm_t comm = nullptr;
  for (const int byte : {0, 0x55, 0xff}) {
    std::memset(&id, byte, sizeof id);
    const hocketResult_t result = hocketCommInitRankConfig(&comm, 2, id, 1, &settings);
    EXPECT_NE(result, hocketSuccess);
    EXPECT_STRNE(hocketGetLastError(nullptr), "");
    EXPECT_EQ(comm, nullptr);
  }
}

TEST(Init, AMissingRankIsNamed) {
  hocketUniqueId id;
  ASSERT_TRUE(ok(hocketGetUniqueId(&id)));
  hocketConfig_t settings = config();
  settings.initTimeoutMs = 300;
  hocketComm_t comm = nullptr;
  refused(hocketCommInitRankConfig(&comm, 2, id, 0, &settings), hocketErrorTimeout, "1");
}

TEST(Init, Configurations) {
  hocketComm_t comms[2] = {};
  const auto init = [&](const auto& change) {
    hocketConfig_t settings = config();
    change(settings);
    return hocketCommInitAllConfig(comms, 2, nullptr, &settings);
  };
  refused(init([](hocketConfig_t& c) { std::memset(&c, 0, sizeof c); }), hocketInvalidArgument,
          "HOCKET_CONFIG_INITIALIZER");
  refused(init([](hocketConfig_t& c) { std::memset(&c, 0xff, sizeof c); }), hocketInvalidArgument,
          "HOCKET_CONFIG_INITIALIZER");
  refused(init([](hocketConfig_t& c) { c.magic = 1; }), hocketInvalidArgument, "HOCKET_CONFIG_INITIALIZER");
  refused(init([](hocketConfig_t& c) { c.blocking = 0; }), hocketInvalidUsage, "blocking");
  refused(init([](hocketConfig_t& c) { c.channels = 1000; }), hocketInvalidArgument, "channels");
  refused(init([](hocketConfig_t& c) { c.channels = -1; }), hocketInvalidArgument, "channels");
  refused(init([](hocketConfig_t& c) { c.slotBytes = 1; }), hocketInvalidArgument, "slot");
  refused(init([](hocketConfig_t& c) { c.slotBytes = INT_MAX; }), hocketInvalidArgument, "slot");
  // A caller that was compiled against a shorter struct.
  ok(init([](hocketConfig_t& c) { c.size = offsetof(hocketConfig_t, deterministic); }));
  for (const hocketComm_t comm : comms) ok(hocketCommDestroy(comm));
}

}  // namespace
}  // namespace hocket::test
