// SPDX-License-Identifier: Apache-2.0
// Who may call when: threads (G7), many communicators, unique ids among threads, descriptions, settings.
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "collectives/call.h"

namespace hocket::test {
namespace {

// ---- G7 ----

// A sum on rank 0 that waits for rank 1. Begins again when busy() below was in the way.
hocketResult_t sum_and_wait(const LocalRanks& ranks, const std::int32_t& in, std::int32_t& out) {
  for (;;) {
    const hocketResult_t result = hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], nullptr);
    const std::string text = hocketGetLastError(nullptr);
    if (result != hocketInvalidUsage || text.find("another thread") == std::string::npos) return result;
  }
}

// Rank 0 is in a call of another thread: it refuses what needs it alone.
bool busy(const LocalRanks& ranks) {
  hocketRedOp_t op;
  float scalar = 1;
  return hocketRedOpCreatePreMulSum(&op, &scalar, hocketFloat32, hocketScalarHostImmediate, ranks[0]) ==
         hocketInvalidUsage;
}

TEST(Threads, ASecondThreadInABusyCommunicatorIsRefused) {
  const LocalRanks ranks(2);
  std::int32_t in[2] = {1, 2}, out[2] = {};
  // Rank 0 waits inside a call until rank 1 comes.
  std::thread waiting([&] { ok(sum_and_wait(ranks, in[0], out[0])); });
  EXPECT_TRUE(wait_until([&] { return busy(ranks); }));
  std::int32_t other = 0;
  refused(hocketAllReduce(&in[0], &other, 1, hocketInt32, hocketSum, ranks[0], nullptr), hocketInvalidUsage,
          "another thread");
  refused(hocketSend(&in[0], 1, hocketInt32, 1, ranks[0], nullptr), hocketInvalidUsage, "another thread");
  hocketGroupStart();
  refused(hocketBarrier(ranks[0], nullptr), hocketInvalidUsage, "another thread");
  EXPECT_EQ(hocketGroupEnd(), hocketInvalidUsage);
  // Queries are allowed.
  int rank = -1;
  ok(hocketCommUserRank(ranks[0], &rank));
  EXPECT_EQ(rank, 0);
  ok(hocketAllReduce(&in[1], &out[1], 1, hocketInt32, hocketSum, ranks[1], nullptr));
  waiting.join();
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 3);
}

TEST(Threads, AbortEndsACallInAnotherThread) {
  LocalRanks ranks(2);
  std::int32_t in = 1, out = 0;
  std::atomic<hocketResult_t> result{hocketSuccess};
  std::thread waiting([&] { result = sum_and_wait(ranks, in, out); });
  EXPECT_TRUE(wait_until([&] { return busy(ranks); }));
  ok(hocketCommAbort(ranks[0]));
  waiting.join();
  EXPECT_EQ(result, hocketInvalidUsage);
  ranks.forget(0);
  hocketResult_t state = hocketSuccess;
  EXPECT_TRUE(wait_until(
      [&] { return hocketCommGetAsyncError(ranks[1], &state) == hocketSuccess && state == hocketRemoteError; }));
  ok(hocketCommAbort(ranks[1]));
  ranks.forget(1);
}

TEST(Threads, FourThreadsWithTheirOwnCommunicatorsOnTheSameRanks) {
  constexpr int kThreads = 4, kRanks = 2;
  std::vector<std::unique_ptr<LocalRanks>> comms;
  for (int t = 0; t < kThreads; ++t) comms.push_back(std::make_unique<LocalRanks>(kRanks));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      comms[static_cast<std::size_t>(t)]->run([&](int rank, hocketComm_t comm) {
        for (int i = 0; i < 200; ++i) {
          const std::int32_t in = rank * 1000 + t * 100 + i;
          std::int32_t out = 0;
          ok(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, comm, nullptr));
          EXPECT_EQ(out, 1000 + 2 * (t * 100 + i));
        }
      });
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, ThirtyTwoCommunicatorsAtOnce) {
  constexpr std::size_t kComms = 32;
  std::vector<std::unique_ptr<LocalRanks>> comms;
  for (std::size_t c = 0; c < kComms; ++c) comms.push_back(std::make_unique<LocalRanks>(3));
  comms[0]->run([&](int rank, hocketComm_t) {
    for (int round = 0; round < 3; ++round)
      for (std::size_t c = 0; c < kComms; ++c) {
        std::vector<std::int32_t> in(1000, rank + static_cast<std::int32_t>(c)), out(1000);
        ok(hocketAllReduce(in.data(), out.data(), in.size(), hocketInt32, hocketSum, (*comms[c])[rank], nullptr));
        EXPECT_EQ(out.front(), 3 + 3 * static_cast<std::int32_t>(c));
        EXPECT_EQ(out.back(), out.front());
      }
  });
}

TEST(Threads, RanksMeetByUniqueId) {
  for (const int n : {1, 2, 4}) {
    hocketUniqueId id;
    ASSERT_TRUE(ok(hocketGetUniqueId(&id)));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < n; ++rank)
      threads.emplace_back([&, rank] {
        hocketComm_t comm = nullptr;
        if (!ok(hocketCommInitRank(&comm, n, id, rank))) return;
        int count = 0, mine = -1, device = 0;
        ok(hocketCommCount(comm, &count));
        ok(hocketCommUserRank(comm, &mine));
        ok(hocketCommCuDevice(comm, &device));
        EXPECT_EQ(count, n);
        EXPECT_EQ(mine, rank);
        EXPECT_EQ(device, -1);
        std::int64_t in = rank, out = 0;
        ok(hocketAllReduce(&in, &out, 1, hocketInt64, hocketSum, comm, nullptr));
        EXPECT_EQ(out, n * (n - 1) / 2);
        ok(hocketCommDestroy(comm));
      });
    for (std::thread& thread : threads) thread.join();
  }
}

// ---- Descriptions ----

TEST(Describe, IsJsonThatNamesWhatItIs) {
  hocketConfig_t settings = config();
  settings.commName = "the \"tested\" one\n\xff";  // not even UTF-8
  settings.deterministic = 1;
  settings.channels = 2;
  const LocalRanks ranks(3, settings);
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 100}});
  const auto json = nlohmann::json::parse(describe(ranks[1]));
  EXPECT_EQ(json["rank"], 1);
  EXPECT_EQ(json["n_ranks"], 3);
  EXPECT_EQ(json["ranks"].size(), 3u);
  EXPECT_EQ(json["version"], HOCKET_VERSION_CODE);
  EXPECT_EQ(json["settings"]["channels"], 2);
  EXPECT_EQ(json["settings"]["deterministic"], 1);
  EXPECT_EQ(json["transports"].size(), 1u);
  EXPECT_EQ(json["plans"].size(), 1u);
  EXPECT_EQ(json["counters"]["collective_calls"], 1);
  EXPECT_TRUE(json["error"].is_null());
}

TEST(Describe, TellsTheSizeItNeeds) {
  const LocalRanks ranks(1);
  std::size_t needed = 0;
  ok(hocketCommDescribe(ranks[0], nullptr, &needed));
  ASSERT_GT(needed, 10u);
  std::vector<char> text(needed, 'x');
  std::size_t length = needed - 1;
  refused(hocketCommDescribe(ranks[0], text.data(), &length), hocketInvalidArgument, "bytes");
  EXPECT_EQ(length, needed);
  EXPECT_EQ(text[0], 'x');
  ok(hocketCommDescribe(ranks[0], text.data(), &length));
  EXPECT_EQ(text[needed - 1], '\0');
  refused(hocketCommDescribe(ranks[0], text.data(), nullptr), hocketInvalidArgument, "NULL");
}

TEST(Library, VersionAndNames) {
  int version = 0;
  ok(hocketGetVersion(&version));
  EXPECT_EQ(version, HOCKET_VERSION_CODE);
  refused(hocketGetVersion(nullptr), hocketInvalidArgument, "NULL");
  for (int code = -1; code < 20; ++code) {
    const char* const name = hocketGetErrorString(static_cast<hocketResult_t>(code));
    ASSERT_NE(name, nullptr);
    EXPECT_NE(*name, '\0');
  }
  EXPECT_STREQ(hocketGetErrorString(hocketRemoteError), "remote error");
  ASSERT_NE(hocketGetLastError(nullptr), nullptr);
}

TEST(Memory, IsZeroedAlignedAndFreedOnce) {
  void* memory = nullptr;
  ok(hocketMemAlloc(&memory, 10000));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  for (int i = 0; i < 10000; ++i) ASSERT_EQ(static_cast<const char*>(memory)[i], 0);
  ok(hocketMemFree(memory));
  EXPECT_NE(hocketMemFree(memory), hocketSuccess);
  int local = 0;
  EXPECT_NE(hocketMemFree(&local), hocketSuccess);
  ok(hocketMemFree(nullptr));
  refused(hocketMemAlloc(nullptr, 10), hocketInvalidArgument, "NULL");
  void* huge = nullptr;
  EXPECT_NE(hocketMemAlloc(&huge, std::size_t{1} << 60), hocketSuccess);
}

}  // namespace
}  // namespace hocket::test
