// SPDX-License-Identifier: Apache-2.0
// What the numbers are: buffers of ranks that are not the root (E2), NaN (E4), rounding once (E5), averages and pairs of
// operation and type that do not exist (E7).
#include <algorithm>
#include <cmath>

#include "collectives/call.h"

namespace hocket::test {
namespace {

// ---- E2 ----

TEST(Reduce, OnlyTheRootsReceiveBufferChanges) {
  const LocalRanks ranks(3);
  std::vector<Call> calls;
  for (int root = 0; root < 3; ++root)
    for (const bool in_place : {false, true})
      for (const hocketDataType_t type : {hocketInt32, hocketBfloat16, hocketFloat64})
        for (const std::size_t count : {1, 17, 4097, 40000})
          // Odd and even seeds: NULL receive buffers on other ranks, or real ones.
          for (const std::uint64_t seed : {1, 2, 3, 4})
            calls.push_back({.type = type, .root = root, .in_place = in_place, .count = count, .seed = seed});
  for (Call& call : calls) call.kind = Kind::reduce;
  run_calls(ranks, calls);
}

TEST(Reduce, NullReceiveBufferOnOtherRanks) {
  const LocalRanks ranks(3);
  for (int root = 0; root < 3; ++root) {
    std::int32_t sum = 0;
    ranks.run([&](int rank, hocketComm_t comm) {
      const std::int32_t mine = 1 << rank;
      ok(hocketReduce(&mine, rank == root ? &sum : nullptr, 1, hocketInt32, hocketSum, root, comm, nullptr));
    });
    EXPECT_EQ(sum, 7);
  }
}

// ---- E4 ----

template <class T>
T nan_of() {
  return narrow<T>(std::numeric_limits<Wide<T>>::quiet_NaN());
}

template <class T>
void expect_nan_everywhere(const LocalRanks& ranks, std::size_t count, int holder, std::size_t at, hocketRedOp_t op) {
  const int n = ranks.n();
  std::vector<std::vector<T>> out(static_cast<std::size_t>(n), std::vector<T>(count));
  ranks.run([&](int rank, hocketComm_t comm) {
    std::vector<T> in(count);
    for (std::size_t i = 0; i < count; ++i)
      in[i] = narrow<T>(static_cast<Wide<T>>((static_cast<int>(i) + rank * 3) % 11 - 5));
    if (rank == holder) in[at] = nan_of<T>();
    ok(hocketAllReduce(in.data(), out[static_cast<std::size_t>(rank)].data(), count, DatatypeOf<T>::value, op, comm,
                       nullptr));
  });
  for (int rank = 0; rank < n; ++rank)
    for (std::size_t i = 0; i < count; ++i) {
      const Wide<T> value = widen<T>(out[static_cast<std::size_t>(rank)][i]);
      if (i == at) {
        ASSERT_TRUE(std::isnan(value)) << "rank " << rank << ", NaN of rank " << holder << " at " << at << " of "
                                       << count;
        continue;
      }
      Wide<T> should = static_cast<Wide<T>>(static_cast<int>(i) % 11 - 5);
      for (int r = 1; r < n; ++r) {
        const auto v = static_cast<Wide<T>>((static_cast<int>(i) + r * 3) % 11 - 5);
        should = op == hocketMax ? std::max(should, v) : std::min(should, v);
      }
      ASSERT_EQ(value, should) << "rank " << rank << " element " << i;
    }
}

TEST(Nan, PropagatesThroughMinAndMaxWhereverItIs) {
  for (const char* algorithm : {"", "one_shot", "two_shot", "ring", "chain"})
    for (const int n : {2, 3, 4}) {
      hocketConfig_t settings = config();
      if (*algorithm != '\0') settings.algorithm = algorithm;
      const LocalRanks ranks(n, settings);
      for (const hocketDataType_t type : kAllTypes)
        with_type(type, [&]<class T>() {
          if constexpr (kFloating<T>)
            for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{4097}})
              for (int holder = 0; holder < n; ++holder)
                for (const std::size_t at : {std::size_t{0}, count / 2, count - 1})
                  for (const hocketRedOp_t op : {hocketMax, hocketMin}) {
                    if (at != 0 && at >= count) continue;
                    expect_nan_everywhere<T>(ranks, count, holder, at, op);
                    if (testing::Test::HasFailure()) return;
                  }
        });
    }
}

// ---- E5 ----

TEST(Rounding, ThreeHundredOnesInBfloat16) {
  constexpr int kRanks = 300;
  const LocalRanks ranks(kRanks);
  std::vector<std::uint16_t> sums(kRanks);
  ranks.run([&](int rank, hocketComm_t comm) {
    const Bfloat16 one = Bfloat16::from(1.0f);
    Bfloat16 sum{};
    ok(hocketAllReduce(&one, &sum, 1, hocketBfloat16, hocketSum, comm, nullptr));
    sums[static_cast<std::size_t>(rank)] = sum.bits;
  });
  for (const std::uint16_t bits : sums) EXPECT_EQ(Bfloat16{bits}.to_float(), 300.0f);
}

// Random data against float64. Partial sums travel in the accumulation type and are rounded to T once: the error is half a
// unit of T, plus the accumulation's own rounding, which for 16-bit types is far below that and does not show.
template <class T>
void expect_one_rounding(int n, const char* algorithm, std::uint64_t seed) {
  hocketConfig_t settings = config();
  if (*algorithm != '\0') settings.algorithm = algorithm;
  const LocalRanks ranks(n, settings);
  constexpr std::size_t kCount = 3000;
  std::vector<std::vector<T>> in(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n), std::vector<T>(kCount));
  for (int r = 0; r < n; ++r)
    for (std::size_t i = 0; i < kCount; ++i) {
      const double unit = static_cast<double>(hash(seed, r, i) >> 11) / static_cast<double>(std::uint64_t{1} << 53);
      in[static_cast<std::size_t>(r)].push_back(
          narrow<T>(static_cast<float>(unit * 2 + 1)));  // one sign: no cancellation
    }
  ranks.run([&](int rank, hocketComm_t comm) {
    const auto r = static_cast<std::size_t>(rank);
    ok(hocketAllReduce(in[r].data(), out[r].data(), kCount, DatatypeOf<T>::value, hocketSum, comm, nullptr));
  });
  // Half a unit in the last place, relative; fp32 accumulates up to n - 1 roundings of its own.
  const double own = std::ldexp(1.0, -24) * (n - 1);
  const double last = sizeof(T) == 4 ? 0 : std::ldexp(1.0, std::is_same_v<T, Bfloat16> ? -8 : -11);
  for (std::size_t i = 0; i < kCount; ++i) {
    double exact = 0;
    for (const auto& values : in) exact += static_cast<double>(widen<T>(values[i]));
    const double got = static_cast<double>(widen<T>(out[0][i]));
    ASSERT_LE(std::abs(got - exact) / exact, last + own)
        << n << " ranks, element " << i << ": " << got << " for " << exact;
    for (const auto& values : out) ASSERT_EQ(widen<T>(values[i]), widen<T>(out[0][i])) << "ranks differ at " << i;
  }
}

TEST(Rounding, OneRoundingWhateverTheNumberOfRanks) {
  const std::uint64_t seed = draw_seed();
  for (const char* algorithm :
       {"", "ring", "two_shot", "double_binary_tree", "recursive_doubling", "chain", "one_shot"})
    for (const int n : {2, 5, 8, 24}) {
      SCOPED_TRACE(algorithm);
      expect_one_rounding<Float16>(n, algorithm, seed);
      expect_one_rounding<Bfloat16>(n, algorithm, seed);
      expect_one_rounding<float>(n, algorithm, seed);
      if (HasFailure()) return;
    }
}

// ---- E7 ----

TEST(Average, IntegersTowardZero) {
  const LocalRanks ranks(3);
  ranks.run([&](int rank, hocketComm_t comm) {
    // Sums -1, 1, -2, 2, -7, 100, over three ranks.
    const int values[3][6] = {{-1, 1, -2, 1, -3, 50}, {0, 0, 0, 1, -3, 50}, {0, 0, 0, 0, -1, 0}};
    const int expected[6] = {0, 0, 0, 0, -2, 33};
    for (const hocketDataType_t type : {hocketInt8, hocketInt16, hocketInt32, hocketInt64})
      with_type(type, [&]<class T>() {
        if constexpr (std::is_integral_v<T>) {
          T in[6], out[6];
          for (int i = 0; i < 6; ++i) in[i] = static_cast<T>(values[rank][i]);
          ok(hocketAllReduce(in, out, 6, type, hocketAvg, comm, nullptr));
          for (int i = 0; i < 6; ++i) EXPECT_EQ(out[i], static_cast<T>(expected[i])) << datatype_name(type) << " " << i;
        }
      });
    // Documented: the sum wraps in its own type. 100 * 3 = 300 is 44 in int8.
    const std::int8_t large = 100;
    std::int8_t average = 0;
    ok(hocketAllReduce(&large, &average, 1, hocketInt8, hocketAvg, comm, nullptr));
    EXPECT_EQ(average, 44 / 3);
  });
}

TEST(Operations, UnsupportedPairsAreRefusedBeforeAnyTraffic) {
  const LocalRanks ranks(2);
  alignas(8) std::byte send[64] = {}, recv[64] = {};
  int refusals = 0;
  for (const hocketDataType_t type : kAllTypes)
    for (const hocketRedOp_t op : kAllOps) {
      if (supports(op, type)) continue;
      ++refusals;
      // Rank 0 alone: had anything been sent, it would wait for rank 1, and the calls below would not match.
      refused(hocketAllReduce(send, recv, 4, type, op, ranks[0], nullptr), hocketInvalidArgument, "not defined");
      refused(hocketReduce(send, recv, 4, type, op, 0, ranks[0], nullptr), hocketInvalidArgument, "not defined");
      refused(hocketReduceScatter(send, recv, 4, type, op, ranks[0], nullptr), hocketInvalidArgument, "not defined");
      const std::size_t counts[2] = {4, 4};
      refused(hocketReduceScatterV(send, recv, counts, type, op, ranks[0], nullptr), hocketInvalidArgument,
              "not defined");
    }
  // Bitwise operations on the six float types, and the average of bool.
  EXPECT_EQ(refusals, 6 * 3 + 1);
  for (const std::byte b : recv) EXPECT_EQ(b, std::byte{0});
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 100}});
}

}  // namespace
}  // namespace hocket::test
