// SPDX-License-Identifier: Apache-2.0
// Groups: one thread that drives all ranks, any order of sends and receives, several calls and communicators at once.
#include <algorithm>
#include <memory>
#include <numeric>

#include "collectives/call.h"

namespace hocket::test {
namespace {

// One thread makes the calls of all ranks in one group.
void drive_all_ranks(const LocalRanks& ranks, const std::vector<std::unique_ptr<PreparedCall>>& calls) {
  ok(hocketGroupStart());
  for (const auto& call : calls)
    for (int rank = 0; rank < ranks.n(); ++rank) ok(call->issue(rank, ranks[rank]));
  ok(hocketGroupEnd());
  for (const auto& call : calls) EXPECT_EQ(call->wrong(), "");
}

class Group : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Group, ::testing::Values(1, 2, 3, 5, 8));

TEST_P(Group, OneThreadDrivesAllRanks) {
  const LocalRanks ranks(GetParam());
  const auto n = static_cast<std::uint64_t>(GetParam());
  for (int k = 0; k < kKindCount; ++k)
    for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{5000}, std::size_t{200000}}) {
      Call call{
          .kind = kind_at(k), .type = hocketUint16, .root = static_cast<int>(n - 1), .count = count, .seed = n + count};
      if (vector_form(call.kind)) call.counts = random_counts(call.kind, GetParam(), count, 30, call.seed);
      std::vector<std::unique_ptr<PreparedCall>> calls;
      calls.push_back(std::make_unique<PreparedCall>(call, GetParam()));
      drive_all_ranks(ranks, calls);
      if (HasFailure()) return;
    }
}

// Collectives of one communicator run in the order of the calls, messages beside them.
TEST_P(Group, SeveralCallsOfOneCommunicator) {
  const int n = GetParam();
  const LocalRanks ranks(n);
  std::vector<std::unique_ptr<PreparedCall>> calls;
  for (std::uint64_t i = 0; i < 12; ++i) {
    constexpr Kind kKinds[] = {Kind::all_reduce, Kind::ring_shift, Kind::broadcast, Kind::all_to_all};
    Call call{
        .kind = kKinds[i % 4], .type = hocketInt32, .root = static_cast<int>(i) % n, .count = i * 3000, .seed = i};
    calls.push_back(std::make_unique<PreparedCall>(call, n));
  }
  drive_all_ranks(ranks, calls);
  // The same with a thread per rank.
  ranks.run([&](int rank, hocketComm_t comm) {
    hocketGroupStart();
    for (const auto& call : calls) ok(call->issue(rank, comm));
    ok(hocketGroupEnd());
  });
  for (const auto& call : calls) EXPECT_EQ(call->wrong(), "");
}

TEST_P(Group, AllToAllOfMessages) {
  const int n = GetParam();
  const LocalRanks ranks(n);
  const auto size = static_cast<std::size_t>(n);
  // Far more than all slots of a connection hold, in both directions at once.
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{600000}}) {
    std::vector<std::vector<std::int32_t>> in(size, std::vector<std::int32_t>(size * count)), out = in;
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t i = 0; i < in[r].size(); ++i)
        in[r][i] = static_cast<std::int32_t>(hash(1, static_cast<int>(r), i));
    ranks.run([&](int rank, hocketComm_t comm) {
      const auto me = static_cast<std::size_t>(rank);
      hocketGroupStart();
      // All sends first, then the receives in another order.
      for (std::size_t k = 0; k < size; ++k)
        ok(hocketSend(&in[me][k * count], count, hocketInt32, static_cast<int>(k), comm, nullptr));
      for (std::size_t k = size; k-- > 0;)
        ok(hocketRecv(&out[me][k * count], count, hocketInt32, static_cast<int>(k), comm, nullptr));
      ok(hocketGroupEnd());
    });
    for (std::size_t r = 0; r < size; ++r)
      for (std::size_t k = 0; k < size; ++k)
        ASSERT_TRUE(std::equal(&in[k][r * count], &in[k][r * count] + count, &out[r][k * count])) << k << " to " << r;
  }
}

// Messages of one pair and direction match in order, whatever their sizes.
TEST(GroupOfMessages, OrderWithinAPair) {
  const LocalRanks ranks(2);
  constexpr int kMessages = 40;
  std::vector<std::vector<std::int64_t>> sent, received;
  for (int i = 0; i < kMessages; ++i) {
    const std::size_t count = i % 5 == 0 ? 100000 : static_cast<std::size_t>(i) * 37;
    sent.emplace_back(count, i);
    received.emplace_back(count, -1);
  }
  ranks.run([&](int rank, hocketComm_t comm) {
    hocketGroupStart();
    for (int i = 0; i < kMessages; ++i) {
      auto& data = rank == 0 ? sent[static_cast<std::size_t>(i)] : received[static_cast<std::size_t>(i)];
      if (rank == 0)
        ok(hocketSend(data.data(), data.size(), hocketInt64, 1, comm, nullptr));
      else
        ok(hocketRecv(data.data(), data.size(), hocketInt64, 0, comm, nullptr));
    }
    ok(hocketGroupEnd());
  });
  EXPECT_EQ(sent, received);
}

// A grouped send meets a plain receive and the other way round; small messages take other ways from the third on.
TEST(GroupOfMessages, GroupedMeetsPlain) {
  const LocalRanks ranks(2);
  ranks.run([](int rank, hocketComm_t comm) {
    for (std::int32_t i = 0; i < 200; ++i) {
      std::int32_t word = rank == 0 ? i : -1;
      const bool grouped = (i + rank) % 3 == 0;
      if (grouped) hocketGroupStart();
      if (rank == 0)
        ok(hocketSend(&word, 1, hocketInt32, 1, comm, nullptr));
      else
        ok(hocketRecv(&word, 1, hocketInt32, 0, comm, nullptr));
      if (grouped) ok(hocketGroupEnd());
      EXPECT_EQ(word, i);
    }
  });
}

TEST(GroupNesting, OnlyTheOutermostEndRuns) {
  const LocalRanks ranks(2);
  std::int32_t in[2] = {3, 4}, out[2] = {0, 0};
  ok(hocketGroupStart());
  ok(hocketAllReduce(&in[0], &out[0], 1, hocketInt32, hocketSum, ranks[0], nullptr));
  ok(hocketGroupStart());
  ok(hocketAllReduce(&in[1], &out[1], 1, hocketInt32, hocketSum, ranks[1], nullptr));
  ok(hocketGroupEnd());
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
  ok(hocketGroupEnd());
  EXPECT_EQ(out[0], 7);
  EXPECT_EQ(out[1], 7);
}

TEST(GroupNesting, EmptyGroupsAndEndsWithoutStart) {
  ok(hocketGroupStart());
  ok(hocketGroupEnd());
  refused(hocketGroupEnd(), hocketInvalidUsage, "hocketGroupStart");
  ok(hocketGroupStart());
  ok(hocketGroupEnd());
}

TEST(GroupErrors, ARefusedCallEndsTheGroupBeforeAnyTraffic) {
  const LocalRanks ranks(2);
  std::int32_t in = 1, out = 0;
  hocketGroupStart();
  ok(hocketAllReduce(&in, &out, 1, hocketInt32, hocketSum, ranks[0], nullptr));
  refused(hocketBroadcast(&in, &out, 1, hocketInt32, -1, ranks[0], nullptr), hocketInvalidArgument, "root");
  refused(hocketGroupEnd(), hocketInvalidArgument, "root");
  EXPECT_EQ(out, 0);
  // Rank 1 took no part and nothing is left over.
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 10}, {.kind = Kind::ring_shift, .count = 10}});
}

// Several communicators in one group: ranks name them in opposite orders.
TEST(GroupOfCommunicators, OppositeOrders) {
  constexpr int kRanks = 3, kComms = 4;
  std::vector<std::unique_ptr<LocalRanks>> comms;
  for (int c = 0; c < kComms; ++c) comms.push_back(std::make_unique<LocalRanks>(kRanks));
  comms[0]->run([&](int rank, hocketComm_t) {
    for (const std::size_t count : {1, 100000}) {
      std::vector<std::vector<std::int32_t>> in(kComms, std::vector<std::int32_t>(count, rank + 1)), out = in;
      hocketGroupStart();
      for (int i = 0; i < kComms; ++i) {
        const int c = rank % 2 == 0 ? i : kComms - 1 - i;
        const auto at = static_cast<std::size_t>(c);
        ok(hocketAllReduce(in[at].data(), out[at].data(), count, hocketInt32, hocketSum, (*comms[at])[rank], nullptr));
      }
      ok(hocketGroupEnd());
      for (const auto& result : out)
        EXPECT_EQ(std::count(result.begin(), result.end(), 6), static_cast<std::ptrdiff_t>(count));
    }
  });
}

}  // namespace
}  // namespace hocket::test
