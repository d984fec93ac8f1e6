// SPDX-License-Identifier: Apache-2.0
// Every type and operation against a reference that works on one element at a time, on every target of this machine.
#include "exec/move_targets.h"  // before Highway, as in the kernels

#include "exec/move.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/datatype.h"
#include "base/float_types.h"
#include "hwy/highway.h"

namespace hocket {
namespace {

// ---- The reference ----

template <class T>
struct Arithmetic {
  using Acc = T;
  static Acc widen(T v) { return v; }
  static T narrow(Acc v) { return v; }
};
template <class T>
struct NarrowArithmetic {
  using Acc = float;
  static Acc widen(T v) { return v.to_float(); }
  static T narrow(Acc v) { return T::from(v); }
};
template <>
struct Arithmetic<Float16> : NarrowArithmetic<Float16> {};
template <>
struct Arithmetic<Bfloat16> : NarrowArithmetic<Bfloat16> {};
template <>
struct Arithmetic<Float8e4m3> : NarrowArithmetic<Float8e4m3> {};
template <>
struct Arithmetic<Float8e5m2> : NarrowArithmetic<Float8e5m2> {};
template <>
struct Arithmetic<Bool> {
  using Acc = Bool;
  static Acc widen(Bool v) { return {static_cast<std::uint8_t>(v.bits != 0)}; }
  static Bool narrow(Acc v) { return v; }
};

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(v);
  if constexpr (std::is_same_v<typename Arithmetic<T>::Acc, float>) return std::isnan(Arithmetic<T>::widen(v));
  return false;
}

template <class A>
A wrapped(unsigned __int128 v) {
  return static_cast<A>(static_cast<std::uint64_t>(v));
}

template <class A>
A apply(hocketRedOp_t op, A a, A b) {
  if constexpr (std::is_same_v<A, Bool>) {
    const bool x = a.bits != 0, y = b.bits != 0;
    switch (op) {
      case hocketProd: case hocketMin: case hocketBand: case hocketLand: return {static_cast<std::uint8_t>(x && y)};
      case hocketBxor: return {static_cast<std::uint8_t>(x != y)};
      default: return {static_cast<std::uint8_t>(x || y)};
    }
  } else {
    switch (op) {
      case hocketMax:
        if (is_nan(a) || is_nan(b)) return std::numeric_limits<A>::quiet_NaN();
        return b > a ? b : a;
      case hocketMin:
        if (is_nan(a) || is_nan(b)) return std::numeric_limits<A>::quiet_NaN();
        return b < a ? b : a;
      case hocketLand: return static_cast<A>(a != A{0} && b != A{0});
      case hocketLor: return static_cast<A>(a != A{0} || b != A{0});
      default: break;
    }
    if constexpr (std::is_integral_v<A>) {
      const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      switch (op) {
        case hocketProd: return wrapped<A>(static_cast<unsigned __int128>(x) * y);
        case hocketBand: return static_cast<A>(x & y);
        case hocketBor: return static_cast<A>(x | y);
        case hocketBxor: return static_cast<A>(x ^ y);
        default: return wrapped<A>(static_cast<unsigned __int128>(x) + y);
      }
    } else {
      volatile A result = op == hocketProd ? a * b : a + b;  // volatile: never fused with a neighbour
      return result;
    }
  }
}

template <class A>
A divided(A v, int by) {
  if constexpr (std::is_same_v<A, Bool>) {
    return v;
  } else if constexpr (std::is_integral_v<A>) {
    return static_cast<A>(static_cast<__int128>(v) / by);
  } else {
    return v / static_cast<A>(by);
  }
}

// ---- Operands ----

constexpr std::size_t kGuard = 192;
constexpr std::uint8_t kGuardByte = 0xa5;

// Bytes with guards around them; data() is `misalignment` bytes off a 64-byte boundary.
class Buffer {
 public:
  Buffer(std::size_t bytes, std::size_t misalignment)
      : bytes_(bytes), storage_(bytes + misalignment + 2 * kGuard + 64, kGuardByte) {
    const auto base = reinterpret_cast<std::uintptr_t>(storage_.data());
    offset_ = (64 - base % 64) % 64 + kGuard + misalignment;
  }
  std::uint8_t* data() { return storage_.data() + offset_; }
  const std::uint8_t* data() const { return storage_.data() + offset_; }
  bool guards_intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i) {
      if ((i < offset_ || i >= offset_ + bytes_) && storage_[i] != kGuardByte) return false;
    }
    return true;
  }

 private:
  std::size_t bytes_;
  std::vector<std::uint8_t> storage_;
  std::size_t offset_;
};

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) { return static_cast<std::size_t>(random() % n); }

// Values that meet rounding, cancellation, overflow and NaN; any bits now and then.
template <class T>
T random_value(Random& random) {
  T value;
  const std::uint64_t bits = random();
  std::memcpy(&value, &bits, sizeof(T));
  if constexpr (std::is_same_v<T, Bool>) {
    if (bits >> 63) value.bits &= 1;
  } else if constexpr (!std::is_integral_v<T>) {
    using Acc = typename Arithmetic<T>::Acc;
    const std::uint64_t kind = bits >> 60;
    if (kind < 10) {
      const double nice = (static_cast<double>(static_cast<std::int64_t>(random())) / 9.2e18) * std::ldexp(1.0, static_cast<int>(bits % 12) - 6);
      value = Arithmetic<T>::narrow(static_cast<Acc>(nice));
    } else if (kind < 11) {
      constexpr double kSpecial[] = {0.0, -0.0, 1.0, std::numeric_limits<double>::infinity(), -1.0};
      value = Arithmetic<T>::narrow(static_cast<Acc>(kSpecial[bits % 5]));
    }
  }
  return value;
}

template <class T>
void fill(Buffer& buffer, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = random_value<T>(random);
    std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <class T>
T value_at(const Buffer& buffer, std::size_t i) {
  T value;
  std::memcpy(&value, buffer.data() + i * sizeof(T), sizeof(T));
  return value;
}

// ---- Targets ----

struct Target {
  std::string name;
  std::array<std::array<MoveFn, kBuiltinOpCount>, kDatatypeCount> kernels;
};

void use_targets(std::int64_t mask) {
  hwy::SetSupportedTargetsForTest(mask);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> found;
    for (const std::int64_t mask : hwy::SupportedAndGeneratedTargets()) {
      use_targets(mask);
      Target& target = found.emplace_back();
      target.name = hwy::TargetName(mask);
      for (int type = 0; type < kDatatypeCount; ++type) {
        for (int op = 0; op < kBuiltinOpCount; ++op) {
          target.kernels[type][op] = move_function(static_cast<hocketDataType_t>(type), static_cast<hocketRedOp_t>(op));
        }
      }
    }
    use_targets(0);
    return found;
  }();
  return all;
}

// ---- One case: a move of everything that can vary ----

struct Operand {
  Format format = Format::element;
  Store store = Store::cached;
  std::size_t misalignment = 0;  // in elements
  bool scaled = false;           // sources
};

struct Case {
  hocketDataType_t type;
  hocketRedOp_t op;
  std::size_t count = 0;
  std::vector<Operand> sources;
  std::vector<Operand> sinks;
  int in_place = -1;  // sinks[0] is sources[in_place]
  int divisor = 1;

  std::string text() const {
    std::string s = std::string(datatype_name(type)) + " " + std::string(builtin_op_name(op)) + " count " + std::to_string(count);
    const auto add = [&s](const char* what, const std::vector<Operand>& operands) {
      s += what;
      for (const Operand& o : operands) {
        s += o.format == Format::element ? " e" : " a";
        s += o.store == Store::streaming ? "s" : "";
        s += o.scaled ? "*" : "";
        s += "+" + std::to_string(o.misalignment);
      }
    };
    add(", sources", sources);
    add(", sinks", sinks);
    return s + ", in place " + std::to_string(in_place) + ", divisor " + std::to_string(divisor);
  }
};

template <class T>
std::size_t bytes_per(Format format) {
  return format == Format::element ? sizeof(T) : sizeof(typename Arithmetic<T>::Acc);
}

template <class T>
std::vector<typename Arithmetic<T>::Acc> reference(const Case& c, const std::vector<Buffer>& sources, T scale) {
  using A = Arithmetic<T>;
  using Acc = typename A::Acc;
  std::vector<Acc> result(c.count);
  const bool logical = c.op == hocketLand || c.op == hocketLor;
  for (std::size_t i = 0; i < c.count; ++i) {
    for (std::size_t s = 0; s < sources.size(); ++s) {
      Acc value;
      if (c.sources[s].format == Format::element) {
        value = A::widen(value_at<T>(sources[s], i));
      } else {
        value = value_at<Acc>(sources[s], i);
        if constexpr (std::is_same_v<T, Bool>) value = A::widen(value);
      }
      if (c.sources[s].scaled) {
        value = A::widen(A::narrow(apply<Acc>(hocketProd, value, A::widen(scale))));
      }
      result[i] = s == 0 ? value : apply<Acc>(c.op, result[i], value);
    }
    if (logical && sources.size() == 1) result[i] = apply<Acc>(c.op, result[i], result[i]);
    if (c.divisor > 1) result[i] = divided(result[i], c.divisor);
  }
  return result;
}

template <class T>
void expect_equal(const Buffer& sink, std::size_t i, T expected) {
  const T actual = value_at<T>(sink, i);
  const bool same = is_nan(expected) ? is_nan(actual) : std::memcmp(&actual, &expected, sizeof(T)) == 0;
  if (!same) {
    std::uint64_t a = 0, e = 0;
    std::memcpy(&a, &actual, sizeof(T));
    std::memcpy(&e, &expected, sizeof(T));
    FAIL() << "element " << i << ": bits " << std::hex << a << ", expected " << e;
  }
}

template <class T>
void check(const Case& c, Random& random) {
  using Acc = typename Arithmetic<T>::Acc;
  std::vector<Buffer> sources, scratch;
  for (const Operand& o : c.sources) {
    const std::size_t bytes = bytes_per<T>(o.format);
    Buffer& buffer = sources.emplace_back(c.count * bytes, o.misalignment * bytes);
    if (o.format == Format::element) {
      fill<T>(buffer, c.count, random);
    } else {
      fill<Acc>(buffer, c.count, random);
    }
  }
  const T scale = random_value<T>(random);
  const std::vector<Acc> expected = reference<T>(c, sources, scale);
  for (const Target& target : targets()) {
    SCOPED_TRACE(target.name + ": " + c.text());
    std::vector<Buffer> sinks;
    for (const Operand& o : c.sinks) sinks.emplace_back(c.count * bytes_per<T>(o.format), o.misalignment * bytes_per<T>(o.format));
    std::vector<Buffer> sources_now = sources;
    std::vector<MoveSource> move_sources;
    std::vector<MoveSink> move_sinks;
    for (std::size_t s = 0; s < sources.size(); ++s) {
      Buffer& from = static_cast<int>(s) == c.in_place ? sinks[0] : sources_now[s];
      if (c.count > 0) std::memcpy(from.data(), sources[s].data(), c.count * bytes_per<T>(c.sources[s].format));
      move_sources.push_back({from.data(), c.sources[s].format, c.sources[s].scaled ? &scale : nullptr});
    }
    for (std::size_t k = 0; k < sinks.size(); ++k) move_sinks.push_back({sinks[k].data(), c.sinks[k].format, c.sinks[k].store});
    MoveArgs args;
    args.sources = move_sources.data();
    args.sinks = move_sinks.data();
    args.n_sources = static_cast<int>(move_sources.size());
    args.n_sinks = static_cast<int>(move_sinks.size());
    args.count = c.count;
    args.divisor = c.divisor;
    target.kernels[c.type][c.op](args);
    for (std::size_t k = 0; k < sinks.size(); ++k) {
      ASSERT_TRUE(sinks[k].guards_intact()) << "sink " << k;
      for (std::size_t i = 0; i < c.count; ++i) {
        if (c.sinks[k].format == Format::element) {
          expect_equal<T>(sinks[k], i, Arithmetic<T>::narrow(expected[i]));
        } else {
          expect_equal<Acc>(sinks[k], i, expected[i]);
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 4097};

template <class T>
Case random_case(hocketDataType_t type, hocketRedOp_t op, std::size_t count, Random& random) {
  constexpr int kSourceCounts[] = {1, 2, 2, 2, 3, 4, 5, 9};
  constexpr bool kWidens = !std::is_same_v<T, typename Arithmetic<T>::Acc>;
  Case c;
  c.type = type;
  c.op = op;
  c.count = count;
  const bool mixed = kWidens && below(random, 2) == 0;
  const bool scaled = op == hocketSum && below(random, 4) == 0;
  const auto format = [&] { return mixed && below(random, 2) == 0 ? Format::accumulator : Format::element; };
  const std::size_t aligned = below(random, 2);  // half of the cases: everything is
  const auto misalignment = [&] { return aligned * below(random, 4); };
  for (int s = kSourceCounts[below(random, std::size(kSourceCounts))]; s > 0; --s) {
    c.sources.push_back({format(), Store::cached, misalignment(), scaled && below(random, 2) == 0});
  }
  for (std::size_t k = 1 + below(random, 3); k > 0; --k) {
    c.sinks.push_back({format(), below(random, 2) == 0 ? Store::cached : Store::streaming, misalignment(), false});
  }
  if (below(random, 3) == 0) {
    c.in_place = static_cast<int>(below(random, c.sources.size()));
    c.sinks[0].format = c.sources[static_cast<std::size_t>(c.in_place)].format;
  }
  if (op == hocketAvg) c.divisor = below(random, 2) == 0 ? 2 << below(random, 9) : 2 + static_cast<int>(below(random, 300));
  return c;
}

template <class T>
void sweep(hocketDataType_t type, std::uint64_t seed) {
  Random random(seed);
  for (int op = 0; op < kBuiltinOpCount; ++op) {
    if (!supports(static_cast<hocketRedOp_t>(op), type)) continue;
    for (const std::size_t count : kCounts) {
      for (int repeat = count < 100 ? 8 : 2; repeat > 0; --repeat) {
        check<T>(random_case<T>(type, static_cast<hocketRedOp_t>(op), count, random), random);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Move, EqualsTheReferenceOnEveryTarget) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
#define HOCKET_SWEEP(name, value, bytes, type, acc) \
  sweep<type>(hocket##name, seed);                  \
  if (HasFatalFailure()) return;
  HOCKET_FOR_EACH_DATATYPE(HOCKET_SWEEP)
#undef HOCKET_SWEEP
}

TEST(Move, HasKernelsForWhatIsSupportedAndNoOthers) {
  ASSERT_FALSE(targets().empty());
  std::string names;
  for (const Target& target : targets()) names += " " + target.name;
  RecordProperty("targets", names);
  std::cout << "targets:" << names << "\n";
  for (const Target& target : targets()) {
    for (int type = 0; type < kDatatypeCount; ++type) {
      for (int op = 0; op < kBuiltinOpCount; ++op) {
        EXPECT_EQ(supports(static_cast<hocketRedOp_t>(op), static_cast<hocketDataType_t>(type)),
                  target.kernels[type][op] != nullptr)
            << target.name << " " << type << " " << op;
      }
    }
  }
  EXPECT_EQ(move_function(static_cast<hocketDataType_t>(99), hocketSum), nullptr);
  EXPECT_EQ(move_function(hocketFloat32, static_cast<hocketRedOp_t>(hocketNumOps)), nullptr);
  EXPECT_EQ(user_move_function(static_cast<hocketDataType_t>(-1)), nullptr);
}

// ---- NaN and conversions ----

template <class In>
MoveArgs arguments(const std::vector<MoveSource>& sources, const MoveSink& sink, const std::vector<In>& first) {
  MoveArgs args;
  args.sources = sources.data();
  args.n_sources = static_cast<int>(sources.size());
  args.sinks = &sink;
  args.n_sinks = 1;
  args.count = first.size();
  return args;
}

template <class T>
void nan_stays(hocketDataType_t type) {
  using A = Arithmetic<T>;
  const T one = A::narrow(1), nan = A::narrow(std::numeric_limits<typename A::Acc>::quiet_NaN());
  constexpr std::size_t kCount = 67 * 4;
  for (const Target& target : targets()) {
    for (const hocketRedOp_t op : {hocketSum, hocketProd, hocketMax, hocketMin, hocketAvg}) {
      for (std::size_t at = 0; at < 3; ++at) {
        std::vector<std::vector<T>> data(3, std::vector<T>(kCount, one));
        for (std::size_t i = 0; i < kCount; i += 2) data[at][i] = nan;
        const std::vector<MoveSource> sources = {{data[0].data()}, {data[1].data()}, {data[2].data()}};
        std::vector<T> out(kCount);
        const MoveSink sink{out.data()};
        MoveArgs args = arguments(sources, sink, out);
        args.divisor = op == hocketAvg ? 3 : 1;
        target.kernels[type][op](args);
        for (std::size_t i = 0; i < kCount; ++i) {
          ASSERT_EQ(is_nan(out[i]), i % 2 == 0)
              << target.name << " " << datatype_name(type) << " " << builtin_op_name(op) << " source " << at << " element " << i;
        }
      }
    }
  }
}

TEST(Move, NanStaysFromAnyPosition) {
  nan_stays<float>(hocketFloat32);
  nan_stays<double>(hocketFloat64);
  nan_stays<Float16>(hocketFloat16);
  nan_stays<Bfloat16>(hocketBfloat16);
  nan_stays<Float8e4m3>(hocketFloat8e4m3);
  nan_stays<Float8e5m2>(hocketFloat8e5m2);
}

template <class To, class From>
void converts(hocketDataType_t type, const std::vector<From>& in, Format from, Format to) {
  for (const Target& target : targets()) {
    std::vector<To> out(in.size());
    const std::vector<MoveSource> sources = {{in.data(), from}};
    const MoveSink sink{out.data(), to};
    target.kernels[type][hocketSum](arguments(sources, sink, in));
    for (std::size_t i = 0; i < in.size(); ++i) {
      To expected;
      if constexpr (std::is_same_v<To, float>) {
        expected = in[i].to_float();
      } else {
        expected = To::from(in[i]);
      }
      const bool same = is_nan(expected) ? is_nan(out[i]) : std::memcmp(&out[i], &expected, sizeof(To)) == 0;
      ASSERT_TRUE(same) << target.name << " " << datatype_name(type) << " element " << i << " of " << in.size();
    }
  }
}

// All values out; in: every upper half of a float with lower halves around the places where formats round.
template <class T>
void conversions(hocketDataType_t type) {
  std::vector<T> narrow(std::size_t{1} << (8 * sizeof(T)));
  for (std::size_t i = 0; i < narrow.size(); ++i) narrow[i].bits = static_cast<decltype(T::bits)>(i);
  converts<float>(type, narrow, Format::element, Format::accumulator);

  std::vector<float> wide;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      wide.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  converts<T>(type, wide, Format::accumulator, Format::element);
}

TEST(Move, ConvertsNarrowFloats) {
  conversions<Float16>(hocketFloat16);
  conversions<Bfloat16>(hocketBfloat16);
  conversions<Float8e4m3>(hocketFloat8e4m3);
  conversions<Float8e5m2>(hocketFloat8e5m2);
}

// bf16 kernels round without looking for NaN where every operand is a bf16: every NaN must survive that.
TEST(Move, EveryNanOfNarrowFloatsSurvivesASum) {
  std::vector<Bfloat16> all(65536), zero(65536, Bfloat16{0});
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  for (const Target& target : targets()) {
    std::vector<Bfloat16> out(all.size());
    const std::vector<MoveSource> sources = {{all.data()}, {zero.data()}};
    const MoveSink sink{out.data()};
    for (const hocketRedOp_t op : {hocketSum, hocketProd, hocketMax, hocketMin}) {
      target.kernels[hocketBfloat16][op](arguments(sources, sink, all));
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!is_nan(all[i])) continue;
        ASSERT_TRUE(is_nan(out[i])) << target.name << " " << builtin_op_name(op) << " bits " << i;
      }
    }
  }
}

// ---- Copies and user-defined operations ----

TEST(Move, CopiesToEverySink) {
  Random random(1);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65},
                                  std::size_t{511}, std::size_t{513}, std::size_t{4096}, std::size_t{10000}}) {
    for (int n_sinks = 0; n_sinks <= 3; ++n_sinks) {
      for (int stores = 0; stores < 8; ++stores) {
        Buffer source(bytes, below(random, 64));
        fill<std::uint8_t>(source, bytes, random);
        std::vector<Buffer> buffers;
        std::vector<MoveSink> sinks;
        for (int k = 0; k < n_sinks; ++k) buffers.emplace_back(bytes, below(random, 2) * below(random, 64));
        for (int k = 0; k < n_sinks; ++k) {
          sinks.push_back({buffers[static_cast<std::size_t>(k)].data(), Format::element,
                           (stores >> k & 1) != 0 ? Store::streaming : Store::cached});
        }
        copy_move(source.data(), sinks.data(), n_sinks, bytes);
        for (const Buffer& buffer : buffers) {
          ASSERT_TRUE(buffer.guards_intact());
          ASSERT_EQ(std::memcmp(buffer.data(), source.data(), bytes), 0) << bytes << " bytes, " << n_sinks << " sinks";
        }
      }
    }
  }
}

// Neither commutative nor associative.
void twice_plus(void* inout, const void* in, std::size_t count, hocketDataType_t datatype, void* calls) {
  ASSERT_EQ(datatype, hocketUint32);
  ++*static_cast<int*>(calls);
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::uint32_t*>(inout)[i] = 2 * static_cast<std::uint32_t*>(inout)[i] + static_cast<const std::uint32_t*>(in)[i];
  }
}

TEST(Move, AppliesUserFunctionsInRankOrder) {
  for (const std::size_t count : kCounts) {
    for (const int in_place : {-1, 0, 1, 2}) {
      std::vector<std::vector<std::uint32_t>> data(3, std::vector<std::uint32_t>(count + 1, 77));
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t s = 0; s < 3; ++s) data[s][i] = static_cast<std::uint32_t>(i * (s + 3));
      }
      std::vector<std::uint32_t> out(count + 1, 77), other(count + 1, 77);
      std::vector<std::uint32_t>& first = in_place < 0 ? out : data[static_cast<std::size_t>(in_place)];
      const MoveSource sources[] = {{data[0].data()}, {data[1].data()}, {data[2].data()}};
      const MoveSink sinks[] = {{first.data()}, {other.data(), Format::element, Store::streaming}};
      int calls = 0;
      MoveArgs args;
      args.sources = sources;
      args.n_sources = 3;
      args.sinks = sinks;
      args.n_sinks = 2;
      args.count = count;
      args.user_fn = &twice_plus;
      args.user_data = &calls;
      user_move_function(hocketUint32)(args);
      EXPECT_EQ(calls > 0, count > 0);
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = static_cast<std::uint32_t>(4 * (i * 3) + 2 * (i * 4) + i * 5);
        ASSERT_EQ(first[i], expected) << i;
        ASSERT_EQ(other[i], expected) << i;
      }
      EXPECT_EQ(first[count], 77u);
      EXPECT_EQ(other[count], 77u);
    }
  }
}

}  // namespace
}  // namespace hocket
