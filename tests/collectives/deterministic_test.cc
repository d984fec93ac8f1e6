// SPDX-License-Identifier: Apache-2.0
// deterministic = 1: the same elements give the same bits, alone or next to others, whatever the size of the call, the
// algorithm, the channels and the slots.
#include <cstring>

#include "collectives/algorithm_names.h"
#include "collectives/call.h"

namespace hocket::test {
namespace {

constexpr std::size_t kProbe = 64;  // the elements that are followed through calls of different sizes

// Element `i` of the probe on `rank`: values whose sum depends on the order.
float probe_value(std::uint64_t seed, int rank, std::size_t i) {
  const std::uint64_t bits = hash(seed, rank, i);
  const float mantissa = 1.0f + static_cast<float>(bits % 1000003) / 1000003.0f;
  return std::ldexp((bits >> 32) % 2 == 0 ? mantissa : -mantissa, static_cast<int>((bits >> 40) % 12));
}

// A call of `count` elements in which the probe starts at `at`; the rest is other data.
struct Shape {
  Kind kind = Kind::all_reduce;
  std::size_t count = kProbe;
  std::size_t at = 0;
  std::size_t length = kProbe;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all = {{.count = 1, .length = 1}, {.kind = Kind::reduce, .count = 1, .length = 1}};
  for (const std::size_t count : {kProbe, std::size_t{100}, std::size_t{1000}, std::size_t{4097}, std::size_t{40001}})
    for (const std::size_t at : {std::size_t{0}, (count - kProbe) / 3, count - kProbe}) {
      all.push_back({.count = count, .at = at});
      if (at != 0) all.push_back({.kind = Kind::reduce, .count = count, .at = at});
    }
  return all;
}

// The reduced probe from each call, as rank 0 has it.
template <class T>
std::vector<std::vector<T>> reduce_probe(const LocalRanks& ranks, std::uint64_t seed, const std::vector<Shape>& calls) {
  std::vector<std::vector<T>> results(calls.size());
  ranks.run([&](int rank, hocketComm_t comm) {
    std::vector<T> in, out;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      const auto [kind, count, at, length] = calls[c];
      for (std::size_t i = in.size(); i < count; ++i) in.push_back(narrow<T>(probe_value(seed + 99, rank, i)));
      out.assign(count, T{});
      std::vector<T> input(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count));
      for (std::size_t i = 0; i < length; ++i) input[at + i] = narrow<T>(probe_value(seed, rank, i));
      if (kind == Kind::reduce)
        ok(hocketReduce(input.data(), out.data(), count, DatatypeOf<T>::value, hocketSum, 0, comm, nullptr));
      else
        ok(hocketAllReduce(input.data(), out.data(), count, DatatypeOf<T>::value, hocketSum, comm, nullptr));
      if (rank == 0)
        results[c].assign(out.begin() + static_cast<std::ptrdiff_t>(at),
                          out.begin() + static_cast<std::ptrdiff_t>(at + length));
    }
  });
  return results;
}

// The left fold in rank order, which is what the flag promises in this version.
template <class T>
std::vector<T> in_rank_order(int n, std::uint64_t seed) {
  std::vector<T> result(kProbe);
  for (std::size_t i = 0; i < kProbe; ++i) {
    float sum = widen<T>(narrow<T>(probe_value(seed, 0, i)));
    for (int r = 1; r < n; ++r) sum += widen<T>(narrow<T>(probe_value(seed, r, i)));
    result[i] = narrow<T>(sum);
  }
  return result;
}

template <class T>
void expect_bits(const std::vector<T>& got, const std::vector<T>& should, std::size_t count, std::size_t at) {
  ASSERT_EQ(std::memcmp(got.data(), should.data(), got.size() * sizeof(T)), 0)
      << "bits differ in a call of " << count << " elements with the probe at " << at;
}

template <class T>
void check_all_shapes(const LocalRanks& ranks, std::uint64_t seed) {
  const std::vector<T> should = in_rank_order<T>(ranks.n(), seed);
  const std::vector<Shape> calls = shapes();
  const auto results = reduce_probe<T>(ranks, seed, calls);
  for (std::size_t c = 0; c < calls.size(); ++c) {
    expect_bits(results[c], should, calls[c].count, calls[c].at);
    if (testing::Test::HasFailure()) return;
  }
}

class Deterministic : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Deterministic, ::testing::Values(3, 5, 8));

TEST_P(Deterministic, SameBitsEverywhere) {
  const std::uint64_t seed = draw_seed();
  int variant = 0;
  for (const std::string& name : reduction_algorithms()) {
    // All channels and slots with the planner's choice; one after the other with each name.
    for (int i = 0; i < (name.empty() ? 9 : 2); ++i, ++variant) {
      hocketConfig_t settings = config();
      settings.deterministic = 1;
      if (!name.empty()) settings.algorithm = name.c_str();
      settings.channels = 1 + variant % 3;
      constexpr int kSlots[] = {256, 4096, HOCKET_CONFIG_UNDEF_INT};
      settings.slotBytes = kSlots[variant / 3 % 3];
      SCOPED_TRACE(testing::Message() << '"' << name << "\", channels " << settings.channels << ", slots "
                                      << settings.slotBytes);
      const LocalRanks ranks(GetParam(), settings);
      check_all_shapes<float>(ranks, seed);
      check_all_shapes<Bfloat16>(ranks, seed);
      if (HasFailure()) return;
    }
  }
}

// The probe does tell orders apart: summed backwards it gives other bits.
TEST(DeterministicProbe, DependsOnTheOrder) {
  const auto forward = in_rank_order<float>(5, 1);
  int different = 0;
  for (std::size_t i = 0; i < kProbe; ++i) {
    float sum = probe_value(1, 4, i);
    for (int r = 3; r >= 0; --r) sum += probe_value(1, r, i);
    different += std::memcmp(&sum, &forward[i], sizeof sum) != 0 ? 1 : 0;
  }
  EXPECT_GT(different, 10);
}

TEST(DeterministicProbe, ReduceScatterGivesTheSameBits) {
  hocketConfig_t settings = config();
  settings.deterministic = 1;
  const LocalRanks ranks(3, settings);
  const auto should = in_rank_order<float>(3, 5);
  for (const std::size_t block : {kProbe, std::size_t{3000}}) {
    std::vector<float> probe(kProbe);
    ranks.run([&](int rank, hocketComm_t comm) {
      std::vector<float> in(block * 3), out(block);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = probe_value(77, rank, i);
      for (std::size_t i = 0; i < kProbe; ++i) in[block + i] = probe_value(5, rank, i);
      ok(hocketReduceScatter(in.data(), out.data(), block, hocketFloat32, hocketSum, comm, nullptr));
      if (rank == 1) std::copy_n(out.begin(), kProbe, probe.begin());
    });
    expect_bits(probe, should, block, 0);
  }
}

}  // namespace
}  // namespace hocket::test
