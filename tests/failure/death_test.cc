// SPDX-License-Identifier: Apache-2.0
// A rank is killed: the others get an error that names it, soon, and can go on without it.
#include <iostream>

#include "failure/process_ranks.h"

namespace hocket::test {
namespace {

constexpr double kLimitS = 1.0;
constexpr std::size_t kBigBytes = std::size_t{64} << 20;
constexpr std::size_t kBigCount = kBigBytes / sizeof(float);

// Flags of the board.
constexpr int kKilled = 0;   // the victim is gone
[[maybe_unused]] constexpr int kRebuilt = 1;

// One round of the loop in which the victim dies.
using Round = std::function<hocketResult_t(hocketComm_t, float* data)>;

void survive(Rank& me, int victim, hocketComm_t comm, const std::string& call) {
  const Outcome& outcome = me.board.outcome[static_cast<std::size_t>(me.rank)];
  const std::string text = outcome.text;
  EXPECT_EQ(outcome.code, hocketRemoteError) << text;
  EXPECT_TRUE(has(text, "rank " + std::to_string(victim) + " (pid ") && has(text, "died")) << text;
  EXPECT_TRUE(has(text, call)) << "no '" << call << "' in: " << text;
  // The communicator itself tells the same.
  const std::string kept = hocketGetLastError(comm);
  EXPECT_TRUE(has(kept, "rank " + std::to_string(victim) + " (pid ") && has(kept, call)) << kept;
  EXPECT_EQ(hocketCommAbort(comm), hocketSuccess) << hocketGetLastError(nullptr);
}

// The survivors make a communicator of their own.
void go_on_without(Rank& me, int victim) {
  hocketComm_t next = me.meet_as(1, me.rank - (me.rank > victim ? 1 : 0), me.n_ranks - 1);
  check_all_reduce(next, 100000, 3);
  destroy(next);
}

void kill_one_in_a_loop(int n_ranks, int victim, const Round& round, const std::string& call) {
  Ranks ranks(n_ranks);
  ranks.start_all([&](Rank& me) {
    hocketComm_t comm = me.meet();
    std::vector<float> data(kBigCount);
    hocketResult_t result = hocketSuccess;
    while (result == hocketSuccess) {
      result = round(comm, data.data());
      ++me.progress();
    }
    me.note(result);
    survive(me, victim, comm, call);
    go_on_without(me, victim);
  });
  for (int rank = 0; rank < n_ranks; ++rank)
    ASSERT_TRUE(await([&] { return ranks.board().progress[static_cast<std::size_t>(rank)] >= 2; })) << rank;
  const double killed_at = now();
  ranks.kill(victim);
  ranks.expect_all_well();
  for (int rank = 0; rank < n_ranks; ++rank) {
    if (rank == victim) continue;
    const Outcome& outcome = ranks.outcome(rank);
    std::cout << "[ rank " << rank << " returned after " << (outcome.at - killed_at) * 1e3 << " ms: " << outcome.text << " ]"
              << std::endl;
    EXPECT_LT(outcome.at - killed_at, kLimitS);
  }
}

hocketResult_t big_all_reduce(hocketComm_t comm, float* data) {
  return hocketAllReduce(data, data, kBigCount, hocketFloat32, hocketMax, comm, nullptr);
}

TEST(Death, RankOneInABigAllReduce) { kill_one_in_a_loop(3, 1, big_all_reduce, "AllReduce(count 16777216, Float32, Max)"); }
TEST(Death, RankZeroInABigAllReduce) { kill_one_in_a_loop(3, 0, big_all_reduce, "AllReduce(count 16777216, Float32, Max)"); }

TEST(Death, InSmallCalls) {
  const Round round = [](hocketComm_t comm, float* data) {
    return hocketAllReduce(data, data, 2, hocketFloat32, hocketSum, comm, nullptr);
  };
  kill_one_in_a_loop(2, 1, round, "AllReduce(count 2, Float32, Sum)");
  kill_one_in_a_loop(3, 0, round, "AllReduce(count 2, Float32, Sum)");
}

TEST(Death, OfTheRootOfABroadcast) {
  for (const std::size_t count : {std::size_t{4}, kBigCount}) {
    kill_one_in_a_loop(3, 1,
                       [count](hocketComm_t comm, float* data) {
                         return hocketBroadcast(data, data, count, hocketFloat32, 1, comm, nullptr);
                       },
                       "Broadcast(count " + std::to_string(count));
  }
}

TEST(Death, InAGroup) {
  kill_one_in_a_loop(3, 1,
                     [](hocketComm_t comm, float* data) {
                       int rank = 0;
                       hocketCommUserRank(comm, &rank);
                       constexpr std::size_t kPart = kBigCount / 4;
                       hocketGroupStart();
                       hocketAllReduce(data, data, kPart, hocketFloat32, hocketMax, comm, nullptr);
                       hocketSend(data + kPart, kPart, hocketFloat32, (rank + 1) % 3, comm, nullptr);
                       hocketRecv(data + 2 * kPart, kPart, hocketFloat32, (rank + 2) % 3, comm, nullptr);
                       return hocketGroupEnd();
                     },
                     "count 4194304, Float32");
}

TEST(Death, InSendAndReceive) {
  kill_one_in_a_loop(2, 1,
                     [](hocketComm_t comm, float* data) {
                       int rank = 0;
                       hocketCommUserRank(comm, &rank);
                       return rank == 0 ? hocketSend(data, kBigCount, hocketFloat32, 1, comm, nullptr)
                                        : hocketRecv(data, kBigCount, hocketFloat32, 0, comm, nullptr);
                     },
                     "hocketSend(count 16777216, Float32, peer 1)");
}

TEST(Death, OnAStream) {
  kill_one_in_a_loop(3, 1,
                     [](hocketComm_t comm, float* data) {
                       static hocketStream_t stream = nullptr;
                       if (stream == nullptr) hocketStreamCreate(&stream);
                       hocketAllReduce(data, data, kBigCount / 4, hocketFloat32, hocketMax, comm, stream);
                       hocketAllReduce(data, data, 7, hocketFloat32, hocketMax, comm, stream);
                       return hocketStreamSynchronize(stream);
                     },
                     "AllReduce(count ");
}

TEST(Death, BetweenCallsIsToldByTheNextOne) {
  for (const int victim : {1, 0}) {
    Ranks ranks(3);
    ranks.start_all([victim](Rank& me) {
      hocketComm_t comm = me.meet();
      for (int i = 0; i < 3; ++i) check_all_reduce(comm, 8);
      ++me.progress();
      ASSERT_TRUE(await([&] { return me.board.flag[kKilled] != 0; }));
      me.enter();
      float data[8] = {};
      me.note(hocketAllReduce(data, data, 8, hocketFloat32, hocketSum, comm, nullptr));
      survive(me, victim, comm, "");
      go_on_without(me, victim);
    });
    ASSERT_TRUE(await([&] {
      return ranks.board().progress[0] == 1 && ranks.board().progress[1] == 1 && ranks.board().progress[2] == 1;
    }));
    ranks.kill(victim);
    ranks.board().flag[kKilled] = 1;
    ranks.expect_all_well();
    for (int rank = 0; rank < 3; ++rank) {
      if (rank == victim) continue;
      const double took = ranks.outcome(rank).at - ranks.board().entered[static_cast<std::size_t>(rank)];
      std::cout << "[ rank " << rank << "'s next call returned after " << took * 1e3 << " ms: " << ranks.outcome(rank).text << " ]"
                << std::endl;
      EXPECT_LT(took, kLimitS);
    }
  }
}

// Ranks 0 and 2 are threads of the surviving process.
TEST(Death, ThreadsAsRanksSurvive) {
  Ranks ranks(2);
  ranks.start(0, [](Rank& process) {
    const auto body = [&](int rank) {
      Rank me(process.board, rank, 3);
      hocketComm_t comm = me.meet();
      std::vector<float> data(kBigCount / 4);
      hocketResult_t result = hocketSuccess;
      while (result == hocketSuccess) {
        result = hocketAllReduce(data.data(), data.data(), data.size(), hocketFloat32, hocketSum, comm, nullptr);
        ++me.progress();
      }
      me.note(result);
      survive(me, 1, comm, "AllReduce(count 4194304, Float32, Sum)");
      go_on_without(me, 1);
    };
    std::thread other(body, 2);
    body(0);
    other.join();
  });
  ranks.start(1, [](Rank& process) {
    Rank me(process.board, 1, 3);
    hocketComm_t comm = me.meet();
    std::vector<float> data(kBigCount / 4);
    while (hocketAllReduce(data.data(), data.data(), data.size(), hocketFloat32, hocketSum, comm, nullptr) == hocketSuccess)
      ++me.progress();
  });
  ASSERT_TRUE(await([&] { return ranks.board().progress[1] >= 2; }));
  const double killed_at = now();
  ranks.kill(1);
  ranks.expect_all_well();
  for (const int rank : {0, 2}) {
    std::cout << "[ rank " << rank << " returned after " << (ranks.outcome(rank).at - killed_at) * 1e3 << " ms ]" << std::endl;
    EXPECT_LT(ranks.outcome(rank).at - killed_at, kLimitS);
  }
}

}  // namespace
}  // namespace hocket::test
