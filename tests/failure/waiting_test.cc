// SPDX-License-Identifier: Apache-2.0
// A rank that never comes, comes late or is stopped: init, calls, abort and destroy end in bounded time and say whom they
// waited for.
#include <iostream>

#include "failure/process_ranks.h"

namespace hocket::test {
namespace {

constexpr double kLimitS = 1.0;

hocketResult_t reduce_in_place(hocketComm_t comm, std::vector<float>& data, hocketStream_t stream = nullptr) {
  return hocketAllReduce(data.data(), data.data(), data.size(), hocketFloat32, hocketMax, comm, stream);
}

// ---- Init ----

TEST(MissingRank, IsListedByEveryoneWhoCame) {
  Ranks ranks(4);
  for (int rank = 0; rank < 3; ++rank) {
    ranks.start(rank, [](Rank& me) {
      const Holdings before = Holdings::now();
      hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
      config.initTimeoutMs = 1500;
      hocketComm_t comm = nullptr;
      me.enter();
      me.note(me.try_meet(&comm, 0, &config));
      EXPECT_EQ(comm, nullptr);
      const Holdings after = Holdings::now();
      EXPECT_EQ(after.descriptors, before.descriptors);
      EXPECT_EQ(after.threads, before.threads);
    });
  }
  ranks.expect_all_well();
  for (int rank = 0; rank < 3; ++rank) {
    const Outcome& outcome = ranks.outcome(rank);
    EXPECT_EQ(outcome.code, hocketErrorTimeout);
    EXPECT_TRUE(has(outcome.text, "missing: rank 3;")) << outcome.text;
    const double took = outcome.at - ranks.board().entered[static_cast<std::size_t>(rank)];
    EXPECT_GT(took, 1.3);
    EXPECT_LT(took, 1.5 + kLimitS);
  }
  std::cout << "[ " << ranks.outcome(1).text << " ]" << std::endl;
}

TEST(MissingRank, AbortFromAnotherThreadEndsTheWait) {
  for (const int rank : {0, 1}) {
    const Holdings before = Holdings::now();
    Ranks ranks(2);
    ranks.start(rank, [](Rank& me) {
      const Holdings start = Holdings::now();
      hocketUniqueId id;
      ASSERT_EQ(hocketGetUniqueId(&id), hocketSuccess);  // of this process, whichever rank it is
      hocketComm_t comm = nullptr;
      std::thread init([&] { me.note(hocketCommInitRank(&comm, 2, id, me.rank)); });
      ASSERT_TRUE(await([&] { return __atomic_load_n(&comm, __ATOMIC_ACQUIRE) != nullptr; }));
      me.enter();
      EXPECT_EQ(hocketCommAbort(__atomic_load_n(&comm, __ATOMIC_ACQUIRE)), hocketSuccess) << hocketGetLastError(nullptr);
      EXPECT_LT(now() - me.board.entered[static_cast<std::size_t>(me.rank)], kLimitS);
      init.join();
      EXPECT_EQ(comm, nullptr);
      const Outcome& outcome = me.board.outcome[static_cast<std::size_t>(me.rank)];
      EXPECT_EQ(outcome.code, hocketInvalidUsage) << outcome.text;
      EXPECT_TRUE(has(outcome.text, "abort")) << outcome.text;
      EXPECT_LT(outcome.at - me.board.entered[static_cast<std::size_t>(me.rank)], kLimitS);
      // Rank 1 did not take part in the meeting of its process, which waits for others until the process ends.
      if (me.rank == 0) {
        EXPECT_TRUE(await([&] { return Holdings::now().threads == start.threads; }, 1s));
        EXPECT_EQ(Holdings::now().descriptors, start.descriptors);
      }
    });
    ranks.expect_all_well();
    EXPECT_EQ(Holdings::now().descriptors, before.descriptors);
  }
}

// ---- Calls ----

TEST(LateRank, TimeLimitNamesWhoAndWhat) {
  Ranks ranks(3);
  ranks.start_all([](Rank& me) {
    hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
    config.timeoutMs = 1500;
    hocketComm_t comm = me.meet(0, &config);
    std::vector<float> data(1000);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(reduce_in_place(comm, data), hocketSuccess);
    if (me.rank == 2) {
      ASSERT_TRUE(await([&] { return me.board.flag[0] == 2; }));  // the others have given up, and this rank was told
      ASSERT_TRUE(await([&] {
        hocketResult_t state = hocketSuccess;
        return hocketCommGetAsyncError(comm, &state) == hocketSuccess && state != hocketSuccess;
      }));
      EXPECT_EQ(me.note(reduce_in_place(comm, data)), hocketRemoteError);
    } else {
      me.enter();
      me.note(reduce_in_place(comm, data));
      ++me.board.flag[0];
    }
    EXPECT_EQ(hocketCommAbort(comm), hocketSuccess);
  });
  ranks.expect_all_well();
  bool first = false;
  for (int rank = 0; rank < 2; ++rank) {
    const Outcome& outcome = ranks.outcome(rank);
    const std::string text = outcome.text;
    std::cout << "[ rank " << rank << ": " << text << " ]" << std::endl;
    const double took = outcome.at - ranks.board().entered[static_cast<std::size_t>(rank)];
    EXPECT_GT(took, 1.3);
    EXPECT_LT(took, 1.5 + kLimitS);
    EXPECT_TRUE(has(text, "call 5 AllReduce(count 1000, Float32, Max)")) << text;
    EXPECT_TRUE(has(text, "waited 1.5 s") || has(text, "waited 1.6 s")) << text;
    EXPECT_TRUE(has(text, "rank 2 (pid ") && has(text, "has not come to call 5")) << text;
    // Whoever notices second may hear of it from the first.
    if (outcome.code == hocketErrorTimeout) {
      first = true;
      EXPECT_TRUE(has(text, "rank " + std::to_string(rank) + " waited")) << text;
    } else {
      EXPECT_EQ(outcome.code, hocketRemoteError) << text;
    }
  }
  EXPECT_TRUE(first);
  std::cout << "[ rank 2: " << ranks.outcome(2).text << " ]" << std::endl;
}

TEST(LateRank, WithoutALimitIsALogLineAndSuccess) {
  constexpr auto kLate = 1500ms;
  Ranks ranks(3);
  ranks.start_all([&](Rank& me) {
    CapturedStderr log;
    hocketComm_t comm = me.meet();
    ASSERT_TRUE(me.board.gather(0, 3));
    if (me.rank == 2) std::this_thread::sleep_for(kLate);  // the lateness under test
    EXPECT_EQ(check_all_reduce(comm), hocketSuccess);
    destroy(comm);
    const int lines = log.lines_with("waiting in call 1: ");
    if (me.rank == 2) {
      EXPECT_EQ(lines, 0) << log.text();
    } else {
      EXPECT_TRUE(has(log.text(), "rank 2 (pid ") && has(log.text(), "has not come to call 1")) << log.text();
      EXPECT_GE(lines, 1) << log.text();
      EXPECT_LE(lines, 3) << log.text();
    }
  });
  ranks.expect_all_well();
}

// ---- Abort while a peer is stopped ----

void abort_while_stopped(int stopped) {
  const int aborter = 1 - stopped;
  Ranks ranks(2);
  ranks.start_all([&](Rank& me) {
    const Holdings before = Holdings::now();
    hocketComm_t comm = me.meet();
    std::vector<float> data(std::size_t{4} << 20);
    hocketResult_t result = hocketSuccess;
    std::atomic<std::int64_t> started{0}, ended{0};
    std::string text;
    std::thread worker([&] {
      while (result == hocketSuccess) {
        ++started;
        result = reduce_in_place(comm, data);
        ++ended;
        ++me.progress();
      }
      text = hocketGetLastError(nullptr);
    });
    if (me.rank == stopped) {
      worker.join();
      EXPECT_EQ(result, hocketRemoteError) << text;
      EXPECT_TRUE(has(text, "rank " + std::to_string(aborter) + " aborted the communicator")) << text;
      EXPECT_EQ(hocketCommAbort(comm), hocketSuccess);
      return;
    }
    ASSERT_TRUE(await([&] { return me.board.flag[0] == 1; }));  // the peer is stopped: at most one more call gets through
    std::int64_t seen = -1;
    auto since = Clock::now();
    ASSERT_TRUE(await([&] {
      if (ended != seen) seen = ended, since = Clock::now();
      return started == seen + 1 && Clock::now() - since > 100ms;
    }));
    const double start = now();
    EXPECT_EQ(hocketCommAbort(comm), hocketSuccess) << hocketGetLastError(nullptr);
    const double took = now() - start;
    EXPECT_LT(took, kLimitS);
    worker.join();
    EXPECT_EQ(result, hocketInvalidUsage) << text;
    EXPECT_TRUE(has(text, "aborted by hocketCommAbort")) << text;
    EXPECT_EQ(reduce_in_place(comm, data), hocketInvalidArgument) << "the handle is gone";
    const Holdings after = Holdings::now();
    EXPECT_EQ(after.threads, before.threads);
    EXPECT_EQ(after.descriptors, before.descriptors);
    std::cout << "[ rank " << me.rank << " aborted in " << took * 1e3 << " ms ]" << std::endl;
    me.board.flag[1] = 1;
  });
  ASSERT_TRUE(await([&] { return ranks.board().progress[0] >= 2 && ranks.board().progress[1] >= 2; }));
  ranks.signal(stopped, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(ranks.pid(stopped), &status, WUNTRACED), ranks.pid(stopped));
  ASSERT_TRUE(WIFSTOPPED(status));
  ranks.board().flag[0] = 1;
  EXPECT_TRUE(await([&] { return ranks.board().flag[1] == 1; }));
  ranks.signal(stopped, SIGCONT);
  ranks.expect_all_well();
}

TEST(StoppedRank, AbortDoesNotWaitForRankOne) { abort_while_stopped(1); }
TEST(StoppedRank, AbortDoesNotWaitForRankZero) { abort_while_stopped(0); }

// Destroy, after an error, does not wait for the stopped one either.
TEST(StoppedRank, DestroyAfterATimeLimit) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
    config.timeoutMs = 600;
    const Holdings before = Holdings::now();
    hocketComm_t comm = me.meet(0, &config);
    std::vector<float> data(1000);
    EXPECT_EQ(reduce_in_place(comm, data), hocketSuccess);
    if (me.rank == 1) {
      ++me.board.flag[2];
      ASSERT_TRUE(await([&] { return me.board.flag[1] == 1; }));
      hocketCommAbort(comm);
      return;
    }
    ASSERT_TRUE(await([&] { return me.board.flag[0] == 1; }));
    EXPECT_EQ(reduce_in_place(comm, data), hocketErrorTimeout);
    const std::string text = hocketGetLastError(nullptr);
    EXPECT_TRUE(has(text, "rank 0 waited") && has(text, "for rank 1") && has(text, "does not answer (stopped?)")) << text;
    const double start = now();
    destroy(comm);
    EXPECT_LT(now() - start, kLimitS);
    EXPECT_EQ(Holdings::now().threads, before.threads);
    EXPECT_EQ(Holdings::now().descriptors, before.descriptors);
    me.board.flag[1] = 1;
  });
  ASSERT_TRUE(await([&] { return ranks.board().flag[2] == 1; }));
  ranks.signal(1, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(ranks.pid(1), &status, WUNTRACED), ranks.pid(1));
  ranks.board().flag[0] = 1;
  EXPECT_TRUE(await([&] { return ranks.board().flag[1] == 1; }));
  ranks.signal(1, SIGCONT);
  ranks.expect_all_well();
}

// ---- Destroy with work pending ----

TEST(PendingWork, DestroyIsBoundedAndTells) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    hocketComm_t comm = me.meet();
    std::vector<float> data(std::size_t{1} << 20);
    if (me.rank == 1) {
      ASSERT_TRUE(await([&] { return me.board.flag[0] == 1; }));
      EXPECT_EQ(reduce_in_place(comm, data), hocketRemoteError);
      const std::string text = hocketGetLastError(nullptr);
      EXPECT_TRUE(has(text, "rank 0")) << text;
      EXPECT_EQ(hocketCommDestroy(comm), hocketSuccess) << hocketGetLastError(nullptr);
      return;
    }
    hocketStream_t stream = nullptr;
    ASSERT_EQ(hocketStreamCreate(&stream), hocketSuccess);
    EXPECT_EQ(reduce_in_place(comm, data, stream), hocketSuccess);
    EXPECT_EQ(reduce_in_place(comm, data, stream), hocketSuccess);
    const double start = now();
    EXPECT_EQ(hocketCommDestroy(comm), hocketInvalidUsage);
    const double took = now() - start;
    const std::string text = hocketGetLastError(nullptr);
    EXPECT_TRUE(has(text, "destroyed with 2 calls pending")) << text;
    EXPECT_LT(took, 7.0);
    EXPECT_NE(hocketStreamSynchronize(stream), hocketSuccess);
    data = {};  // nothing touches the buffer any more
    EXPECT_EQ(hocketStreamDestroy(stream), hocketSuccess);
    EXPECT_EQ(Holdings::now().threads, 1);
    std::cout << "[ destroy returned after " << took << " s: " << text << " ]" << std::endl;
    me.board.flag[0] = 1;
  });
  ranks.expect_all_well();
}

TEST(PendingWork, DestroyCompletesItWhenThePeersTakePart) {
  Ranks ranks(3);
  ranks.start_all([](Rank& me) {
    hocketComm_t comm = me.meet();
    std::vector<float> data(std::size_t{1} << 18, static_cast<float>(me.rank));
    hocketStream_t stream = nullptr;
    ASSERT_EQ(hocketStreamCreate(&stream), hocketSuccess);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(reduce_in_place(comm, data, stream), hocketSuccess);
    if (me.rank == 1) {
      EXPECT_EQ(hocketCommFinalize(comm), hocketSuccess) << hocketGetLastError(nullptr);
      EXPECT_EQ(reduce_in_place(comm, data), hocketInvalidUsage) << "finalized";
    }
    destroy(comm);
    EXPECT_EQ(hocketStreamSynchronize(stream), hocketSuccess) << hocketGetLastError(nullptr);
    EXPECT_EQ(data[12345], 2.0f);
    EXPECT_EQ(hocketStreamDestroy(stream), hocketSuccess);
  });
  ranks.expect_all_well();
}

// A buffer may be freed once abort has returned.
TEST(PendingWork, BuffersAreFreeAfterAbort) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    hocketComm_t comm = me.meet();
    if (me.rank == 1) {
      ASSERT_TRUE(await([&] { return me.board.flag[0] == 1; }));
      EXPECT_EQ(hocketCommDestroy(comm), hocketSuccess);
      return;
    }
    constexpr std::size_t kBytes = std::size_t{8} << 20;
    void* const buffer = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    hocketStream_t stream = nullptr;
    ASSERT_EQ(hocketStreamCreate(&stream), hocketSuccess);
    EXPECT_EQ(hocketAllReduce(buffer, buffer, kBytes / 4, hocketFloat32, hocketSum, comm, stream), hocketSuccess);
    EXPECT_EQ(hocketCommAbort(comm), hocketSuccess) << hocketGetLastError(nullptr);
    EXPECT_NE(hocketStreamSynchronize(stream), hocketSuccess);
    ::munmap(buffer, kBytes);
    EXPECT_EQ(hocketStreamDestroy(stream), hocketSuccess);
    me.board.flag[0] = 1;
  });
  ranks.expect_all_well();
}

}  // namespace
}  // namespace hocket::test
