// SPDX-License-Identifier: Apache-2.0
// Operations that the caller makes: the pre-multiplied sum and user-defined ones, which need not commute.
#include <atomic>
#include <cstring>

#include "collectives/algorithm_names.h"
#include "collectives/call.h"

namespace hocket::test {
namespace {

constexpr std::size_t kCounts[] = {1, 7, 64, 4097, 12000};

// ---- Pre-multiplied sum ----

template <class T>
void check_premultiplied(const LocalRanks& ranks, hocketScalarResidence_t residence, Kind kind) {
  const int n = ranks.n();
  const hocketDataType_t type = DatatypeOf<T>::value;
  const auto input = [](int rank, std::size_t i) {
    return static_cast<int>((i * 7 + static_cast<std::size_t>(rank) * 3) % 9) - 4;
  };
  ranks.run([&](int rank, hocketComm_t comm) {
    T scalar = narrow<T>(static_cast<Wide<T>>(rank % 3 + 1));
    hocketRedOp_t op;
    if (!ok(hocketRedOpCreatePreMulSum(&op, &scalar, type, residence, comm))) return;
    // An immediate scalar was copied, one in memory is read when a call runs.
    if (residence == hocketScalarHostImmediate) scalar = narrow<T>(static_cast<Wide<T>>(5));
    for (int round = 0; round < 2; ++round) {
      const int shift = residence == hocketScalarDevice ? round : 0;
      if (residence == hocketScalarDevice) scalar = narrow<T>(static_cast<Wide<T>>(rank % 3 + 1 + shift));
      for (const std::size_t count : kCounts) {
        std::vector<T> in(count * static_cast<std::size_t>(kind == Kind::reduce_scatter ? n : 1)), out(count);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = narrow<T>(static_cast<Wide<T>>(input(rank, i)));
        switch (kind) {
          case Kind::reduce: ok(hocketReduce(in.data(), out.data(), count, type, op, n - 1, comm, nullptr)); break;
          case Kind::reduce_scatter:
            ok(hocketReduceScatter(in.data(), out.data(), count, type, op, comm, nullptr));
            break;
          default: ok(hocketAllReduce(in.data(), out.data(), count, type, op, comm, nullptr)); break;
        }
        if (kind == Kind::reduce && rank != n - 1) continue;
        const std::size_t first = kind == Kind::reduce_scatter ? static_cast<std::size_t>(rank) * count : 0;
        for (std::size_t i = 0; i < count; ++i) {
          // Small numbers: every sum is exact; a product may need rounding in 8-bit types.
          int sum = 0;
          for (int r = 0; r < n; ++r)
            sum +=
                static_cast<int>(widen<T>(narrow<T>(static_cast<Wide<T>>((r % 3 + 1 + shift) * input(r, first + i)))));
          const T should = narrow<T>(static_cast<Wide<T>>(sum));
          if (std::memcmp(&out[i], &should, sizeof should) == 0 || widen<T>(out[i]) == widen<T>(should)) continue;
          ADD_FAILURE() << to_string(kind) << " " << datatype_name(type) << ", rank " << rank << " of " << n
                        << ", element " << i << " of " << count;
          break;
        }
      }
    }
    ok(hocketRedOpDestroy(op, comm));
  });
}

TEST(PreMulSum, EveryType) {
  for (const int n : {1, 2, 3, 5}) {
    const LocalRanks ranks(n);
    for (const hocketDataType_t type : kAllTypes)
      with_type(type, [&]<class T>() {
        if constexpr (!std::is_same_v<T, Bool>)
          for (const Kind kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter})
            for (const auto residence : {hocketScalarHostImmediate, hocketScalarDevice})
              if (!testing::Test::HasFailure()) check_premultiplied<T>(ranks, residence, kind);
      });
    if (HasFailure()) return;
  }
}

TEST(PreMulSum, EveryAlgorithm) {
  for (const std::string& name : reduction_algorithms()) {
    SCOPED_TRACE(name);
    hocketConfig_t settings = config();
    if (!name.empty()) settings.algorithm = name.c_str();
    const LocalRanks ranks(3, settings);
    for (const Kind kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter}) {
      check_premultiplied<float>(ranks, hocketScalarHostImmediate, kind);
      check_premultiplied<Float16>(ranks, hocketScalarHostImmediate, kind);
      if (HasFailure()) return;
    }
  }
}

// The product is rounded to the type before it is summed.
TEST(PreMulSum, ProductIsRoundedToTheType) {
  const LocalRanks ranks(2);
  ranks.run([&](int, hocketComm_t comm) {
    // 1.5 * (1 + 2^-7) = 1.51171875 is a tie in bfloat16 and rounds to 1.515625 (even); without that rounding the sum of two
    // would be 3.0234375, which rounds to 3.03125 or 3.015625, not through 1.515625 * 2 = 3.03125.
    Bfloat16 scalar = Bfloat16::from(1.5f);
    const Bfloat16 in = Bfloat16::from(1.0078125f);
    const float product = Bfloat16::from(1.5f * in.to_float()).to_float();
    hocketRedOp_t op;
    ok(hocketRedOpCreatePreMulSum(&op, &scalar, hocketBfloat16, hocketScalarHostImmediate, comm));
    Bfloat16 out{};
    ok(hocketAllReduce(&in, &out, 1, hocketBfloat16, op, comm, nullptr));
    EXPECT_EQ(out.to_float(), Bfloat16::from(product + product).to_float());
    ok(hocketRedOpDestroy(op, comm));
  });
}

TEST(PreMulSum, TypeOfTheCallMustMatch) {
  const LocalRanks ranks(2);
  float scalar = 2;
  hocketRedOp_t op;
  std::int32_t in = 1, out = 0;
  ok(hocketRedOpCreatePreMulSum(&op, &scalar, hocketFloat32, hocketScalarHostImmediate, ranks[0]));
  refused(hocketAllReduce(&in, &out, 1, hocketInt32, op, ranks[0], nullptr), hocketInvalidArgument, "Float32");
  ok(hocketRedOpDestroy(op, ranks[0]));
  refused(hocketAllReduce(&scalar, &out, 1, hocketFloat32, op, ranks[0], nullptr), hocketInvalidArgument, "not a live");
  refused(hocketRedOpDestroy(op, ranks[0]), hocketInvalidArgument, "not a live");
  refused(hocketRedOpDestroy(hocketSum, ranks[0]), hocketInvalidArgument, "not a live");
  std::uint8_t yes = 1;
  refused(hocketRedOpCreatePreMulSum(&op, &yes, hocketBool, hocketScalarHostImmediate, ranks[0]), hocketInvalidArgument,
          "multiplied");
  refused(hocketRedOpCreatePreMulSum(&op, nullptr, hocketFloat32, hocketScalarHostImmediate, ranks[0]),
          hocketInvalidArgument, "NULL");
  refused(hocketRedOpCreatePreMulSum(nullptr, &yes, hocketInt8, hocketScalarHostImmediate, ranks[0]),
          hocketInvalidArgument, "NULL");
  refused(hocketRedOpCreateUser(&op, nullptr, nullptr, ranks[0]), hocketInvalidArgument, "NULL");
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 3}});
}

// ---- User-defined ----

// x -> a x + b modulo 2^16, packed in an int32: composition is associative and does not commute.
std::uint32_t compose(std::uint32_t f, std::uint32_t g) {  // f first, then g
  const std::uint32_t a1 = f >> 16, b1 = f & 0xffff, a2 = g >> 16, b2 = g & 0xffff;
  return (a1 * a2) << 16 | ((a2 * b1 + b2) & 0xffff);
}
void compose_all(void* inout, const void* in, std::size_t count, hocketDataType_t type, void* data) {
  EXPECT_EQ(type, hocketInt32);
  static_cast<std::atomic<long>*>(data)->fetch_add(static_cast<long>(count));
  auto* to = static_cast<std::uint32_t*>(inout);
  const auto* from = static_cast<const std::uint32_t*>(in);
  for (std::size_t i = 0; i < count; ++i) to[i] = compose(to[i], from[i]);
}
// Not even associative: only the left fold in rank order gives its result.
void halve_and_add(void* inout, const void* in, std::size_t count, hocketDataType_t type, void*) {
  EXPECT_EQ(type, hocketFloat64);
  auto* to = static_cast<double*>(inout);
  const auto* from = static_cast<const double*>(in);
  for (std::size_t i = 0; i < count; ++i) to[i] = to[i] / 2 + from[i];
}

std::uint32_t affine_input(int rank, std::size_t i) { return static_cast<std::uint32_t>(hash(3, rank, i)); }
double double_input(int rank, std::size_t i) { return static_cast<double>(hash(4, rank, i) % 1000); }

void check_user_ops(const LocalRanks& ranks, Kind kind, bool in_place) {
  const int n = ranks.n();
  ranks.run([&](int rank, hocketComm_t comm) {
    std::atomic<long> applied{0};
    hocketRedOp_t affine, halving;
    if (!ok(hocketRedOpCreateUser(&affine, compose_all, &applied, comm))) return;
    if (!ok(hocketRedOpCreateUser(&halving, halve_and_add, nullptr, comm))) return;
    EXPECT_NE(affine, halving);
    const std::size_t blocks = kind == Kind::reduce_scatter ? static_cast<std::size_t>(n) : 1;
    const std::size_t mine = kind == Kind::reduce_scatter ? static_cast<std::size_t>(rank) : 0;
    const auto call = [&](auto& in, auto& out, std::size_t count, hocketDataType_t type, hocketRedOp_t op) {
      auto* const to = in_place ? in.data() + mine * count : out.data();
      if (kind == Kind::reduce)
        ok(hocketReduce(in.data(), to, count, type, op, n / 2, comm, nullptr));
      else if (kind == Kind::reduce_scatter)
        ok(hocketReduceScatter(in.data(), to, count, type, op, comm, nullptr));
      else
        ok(hocketAllReduce(in.data(), to, count, type, op, comm, nullptr));
      return kind == Kind::reduce && rank != n / 2 ? nullptr : to;
    };
    for (const std::size_t count : kCounts) {
      std::vector<std::uint32_t> functions(count * blocks), composed(count);
      std::vector<double> numbers(count * blocks), halved(count);
      for (std::size_t i = 0; i < functions.size(); ++i) functions[i] = affine_input(rank, i);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = double_input(rank, i);
      const std::uint32_t* const got = call(functions, composed, count, hocketInt32, affine);
      const double* const got_numbers = call(numbers, halved, count, hocketFloat64, halving);
      for (std::size_t i = 0; got != nullptr && i < count; ++i) {
        std::uint32_t should = affine_input(0, mine * count + i);
        double number = double_input(0, mine * count + i);
        for (int r = 1; r < n; ++r) {
          should = compose(should, affine_input(r, mine * count + i));
          number = number / 2 + double_input(r, mine * count + i);
        }
        if (got[i] == should && got_numbers[i] == number) continue;
        ADD_FAILURE() << to_string(kind) << ": rank " << rank << " of " << n << ", element " << i << " of " << count;
        break;
      }
    }
    ok(hocketRedOpDestroy(affine, comm));
    ok(hocketRedOpDestroy(halving, comm));
  });
}

TEST(UserOp, LeftFoldInRankOrderForEveryAlgorithm) {
  for (const std::string& name : reduction_algorithms())
    for (const int n : {1, 2, 3, 5, 8}) {
      SCOPED_TRACE(testing::Message() << '"' << name << "\", " << n << " ranks");
      hocketConfig_t settings = config();
      if (!name.empty()) settings.algorithm = name.c_str();
      const LocalRanks ranks(n, settings);
      for (const Kind kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter}) {
        check_user_ops(ranks, kind, false);
        check_user_ops(ranks, kind, true);
      }
      if (HasFailure()) return;
    }
}

TEST(UserOp, ChannelsAndSlots) {
  for (const int channels : {2, 3})
    for (const int slot : {256, 4096}) {
      hocketConfig_t settings = config();
      settings.channels = channels;
      settings.slotBytes = slot;
      const LocalRanks ranks(3, settings);
      for (const Kind kind : {Kind::all_reduce, Kind::reduce, Kind::reduce_scatter}) check_user_ops(ranks, kind, false);
    }
}

}  // namespace
}  // namespace hocket::test
