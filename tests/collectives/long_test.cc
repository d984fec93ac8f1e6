// SPDX-License-Identifier: Apache-2.0
// What takes minutes or gigabytes.
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "collectives/call.h"

namespace hocket::test {
namespace {

std::size_t available_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("MemAvailable:")) return std::stoul(line.substr(13)) * 1024;
  return 0;
}

class Pages {
 public:
  explicit Pages(std::size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Pages() {
    if (exist()) ::munmap(data_, bytes_);
  }
  bool exist() const { return data_ != MAP_FAILED; }
  std::int8_t* data() const { return static_cast<std::int8_t*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

std::int8_t value_at(std::size_t i) { return static_cast<std::int8_t>(i * 31 + (i >> 16) * 7 + (i >> 31) * 101); }

// E11: more than 2^31 elements, for real. Every element is compared.
TEST(LargeCounts, BroadcastBeyondTwoGibi) {
  watch(900);
  constexpr std::size_t kCount = (std::size_t{1} << 31) + 16;
  if (available_bytes() < 3 * kCount)
    GTEST_SKIP() << "needs " << 3 * kCount << " bytes of memory, " << available_bytes() << " are free";
  const Pages sent(kCount), received(kCount + 64);
  ASSERT_TRUE(sent.exist() && received.exist());
  for (std::size_t i = 0; i < kCount; ++i) sent.data()[i] = value_at(i);
  const LocalRanks ranks(2);
  ranks.run([&](int rank, hocketComm_t comm) {
    std::int8_t* const recv = rank == 0 ? sent.data() : received.data();
    ok(hocketBroadcast(rank == 0 ? sent.data() : nullptr, recv, kCount, hocketInt8, 0, comm, nullptr));
  });
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) wrong += received.data()[i] != value_at(i) ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(received.data()[kCount + i], 0);
}

// The whole product of kinds, types, operations, in place, counts and roots, for the numbers of ranks where roots and
// neighbours differ.
class WholeProduct : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WholeProduct, ::testing::Values(1, 2, 3, 5, 8));

TEST_P(WholeProduct, IsRight) {
  watch(1200);
  const int n = GetParam();
  const LocalRanks ranks(n);
  std::uint64_t seed = draw_seed();
  for (int k = 0; k < kKindCount; ++k)
    for (const hocketDataType_t type : kAllTypes) {
      std::vector<Call> calls;
      for (const hocketRedOp_t op : kAllOps) {
        if (!supports(op, type) || (op != hocketSum && !reduces(kind_at(k)))) continue;
        for (const std::size_t count :
             {std::size_t{1}, std::size_t{3}, std::size_t{17}, std::size_t{64}, std::size_t{1000}, std::size_t{4097}})
          for (int root = 0; root < (rooted(kind_at(k)) ? n : 1); ++root)
            for (const bool in_place : {false, true}) {
              if (in_place && !has_in_place(kind_at(k))) continue;
              Call call{.kind = kind_at(k),
                        .type = type,
                        .op = op,
                        .root = root,
                        .in_place = in_place,
                        .count = count,
                        .seed = seed++};
              if (vector_form(call.kind)) call.counts = random_counts(call.kind, n, count, 20, call.seed);
              call.gaps = seed % 2 == 0;
              calls.push_back(std::move(call));
            }
      }
      run_calls(ranks, calls);
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace hocket::test
