// SPDX-License-Identifier: Apache-2.0
// Counts beyond 2^31 (E11) without the memory: plans and the arithmetic of blocks and slices.
#include <gtest/gtest.h>

#include "exec/blocks.h"
#include "plan/planner.h"

namespace hocket::test {
namespace {

constexpr std::size_t kCount = (std::size_t{1} << 31) + 7;

// Blocks cover the elements once, in order, without a gap.
void expect_whole(const BlockMap& map, std::size_t total) {
  std::size_t next = 0;
  for (std::size_t k = 0; k < map.n_blocks; ++k) {
    const Extent block = map.block(k);
    ASSERT_EQ(block.offset, next) << "block " << k;
    ASSERT_LE(block.count, total);
    next += block.count;
  }
  EXPECT_EQ(next, total);
}

TEST(LargeCounts, EveryCollectiveHasAPlan) {
  for (int kind = 0; kind < kCollectiveCount; ++kind)
    for (const int n : {2, 3, 8})
      for (const std::size_t element : {std::size_t{1}, std::size_t{8}}) {
        PlanRequest request;
        request.collective = static_cast<Collective>(kind);
        request.n_ranks = n;
        request.element_bytes = request.partial_bytes = element;
        request.bytes = kCount * element * static_cast<std::size_t>(n);
        for (int rank = 0; rank < n; ++rank) {
          if ((request.collective == Collective::send || request.collective == Collective::recv) &&
              rank == request.root)
            continue;
          const auto plan = make_plan(request, rank);
          ASSERT_TRUE(plan.has_value()) << to_string(request.collective);
          EXPECT_GT(plan->predicted_us, request.collective == Collective::barrier ? 0.0 : 1000.0)
              << to_string(request.collective);
          BlockMap even{.count = kCount, .n_blocks = static_cast<std::size_t>(plan->n_blocks), .granule = 64 / element};
          expect_whole(even, kCount);
        }
      }
}

TEST(LargeCounts, BlocksOfEveryForm) {
  for (const std::size_t n : {2, 3, 7, 8}) {
    expect_whole({.form = BlockMap::Form::even, .count = kCount, .n_blocks = n, .granule = 16}, kCount);
    expect_whole({.form = BlockMap::Form::uniform, .count = kCount, .n_blocks = n}, kCount * n);
    const std::vector<std::size_t> counts(n, kCount);
    expect_whole({.form = BlockMap::Form::listed, .n_blocks = n, .counts = counts.data()}, kCount * n);
    for (std::size_t parts = 1; parts <= 3; ++parts) {
      std::size_t next = 0;
      for (std::size_t k = 0; k < parts; ++k) {
        const Extent part = even_part(kCount, parts, k, 64);
        EXPECT_EQ(part.offset, next);
        next += part.count;
      }
      EXPECT_EQ(next, kCount);
    }
  }
}

}  // namespace
}  // namespace hocket::test
