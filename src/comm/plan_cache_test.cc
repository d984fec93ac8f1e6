// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_cache.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace hocket {
namespace {

TEST(SizeClass, CoversEverySizeOnceAndInOrder) {
  for (std::size_t bytes = 0; bytes < 100000; ++bytes) {
    const std::uint32_t value = size_class(bytes);
    EXPECT_LE(bytes, largest_of_class(value)) << bytes;
    EXPECT_LE(size_class(bytes == 0 ? 0 : bytes - 1), value) << bytes;
    EXPECT_EQ(size_class(largest_of_class(value)), value) << "the largest of a class is in it: " << bytes;
    EXPECT_GT(size_class(largest_of_class(value) + 1), value) << "and the next size is not: " << bytes;
  }
}

TEST(SizeClass, HoldsNearPowersOfTwoUpToTheLargestSizes) {
  std::uint32_t before = 0;
  for (int bit = 3; bit < 62; ++bit)
    for (const std::size_t bytes : {(std::size_t{1} << bit) - 1, std::size_t{1} << bit, (std::size_t{1} << bit) + 1,
                                    (std::size_t{3} << (bit - 1)) - 1, std::size_t{3} << (bit - 1)}) {
      const std::uint32_t value = size_class(bytes);
      EXPECT_GE(value, before) << bytes;
      before = value;
      EXPECT_GE(largest_of_class(value), bytes);
      EXPECT_EQ(size_class(largest_of_class(value)), value) << bytes;
      EXPECT_EQ(size_class(largest_of_class(value) + 1), value + 1) << bytes;
      // Four classes per power of two: a plan is made for at most a quarter more than the call has.
      EXPECT_LE(largest_of_class(value) - bytes, bytes / 4) << bytes;
      EXPECT_LT(value, 1u << 12) << "as many bits as the key has";
    }
}

TEST(SizeClass, SmallSizesAreExact) {
  for (std::size_t bytes = 0; bytes < 4; ++bytes) EXPECT_EQ(largest_of_class(size_class(bytes)), bytes);
  EXPECT_NE(size_class(3), size_class(4));
}

std::vector<PlanKey> many_keys() {
  std::vector<PlanKey> keys;
  for (int collective = 0; collective < kCollectiveCount; ++collective)
    for (const std::uint8_t element : {1, 2, 4, 8})
      for (const std::uint8_t partial : {1, 4, 8})
        for (int flags = 0; flags < 32; ++flags)
          for (const std::uint32_t value : {0u, 1u, 37u, size_class(std::size_t{1} << 61)})
            for (const int root : {0, 1, 299, 1 << 20}) {
              PlanKey key;
              key.collective = static_cast<Collective>(collective);
              key.element_bytes = element;
              key.partial_bytes = partial;
              key.commutative = (flags & 1) != 0;
              key.premultiplied = (flags & 2) != 0;
              key.mapped = (flags & 4) != 0;
              key.size_known = (flags & 8) != 0;
              key.uneven = (flags & 16) != 0;
              key.size_class = value;
              key.root = root;
              keys.push_back(key);
            }
  return keys;
}

TEST(PlanKey, DifferentKeysPackDifferently) {
  const std::vector<PlanKey> keys = many_keys();
  std::set<std::uint64_t> packed;
  for (const PlanKey& key : keys) packed.insert(key.packed());
  EXPECT_EQ(packed.size(), keys.size());
}

// Rings that go nowhere: programs keep their addresses, nothing is run.
class Nowhere final : public Transport {
 public:
  Nowhere() {
    memory_.depth = 4;
    memory_.lines_per_slot = 32;
    memory_.slot_bytes = memory_.bulk_bytes = 4096;
    send_ = SendRing(memory_, 0, -1);
  }
  std::string_view name() const override { return "nowhere"; }
  TransportCaps caps() const override { return {}; }
  SendRing* sender(const RingKey&) override { return &send_; }
  RecvRing* receiver(const RingKey&) override { return &recv_; }

 private:
  RingMemory memory_;
  SendRing send_;
  RecvRing recv_;
};

PlanRequest common(int n_ranks) {
  PlanRequest request;
  request.n_ranks = n_ranks;
  return request;
}

PlanKey key_of(Collective collective, std::size_t bytes, int root = 0) {
  PlanKey key;
  key.collective = collective;
  key.element_bytes = key.partial_bytes = 4;
  key.size_class = size_class(bytes);
  key.root = root;
  return key;
}

TEST(PlanCache, SameKeySameProgram) {
  Nowhere transport;
  PlanCache cache(common(4), 1, &transport);
  const auto first = cache.find(key_of(Collective::all_reduce, 1000));
  ASSERT_TRUE(first) << first.error().text;
  EXPECT_EQ(*cache.find(key_of(Collective::all_reduce, 1000)), *first);
  EXPECT_EQ(*cache.find(key_of(Collective::all_reduce, 1001)), *first) << "of the same class";
  EXPECT_NE(*cache.find(key_of(Collective::all_reduce, 1 << 20)), *first);
  EXPECT_EQ((*first)->plan.rank, 1);
  EXPECT_EQ((*first)->plan.n_ranks, 4);
}

TEST(PlanCache, ProgramsStayWhereTheyAre) {
  Nowhere transport;
  PlanCache cache(common(5), 0, &transport);
  std::vector<std::pair<PlanKey, const Program*>> found;
  for (const Collective kind :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather, Collective::reduce})
    for (std::size_t bytes = 4; bytes <= (1 << 20); bytes *= 2)
      for (int root = 0; root < (kind == Collective::broadcast || kind == Collective::reduce ? 5 : 1); ++root) {
        const PlanKey key = key_of(kind, bytes, root);
        const auto program = cache.find(key);
        ASSERT_TRUE(program) << program.error().text;
        EXPECT_EQ((*program)->plan.collective, kind);
        EXPECT_EQ((*program)->plan.root, root);
        found.emplace_back(key, *program);
      }
  for (const auto& [key, program] : found) EXPECT_EQ(*cache.find(key), program);
  EXPECT_EQ(cache.all().size(), found.size());
}

TEST(PlanCache, RanksPickTheSamePlan) {
  Nowhere transport;
  for (std::size_t bytes = 4; bytes <= (1 << 24); bytes *= 4) {
    std::set<std::string> algorithms;
    std::set<int> blocks;
    for (int rank = 0; rank < 8; ++rank) {
      PlanCache cache(common(8), rank, &transport);
      const auto program = cache.find(key_of(Collective::all_reduce, bytes));
      ASSERT_TRUE(program) << program.error().text;
      algorithms.insert((*program)->plan.algorithm);
      blocks.insert((*program)->plan.n_blocks);
    }
    EXPECT_EQ(algorithms.size(), 1u) << bytes;
    EXPECT_EQ(blocks.size(), 1u) << bytes;
  }
}

TEST(PlanCache, OneRankNeedsNoTransport) {
  PlanCache cache(common(1), 0, nullptr);
  const auto program = cache.find(key_of(Collective::all_reduce, 100));
  ASSERT_TRUE(program) << program.error().text;
  EXPECT_EQ((*program)->plan.algorithm, "self");
}

TEST(PlanCache, ImpossibleRequestsAreErrorsEachTime) {
  Nowhere transport;
  PlanCache cache(common(4), 1, &transport);
  PlanKey key = key_of(Collective::broadcast, 100);
  key.root = 4;
  EXPECT_FALSE(cache.find(key));
  EXPECT_FALSE(cache.find(key));
  EXPECT_TRUE(cache.all().empty());
}

}  // namespace
}  // namespace hocket
