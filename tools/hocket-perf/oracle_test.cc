// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "minifloat.h"

namespace hocket::perf {
namespace {

constexpr std::size_t kCount = 1201;  // more than two blocks, and a part of one

std::vector<char> input_of(const Inputs& inputs, int rank) {
  std::vector<char> out(kCount * data_type(inputs.type).bytes);
  make_input(inputs, rank, 0, kCount, out.data());
  return out;
}

template <class T>
T at(const std::vector<char>& bytes, std::size_t i) {
  T out;
  std::memcpy(&out, bytes.data() + i * sizeof(T), sizeof(T));
  return out;
}

// ---- Conversions of 16- and 8-bit floats ----

template <class F>
void expect_round_trip() {
  for (std::uint64_t code = 0; code < 2 * F::kSign; ++code) {
    const F f{static_cast<decltype(F::bits)>(code)};
    if (f.is_nan()) {
      EXPECT_TRUE(F::from(f.value()).is_nan()) << code;
    } else {
      EXPECT_EQ(F::from(f.value()).bits, f.bits) << code;
    }
  }
}

TEST(MiniFloat, EveryCodeComesBack) {
  expect_round_trip<Half>();
  expect_round_trip<BFloat16>();
  expect_round_trip<Fp8E4M3>();
  expect_round_trip<Fp8E5M2>();
}

// Between neighbours the nearer one wins, and in the middle the even one.
template <class F>
void expect_nearest_even() {
  for (std::uint64_t code = 0; code < F::kMax; ++code) {
    const F low{static_cast<decltype(F::bits)>(code)};
    const F high{static_cast<decltype(F::bits)>(code + 1)};
    const double middle = (low.value() + high.value()) / 2;
    EXPECT_EQ(F::from(std::nextafter(middle, 0)).bits, low.bits) << code;
    EXPECT_EQ(F::from(std::nextafter(middle, 1e300)).bits, high.bits) << code;
    EXPECT_EQ(F::from(middle).bits, code % 2 == 0 ? low.bits : high.bits) << code;
  }
}

TEST(MiniFloat, RoundsToNearestEven) {
  expect_nearest_even<Half>();
  expect_nearest_even<BFloat16>();
  expect_nearest_even<Fp8E4M3>();
  expect_nearest_even<Fp8E5M2>();
}

TEST(MiniFloat, KnownValues) {
  EXPECT_EQ(Half::from(1.0).bits, 0x3c00);
  EXPECT_EQ(Half::from(65504.0).bits, 0x7bff);
  EXPECT_EQ(Half::from(65520.0).bits, 0x7c00);
  EXPECT_EQ(Half::from(-0.0).bits, 0x8000);
  EXPECT_EQ(BFloat16::from(1.0).bits, 0x3f80);
  EXPECT_EQ(Fp8E4M3::from(448.0).bits, 0x7e);
  EXPECT_EQ(Fp8E4M3::from(480.0).bits, 0x7f);  // no infinity: NaN
  EXPECT_EQ(Fp8E4M3::from(std::ldexp(1.0, -9)).bits, 0x01);
  EXPECT_EQ(Fp8E5M2::from(57344.0).bits, 0x7b);
  EXPECT_EQ(Fp8E5M2::from(65536.0).bits, 0x7c);
  EXPECT_TRUE(std::isnan(Fp8E4M3{0xff}.value()));
}

TEST(MiniFloat, BFloat16IsTheUpperHalfOfFloat) {
  for (std::uint32_t bits = 0; bits < 0x7f80'0000u; bits += 0x1'2345u) {
    const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    EXPECT_EQ(BFloat16::from(std::bit_cast<float>(bits)).bits, rounded >> 16);
  }
}

// ---- Inputs ----

TEST(Inputs, DependOnSeedRankAndIndexAlone) {
  for (const DataType& type : all_data_types()) {
    const Inputs inputs{type.type, Op::none, 3, 7};
    const std::vector<char> whole = input_of(inputs, 1);
    std::vector<char> tail(100 * type.bytes);
    make_input(inputs, 1, 700, 100, tail.data());
    EXPECT_EQ(std::memcmp(tail.data(), whole.data() + 700 * type.bytes, tail.size()), 0) << type.name;
    EXPECT_NE(whole, input_of(inputs, 2)) << type.name;
    EXPECT_NE(whole, input_of({type.type, Op::none, 3, 8}, 1)) << type.name;
    EXPECT_EQ(wrong_inputs(inputs, 1, 0, kCount, whole.data()), 0u);
  }
}

TEST(Inputs, EveryWrongElementIsCounted) {
  for (const DataType& type : all_data_types()) {
    const Inputs inputs{type.type, Op::none, 3, 7};
    std::vector<char> data = input_of(inputs, 0);
    for (std::size_t i : {0u, 511u, 512u, 1200u}) data[i * type.bytes] ^= 2;
    EXPECT_EQ(wrong_inputs(inputs, 0, 0, kCount, data.data()), 4u) << type.name;
  }
}

// ---- Reductions, against a second way to compute them ----

TEST(Reductions, OfOneRankAreItsInput) {
  for (const DataType& type : all_data_types()) {
    for (Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      const Inputs inputs{type.type, op, 1, 3};
      EXPECT_EQ(wrong_reductions(inputs, 0, kCount, input_of(inputs, 0).data()), 0u) << type.name << op_name(op);
    }
  }
}

TEST(Reductions, IntegersWrap) {
  const Inputs inputs{hocketInt8, Op::sum, 300, 5};
  std::vector<char> sum(kCount, 0);
  for (int rank = 0; rank < 300; ++rank) {
    const std::vector<char> x = input_of(inputs, rank);
    for (std::size_t i = 0; i < kCount; ++i) sum[i] = static_cast<char>(sum[i] + x[i]);
  }
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, sum.data()), 0u);
  sum[17] = static_cast<char>(sum[17] + 1);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, sum.data()), 1u);
}

TEST(Reductions, IntegerAverageIsRoundedTowardZero) {
  const Inputs inputs{hocketInt16, Op::avg, 3, 5};
  const std::vector<char> x[] = {input_of(inputs, 0), input_of(inputs, 1), input_of(inputs, 2)};
  std::vector<std::int16_t> toward_zero(kCount);
  std::vector<std::int16_t> downward(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto sum =
        static_cast<std::int16_t>(at<std::int16_t>(x[0], i) + at<std::int16_t>(x[1], i) + at<std::int16_t>(x[2], i));
    toward_zero[i] = static_cast<std::int16_t>(sum / 3);
    downward[i] = static_cast<std::int16_t>(std::floor(sum / 3.0));
  }
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, toward_zero.data()), 0u);
  EXPECT_GT(wrong_reductions(inputs, 0, kCount, downward.data()), kCount / 10);
}

TEST(Reductions, AnyOrderOfFloatAdditionIsRight) {
  const int n = 16;
  const Inputs inputs{hocketFloat32, Op::sum, n, 5};
  std::vector<std::vector<char>> x;
  for (int rank = 0; rank < n; ++rank) x.push_back(input_of(inputs, rank));
  std::vector<float> up(kCount);
  std::vector<float> down(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    for (int rank = 0; rank < n; ++rank) {
      up[i] += at<float>(x[static_cast<std::size_t>(rank)], i);
      down[i] += at<float>(x[static_cast<std::size_t>(n - 1 - rank)], i);
    }
  }
  EXPECT_NE(up, down);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, up.data()), 0u);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, down.data()), 0u);
  up[3] += 1e-4f;
  down[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, up.data()), 1u);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, down.data()), 1u);
}

template <class F>
void expect_one_rounding(hocketDataType_t type) {
  const int n = 8;
  const Inputs inputs{type, Op::sum, n, 5};
  std::vector<float> exact(kCount);
  std::vector<F> per_hop(kCount);
  for (int rank = 0; rank < n; ++rank) {
    const std::vector<char> x = input_of(inputs, rank);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double value = at<F>(x, i).value();
      exact[i] += static_cast<float>(value);
      per_hop[i] = rank == 0 ? at<F>(x, i) : F::from(per_hop[i].value() + value);
    }
  }
  std::vector<F> once(kCount);
  for (std::size_t i = 0; i < kCount; ++i) once[i] = F::from(exact[i]);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, once.data()), 0u) << data_type(type).name;
  EXPECT_GT(wrong_reductions(inputs, 0, kCount, per_hop.data()), kCount / 20) << data_type(type).name;
}

TEST(Reductions, SmallFloatsAreRoundedOnce) {
  expect_one_rounding<Half>(hocketFloat16);
  expect_one_rounding<BFloat16>(hocketBfloat16);
  expect_one_rounding<Fp8E4M3>(hocketFloat8e4m3);
  expect_one_rounding<Fp8E5M2>(hocketFloat8e5m2);
}

TEST(Reductions, MinimumOfNanIsNan) {
  const Inputs inputs{hocketFloat32, Op::min, 2, 5};
  const std::vector<char> x[] = {input_of(inputs, 0), input_of(inputs, 1)};
  std::vector<float> propagated(kCount);
  std::vector<float> ignored(kCount);
  std::size_t n_nan = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float a = at<float>(x[0], i);
    const float b = at<float>(x[1], i);
    propagated[i] = std::isnan(a) || std::isnan(b) ? std::numeric_limits<float>::quiet_NaN() : std::min(a, b);
    ignored[i] = std::fmin(a, b);
    n_nan += std::isnan(a) != std::isnan(b);
  }
  EXPECT_GT(n_nan, 0u);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, propagated.data()), 0u);
  EXPECT_EQ(wrong_reductions(inputs, 0, kCount, ignored.data()), n_nan);
}

// Products and sums of many ranks stay finite in every format, so that nothing hangs on how overflow is treated.
TEST(Reductions, StayInRange) {
  for (const auto type : {hocketFloat16, hocketBfloat16, hocketFloat8e4m3, hocketFloat8e5m2}) {
    for (Op op : {Op::sum, Op::prod}) {
      for (int n : {2, 8, 33, 300}) {
        const Inputs inputs{type, op, n, 9};
        std::vector<char> nans(kCount * data_type(type).bytes, '\xff');
        EXPECT_EQ(wrong_reductions(inputs, 0, kCount, nans.data()), kCount) << data_type(type).name << op_name(op) << n;
      }
    }
  }
}

TEST(Reductions, UserSumIsTheSum) {
  for (const DataType& type : all_data_types()) {
    if (!supported(type.type, Op::user)) continue;
    const Inputs inputs{type.type, Op::user, 3, 5};
    std::vector<char> sum = input_of(inputs, 0);
    user_sum(sum.data(), input_of(inputs, 1).data(), kCount, type.type, nullptr);
    user_sum(sum.data(), input_of(inputs, 2).data(), kCount, type.type, nullptr);
    EXPECT_EQ(wrong_reductions(inputs, 0, kCount, sum.data()), 0u) << type.name;
  }
}

// ---- Poison ----

TEST(Poison, IsAFunctionOfTheOffset) {
  std::vector<char> whole(5000);
  make_poison(-4096, whole.size(), whole.data());
  std::vector<char> part(77);
  make_poison(-4096 + 1003, part.size(), part.data());
  EXPECT_EQ(std::memcmp(part.data(), whole.data() + 1003, part.size()), 0);
  EXPECT_EQ(wrong_poison(-4096, whole.size(), 1, whole.data()), 0u);
  whole[4999] ^= 1;
  whole[0] ^= 1;
  EXPECT_EQ(wrong_poison(-4096, whole.size(), 1, whole.data()), 2u);
}

}  // namespace
}  // namespace hocket::perf
