// SPDX-License-Identifier: Apache-2.0
// Ranks that call different things at the same place, and ranks that come with different settings.
#include <iostream>

#include "failure/process_ranks.h"

namespace hocket::test {
namespace {

constexpr double kLimitS = 1.0;

using Call = std::function<hocketResult_t(Rank&, hocketComm_t)>;

// Memory for any call of a test; untouched pages cost nothing.
float* big_buffer() {
  static void* const buffer =
      ::mmap(nullptr, std::size_t{512} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return static_cast<float*>(buffer);
}
float* second_buffer() { return big_buffer() + (std::size_t{64} << 20); }

hocketResult_t all_reduce(hocketComm_t comm, std::size_t count, hocketDataType_t type = hocketFloat32,
                          hocketRedOp_t op = hocketSum) {
  return hocketAllReduce(big_buffer(), big_buffer(), count, type, op, comm, nullptr);
}

// Every rank makes `n_before` equal calls, then its own `call`. Each gets a mismatch in time whose text has all of `parts`;
// the communicator stays in that state, can be destroyed, and the same ranks make a new one. The ranks that called the same
// are named together, as far as they had come when the difference was seen.
void expect_mismatch(int n_ranks, const Call& call, const std::vector<std::string>& parts, int n_before = 0) {
  Ranks ranks(n_ranks);
  ranks.start_all([&](Rank& me) {
    hocketComm_t comm = me.meet();
    for (int i = 0; i < n_before; ++i) ASSERT_EQ(all_reduce(comm, 1000), hocketSuccess) << hocketGetLastError(nullptr);
    ASSERT_TRUE(me.board.gather(0, n_ranks));
    me.enter();
    me.note(call(me, comm));
    EXPECT_EQ(all_reduce(comm, 1), hocketErrorMismatch) << "a later call says who was wrong first";
    hocketResult_t state = hocketSuccess;
    EXPECT_EQ(hocketCommGetAsyncError(comm, &state), hocketSuccess);
    EXPECT_EQ(state, hocketErrorMismatch);
    ASSERT_TRUE(me.board.gather(1, n_ranks));
    destroy(comm);
    hocketComm_t next = me.meet(1);
    check_all_reduce(next);
    destroy(next);
  });
  ranks.expect_all_well();
  double slowest = 0;
  for (int rank = 0; rank < n_ranks; ++rank) {
    const Outcome& outcome = ranks.outcome(rank);
    EXPECT_EQ(outcome.code, hocketErrorMismatch) << "rank " << rank << ": " << outcome.text;
    for (const std::string& part : parts) EXPECT_TRUE(has(outcome.text, part)) << "rank " << rank << ": no '" << part << "' in: " << outcome.text;
    slowest = std::max(slowest, outcome.at - ranks.board().last_entered(n_ranks));
  }
  std::cout << "[ slowest rank knew after " << slowest * 1e3 << " ms: " << ranks.outcome(0).text << " ]" << std::endl;
  EXPECT_LT(slowest, kLimitS);
}

TEST(Mismatch, CountByTwo) {
  expect_mismatch(4, [](Rank& me, hocketComm_t comm) { return all_reduce(comm, me.rank == 0 ? 409600 : 409598); },
                  {"call 1:", "rank 0 called AllReduce(count 409600, Float32, Sum)",
                   " called AllReduce(count 409598, Float32, Sum)"});
}

TEST(Mismatch, CountByFar) {
  expect_mismatch(4, [](Rank& me, hocketComm_t comm) { return all_reduce(comm, me.rank == 0 ? 409600 : 32768000); },
                  {"call 1:", "rank 0 called AllReduce(count 409600, Float32, Sum)",
                   " called AllReduce(count 32768000, Float32, Sum)"});
}

TEST(Mismatch, CountOneOrTwo) {
  expect_mismatch(4, [](Rank& me, hocketComm_t comm) { return all_reduce(comm, me.rank == 0 ? 1 : 2); },
                  {"rank 0 called AllReduce(count 1, Float32, Sum)", " called AllReduce(count 2, Float32, Sum)"});
}

TEST(Mismatch, ZeroOrOne) {
  expect_mismatch(2,
                  [](Rank& me, hocketComm_t comm) {
                    const hocketResult_t first = all_reduce(comm, me.rank == 0 ? 0 : 1);
                    return first != hocketSuccess ? first : hocketBarrier(comm, nullptr);
                  },
                  {"rank 0 called AllReduce(count 0, Float32, Sum)", "rank 1 called AllReduce(count 1, Float32, Sum)"});
}

TEST(Mismatch, KindInTheSeventhCall) {
  expect_mismatch(4,
                  [](Rank& me, hocketComm_t comm) {
                    if (me.rank != 2) return all_reduce(comm, 1000);
                    return hocketAllGather(big_buffer(), second_buffer(), 250, hocketFloat32, comm, nullptr);
                  },
                  {"call 7:", "rank 2 called AllGather(count 250, Float32)",
                   " called AllReduce(count 1000, Float32, Sum)"},
                  6);
}

TEST(Mismatch, TypeOfTheSameSize) {
  expect_mismatch(3,
                  [](Rank& me, hocketComm_t comm) { return all_reduce(comm, 100, me.rank == 1 ? hocketInt32 : hocketFloat32); },
                  {"rank 1 called AllReduce(count 100, Int32, Sum)", " called AllReduce(count 100, Float32, Sum)"}, 3);
}

TEST(Mismatch, TypeOfAnotherSize) {
  expect_mismatch(3,
                  [](Rank& me, hocketComm_t comm) { return all_reduce(comm, 100000, me.rank == 1 ? hocketFloat64 : hocketFloat32); },
                  {"rank 1 called AllReduce(count 100000, Float64, Sum)"});
}

TEST(Mismatch, Operation) {
  expect_mismatch(3,
                  [](Rank& me, hocketComm_t comm) { return all_reduce(comm, 100, hocketFloat32, me.rank == 2 ? hocketMax : hocketSum); },
                  {"rank 2 called AllReduce(count 100, Float32, Max)", " called AllReduce(count 100, Float32, Sum)"});
}

// A root that only sends may be done before anybody knows; then the next call that waits tells.
TEST(Mismatch, RootOfABroadcast) {
  for (const int count : {1, 1 << 20}) {
    expect_mismatch(3,
                    [count](Rank& me, hocketComm_t comm) {
                      const hocketResult_t first = hocketBroadcast(big_buffer(), big_buffer(), static_cast<std::size_t>(count),
                                                                   hocketFloat32, me.rank == 2 ? 1 : 0, comm, nullptr);
                      return first != hocketSuccess ? first : hocketBarrier(comm, nullptr);
                    },
                    {", root 0)", "rank 2 called Broadcast(count " + std::to_string(count) + ", Float32, root 1)"});
  }
}

TEST(Mismatch, RootOfAReduce) {
  expect_mismatch(3,
                  [](Rank& me, hocketComm_t comm) {
                    const hocketResult_t first = hocketReduce(big_buffer(), second_buffer(), 1000, hocketFloat32, hocketSum,
                                                              me.rank == 2 ? 2 : 0, comm, nullptr);
                    return first != hocketSuccess ? first : hocketBarrier(comm, nullptr);
                  },
                  {"Sum, root 0)", "rank 2 called Reduce(count 1000, Float32, Sum, root 2)"});
}

TEST(Mismatch, InAGroup) {
  expect_mismatch(3,
                  [](Rank& me, hocketComm_t comm) {
                    hocketGroupStart();
                    all_reduce(comm, 64);
                    all_reduce(comm, me.rank == 1 ? 65 : 64);
                    return hocketGroupEnd();
                  },
                  {"call 2:", "rank 1 called AllReduce(count 65, Float32, Sum)"});
}

void threads_disagree() {
  constexpr int kRanks = 3;
  std::array<hocketComm_t, kRanks> comms{};
  ASSERT_EQ(hocketCommInitAll(comms.data(), kRanks, nullptr), hocketSuccess);
  std::array<std::string, kRanks> texts;
  std::vector<std::thread> threads;
  const double start = now();
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> data(2000);
      EXPECT_EQ(hocketAllReduce(data.data(), data.data(), rank == 1 ? 2000 : 1000, hocketFloat32, hocketSum,
                                comms[static_cast<std::size_t>(rank)], nullptr),
                hocketErrorMismatch);
      texts[static_cast<std::size_t>(rank)] = hocketGetLastError(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(now() - start, kLimitS);
  for (const std::string& text : texts)
    EXPECT_TRUE(has(text, "call 1:") && has(text, "rank 1 called AllReduce(count 2000, Float32, Sum)")) << text;
  for (hocketComm_t comm : comms) destroy(comm);
}

TEST(Mismatch, ThreadsAsRanks) {
  Ranks one(1);
  one.start(0, [](Rank&) { threads_disagree(); });
  one.expect_all_well();
}

// ---- Settings ----

void expect_settings_error(const std::function<void(Rank&, hocketConfig_t&)>& set, const std::vector<std::string>& parts) {
  Ranks ranks(2);
  ranks.start_all([&](Rank& me) {
    hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
    set(me, config);
    hocketComm_t comm = nullptr;
    me.enter();
    me.note(me.try_meet(&comm, 0, &config));
    EXPECT_EQ(comm, nullptr);
    ::unsetenv("HOCKET_SHM_BYTES");
    hocketComm_t next = me.meet(1);
    check_all_reduce(next);
    destroy(next);
  });
  ranks.expect_all_well();
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome& outcome = ranks.outcome(rank);
    EXPECT_EQ(outcome.code, hocketInvalidArgument) << outcome.text;
    for (const std::string& part : parts) EXPECT_TRUE(has(outcome.text, part)) << "rank " << rank << ": no '" << part << "' in: " << outcome.text;
    EXPECT_LT(outcome.at - ranks.board().last_entered(2), kLimitS);
  }
}

TEST(Settings, SlotSizesDiffer) {
  expect_settings_error([](Rank& me, hocketConfig_t& config) { config.slotBytes = me.rank == 1 ? 65536 : 524288; },
                        {"rank 1 has slot_bytes=65536", "rank 0 has slot_bytes=524288"});
}
TEST(Settings, ChannelsDiffer) {
  expect_settings_error([](Rank& me, hocketConfig_t& config) { config.channels = me.rank == 1 ? 2 : 1; },
                        {"rank 1 has channels=2", "rank 0 has channels=1"});
}
TEST(Settings, AlgorithmsDiffer) {
  expect_settings_error([](Rank& me, hocketConfig_t& config) { config.algorithm = me.rank == 1 ? "ring" : "flat"; },
                        {"algorithm=ring", "algorithm=flat"});
}
TEST(Settings, DeterminismDiffers) {
  expect_settings_error([](Rank& me, hocketConfig_t& config) { config.deterministic = me.rank; },
                        {"rank 1 has deterministic=1", "rank 0 has deterministic=0"});
}
TEST(Settings, VariablesDiffer) {
  expect_settings_error(
      [](Rank& me, hocketConfig_t&) { if (me.rank == 1) ::setenv("HOCKET_SHM_BYTES", "1048576", 1); else ::unsetenv("HOCKET_SHM_BYTES"); },
      {"rank 1 has shm_bytes=1048576", "rank 0 has shm_bytes=8388608"});
}

}  // namespace
}  // namespace hocket::test
