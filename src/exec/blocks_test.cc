// SPDX-License-Identifier: Apache-2.0
#include "exec/blocks.h"

#include <gtest/gtest.h>

#include <vector>

namespace hocket {
namespace {

TEST(EvenPart, CoversExactlyOnce) {
  for (const std::size_t granule : {1, 4, 16, 64})
    for (std::size_t parts = 1; parts <= 33; ++parts)
      for (const std::size_t count : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 127, 1000, 1024, 4099, 100003}) {
        std::size_t end = 0;
        for (std::size_t index = 0; index < parts; ++index) {
          const Extent part = even_part(count, parts, index, granule);
          EXPECT_EQ(part.offset, end) << count << " in " << parts << ", part " << index;
          end = part.offset + part.count;
        }
        EXPECT_EQ(end, count) << "in " << parts;
      }
}

TEST(EvenPart, BordersAreGranulesAndPartsEven) {
  for (const std::size_t granule : {1, 4, 16, 64})
    for (std::size_t parts = 2; parts <= 9; ++parts)
      for (const std::size_t count : {1, 64, 65, 1000, 4096, 100003}) {
        const std::size_t largest = even_part(count, parts, 0, granule).count;
        EXPECT_LE(largest, (count + parts - 1) / parts + granule) << "no part is larger than it must be";
        for (std::size_t index = 0; index < parts; ++index) {
          const Extent part = even_part(count, parts, index, granule);
          EXPECT_TRUE(part.count == 0 || part.offset % granule == 0) << part.offset;
          EXPECT_LE(part.count, largest) << "the first part is the largest";
        }
      }
}

TEST(EvenPart, OnePartIsEverything) {
  EXPECT_EQ(even_part(17, 1, 0, 16).count, 17u);
  EXPECT_EQ(even_part(0, 1, 0, 16).count, 0u);
}

TEST(BlockMap, Forms) {
  BlockMap map;
  map.count = 100;
  map.n_blocks = 4;
  map.granule = 16;
  EXPECT_EQ(map.block(0).count, 32u);
  EXPECT_EQ(map.block(3).offset, 96u);
  EXPECT_EQ(map.block(3).count, 4u);
  map.form = BlockMap::Form::uniform;
  EXPECT_EQ(map.block(3).offset, 300u);
  EXPECT_EQ(map.block(3).count, 100u);
  map.form = BlockMap::Form::own_only;
  EXPECT_EQ(map.block(3).offset, 0u);
  EXPECT_EQ(map.block(3).count, 100u);
}

TEST(BlockMap, ListedWithAndWithoutDisplacements) {
  const std::vector<std::size_t> counts{3, 0, 5, 1}, displs{10, 0, 40, 20};
  BlockMap map;
  map.form = BlockMap::Form::listed;
  map.counts = counts.data();
  std::size_t end = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    EXPECT_EQ(map.block(k).offset, end) << "one behind the other";
    EXPECT_EQ(map.block(k).count, counts[k]);
    end += counts[k];
  }
  map.displs = displs.data();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    EXPECT_EQ(map.block(k).offset, displs[k]);
    EXPECT_EQ(map.block(k).count, counts[k]);
  }
}

}  // namespace
}  // namespace hocket
