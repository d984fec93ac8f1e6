// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include <gtest/gtest.h>

#include <numeric>

namespace hocket::perf {
namespace {

constexpr std::size_t kBytes[] = {0, 4, 100, 1024, 100'000};
constexpr int kRanks[] = {1, 2, 3, 8};

// What a rank reads from another must lie in what the other sends, and what it writes in what it receives.
TEST(Collectives, PartsLieInTheBuffers) {
  for (const Collective& collective : all_collectives()) {
    for (int n : kRanks) {
      for (std::size_t bytes : kBytes) {
        const Setting setting = make_setting(collective, bytes, 4, n, n - 1, 1);
        EXPECT_LE(total_count(collective, setting) * 4, bytes);
        for (int rank = 0; rank < n; ++rank) {
          const Shape shape = collective.shape(setting, rank);
          EXPECT_LE(shape.send_at + shape.send_count, bytes / 4) << collective.name;
          EXPECT_LE(shape.recv_at + shape.recv_count, bytes / 4) << collective.name;
          std::size_t received = 0;
          for (const Part& part : shape.results) {
            received += part.count;
            EXPECT_LE(part.at + part.count, shape.recv_count) << collective.name;
            const Shape source = collective.shape(setting, part.rank);
            EXPECT_LE(part.first + part.count, source.send_count) << collective.name;
          }
          const bool receives = collective.name != "reduce" || rank == setting.root;
          EXPECT_EQ(received, receives ? shape.recv_count : 0) << collective.name;
        }
      }
    }
  }
}

TEST(Collectives, RandomCountsAddUpAndHaveZeros) {
  int zeros = 0;
  int all = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Setting s = make_setting(*find_collective("all_gather_v"), 100'000, 4, 8, 0, seed);
    EXPECT_EQ(std::accumulate(s.counts.begin(), s.counts.end(), std::size_t{0}), 25'000u);
    zeros += static_cast<int>(std::count(s.counts.begin(), s.counts.end(), 0u));
    all += 8;
  }
  EXPECT_GT(zeros, all / 5);
  EXPECT_LT(zeros, all / 2);
}

TEST(Collectives, AllToAllVCountsMatchBetweenRanks) {
  const Setting s = make_setting(*find_collective("all_to_all_v"), 100'000, 4, 5, -1, 3);
  for (std::size_t r = 0; r < 5; ++r) {
    const Shape mine = find_collective("all_to_all_v")->shape(s, static_cast<int>(r));
    for (std::size_t k = 0; k < 5; ++k) {
      EXPECT_EQ(mine.send_counts[k], find_collective("all_to_all_v")->shape(s, static_cast<int>(k)).recv_counts[r]);
    }
  }
}

TEST(Collectives, BusFactors) {
  EXPECT_DOUBLE_EQ(find_collective("all_reduce")->bus_factor(4), 1.5);
  EXPECT_DOUBLE_EQ(find_collective("all_gather")->bus_factor(4), 0.75);
  EXPECT_DOUBLE_EQ(find_collective("broadcast")->bus_factor(4), 1);
}

}  // namespace
}  // namespace hocket::perf
