// SPDX-License-Identifier: Apache-2.0
#include "oracle.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

#include "draw.h"
#include "element.h"

namespace hocket::perf {
namespace {

// Work goes by blocks that stay in the first-level cache.
constexpr std::size_t kBlock = 512;
template <class T>
using Block = std::array<T, kBlock>;

// ---- Comparing bits ----

std::uint64_t different_elements(const void* expected, const void* got, std::size_t count, std::size_t element_bytes) {
  if (std::memcmp(expected, got, count * element_bytes) == 0) return 0;
  const auto* a = static_cast<const char*>(expected);
  const auto* b = static_cast<const char*>(got);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i, a += element_bytes, b += element_bytes) {
    wrong += std::memcmp(a, b, element_bytes) != 0;
  }
  return wrong;
}

// ---- Reductions of integers and bool: exact ----

template <class T>
struct UnsignedOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct UnsignedOf<BoolByte> {
  using Type = std::uint8_t;
};

template <class T>
T premul_scalar(int rank) {
  if constexpr (kIsFloat<T>) {
    return nearest<T>(0.5 * (1 + rank % 4));
  } else {
    return from_bits<T>(static_cast<std::uint64_t>(1 + rank % 5));
  }
}

// wrap(a), wrap(b) in 64 bits, cut to the type: sums, products and bitwise operations come out modulo 2^width.
template <class T>
T combine_integers(Op op, T a, T b) {
  const auto wide_a = static_cast<std::uint64_t>(a);
  const auto wide_b = static_cast<std::uint64_t>(b);
  switch (op) {
    case Op::sum:
    case Op::avg:
    case Op::premulsum:
    case Op::user: return static_cast<T>(wide_a + wide_b);
    case Op::prod: return static_cast<T>(wide_a * wide_b);
    case Op::min: return std::min(a, b);
    case Op::max: return std::max(a, b);
    case Op::band: return static_cast<T>(wide_a & wide_b);
    case Op::bor: return static_cast<T>(wide_a | wide_b);
    case Op::bxor: return static_cast<T>(wide_a ^ wide_b);
    case Op::land: return static_cast<T>(a != 0 && b != 0);
    case Op::lor: return static_cast<T>(a != 0 || b != 0);
    case Op::none: return b;
  }
  return b;
}

BoolByte combine_bools(Op op, BoolByte a, BoolByte b) {
  switch (op) {
    case Op::prod:
    case Op::min:
    case Op::band:
    case Op::land: return {static_cast<std::uint8_t>(a.bits & b.bits)};
    case Op::bxor: return {static_cast<std::uint8_t>(a.bits ^ b.bits)};
    case Op::sum:
    case Op::max:
    case Op::bor:
    case Op::lor:
    case Op::avg:
    case Op::premulsum:
    case Op::user:
    case Op::none: return {static_cast<std::uint8_t>(a.bits | b.bits)};
  }
  return b;
}

// What one rank's element is worth before it is combined.
template <class T>
T prepare_integer(Op op, int rank, T x) {
  if (op == Op::premulsum)
    return static_cast<T>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(1 + rank % 5));
  if (op == Op::land || op == Op::lor) return static_cast<T>(x != 0);
  return x;
}

template <class T>
T divide(T sum, int n_ranks) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(sum) / n_ranks);
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(sum) / static_cast<std::uint64_t>(n_ranks));
  }
}

template <class T>
std::uint64_t wrong_exact(const Inputs& inputs, std::size_t first, std::size_t count, const void* got) {
  Block<T> total{};
  Block<T> next;
  for (int rank = 0; rank < inputs.n_ranks; ++rank) {
    draw_inputs(inputs, rank, first, count, next.data());
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (kIsBool<T>) {
        total[i] = rank == 0 ? next[i] : combine_bools(inputs.op, total[i], next[i]);
      } else {
        const T x = prepare_integer(inputs.op, rank, next[i]);
        total[i] = rank == 0 ? x : combine_integers(inputs.op, total[i], x);
      }
    }
  }
  if constexpr (!kIsBool<T>) {
    if (inputs.op == Op::avg) {
      for (std::size_t i = 0; i < count; ++i) total[i] = divide(total[i], inputs.n_ranks);
    }
  }
  return different_elements(total.data(), got, count, sizeof(T));
}

// ---- Reductions of floats: a value and how far from it a result may be ----

template <class T>
using Reference = std::conditional_t<std::is_same_v<T, double>, long double, double>;

template <class T>
Reference<T> reference_value(T x) {
  if constexpr (kIsMiniFloat<T>) {
    return x.value();
  } else {
    return x;
  }
}

// Relative error of one addition or multiplication in the accumulator, with the slack of the contract.
template <class T>
constexpr Reference<T> accumulator_epsilon() {
  if constexpr (kIsMiniFloat<T>) {
    return 0x1p-24;
  } else {
    return std::numeric_limits<T>::epsilon();
  }
}

template <class T>
struct FloatReduction {
  using R = Reference<T>;
  Block<R> value;
  Block<R> magnitude;  // sum of |x|, for the bound

  void take(const Inputs& inputs, int rank, const Block<T>& next, std::size_t count) {
    switch (inputs.op) {
      case Op::premulsum: {
        const R scalar = reference_value(premul_scalar<T>(rank));
        return fold(
            rank, count, [&](std::size_t i) { return rounded(scalar * reference_value(next[i])); }, std::plus<R>());
      }
      case Op::prod:
        return fold(
            rank, count, [&](std::size_t i) { return reference_value(next[i]); }, std::multiplies<R>());
      case Op::min:
        return fold(
            rank, count, [&](std::size_t i) { return reference_value(next[i]); },
            [](R a, R b) { return std::isnan(a) || a < b ? a : b; });
      case Op::max:
        return fold(
            rank, count, [&](std::size_t i) { return reference_value(next[i]); },
            [](R a, R b) { return std::isnan(a) || a > b ? a : b; });
      case Op::land:
        return fold(
            rank, count, [&](std::size_t i) { return R(reference_value(next[i]) != 0); }, std::multiplies<R>());
      case Op::lor:
        return fold(
            rank, count, [&](std::size_t i) { return R(reference_value(next[i]) != 0); },
            [](R a, R b) { return std::max(a, b); });
      case Op::sum:
      case Op::avg:
      case Op::user:
      case Op::band:
      case Op::bor:
      case Op::bxor:
      case Op::none:
        return fold(
            rank, count, [&](std::size_t i) { return reference_value(next[i]); }, std::plus<R>());
    }
  }

  R bound(const Inputs& inputs, std::size_t i) const {
    const R n = inputs.n_ranks + (kIsMiniFloat<T> ? 2 : 0);
    switch (inputs.op) {
      case Op::sum:
      case Op::user:
      case Op::premulsum: return n * accumulator_epsilon<T>() * magnitude[i];
      case Op::avg: return n * accumulator_epsilon<T>() * magnitude[i] / inputs.n_ranks;
      case Op::prod: return n * accumulator_epsilon<T>() * std::abs(value[i]);
      case Op::min:
      case Op::max:
      case Op::land:
      case Op::lor:
      case Op::band:
      case Op::bor:
      case Op::bxor:
      case Op::none: return 0;
    }
    return 0;
  }

  R result(const Inputs& inputs, std::size_t i) const {
    return inputs.op == Op::avg ? value[i] / inputs.n_ranks : value[i];
  }

 private:
  template <class Element, class Combine>
  void fold(int rank, std::size_t count, Element element, Combine combine) {
    for (std::size_t i = 0; i < count; ++i) {
      const R x = element(i);
      value[i] = rank == 0 ? x : combine(value[i], x);
      magnitude[i] = (rank == 0 ? R(0) : magnitude[i]) + std::abs(x);
    }
  }

  // To the type and back: premulsum rounds each product.
  static R rounded(R x) { return reference_value(nearest<T>(static_cast<double>(x))); }
};

template <class T, class R>
bool is_right(T got, R expected, R bound) {
  if constexpr (kIsMiniFloat<T>) {
    const T best = T::from(static_cast<double>(expected));
    if (got.bits == best.bits) return true;
    if (best.is_nan()) return got.is_nan();
    // Rounding is monotonic: whatever the accumulator held, its rounding lies between those of the ends.
    const double low = T::from(static_cast<double>(expected - bound)).value();
    const double high = T::from(static_cast<double>(expected + bound)).value();
    return low <= got.value() && got.value() <= high;
  } else {
    if (std::isnan(expected)) return std::isnan(got);
    return std::abs(static_cast<R>(got) - expected) <= bound;  // false for a NaN
  }
}

template <class T>
std::uint64_t wrong_floats(const Inputs& inputs, std::size_t first, std::size_t count, const void* got) {
  FloatReduction<T> reduction{};
  Block<T> next;
  for (int rank = 0; rank < inputs.n_ranks; ++rank) {
    draw_inputs(inputs, rank, first, count, next.data());
    reduction.take(inputs, rank, next, count);
  }
  const auto* elements = static_cast<const T*>(got);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    wrong += !is_right(elements[i], reduction.result(inputs, i), reduction.bound(inputs, i));
  }
  return wrong;
}

// Adds up body(offset, count) over blocks.
template <class Body>
std::uint64_t sum_blocks(std::size_t count, Body&& body) {
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < count; at += kBlock) total += body(at, std::min(kBlock, count - at));
  return total;
}

std::uint64_t poison_word(std::int64_t word) { return mix(static_cast<std::uint64_t>(word) ^ 0x706f69736f6eull); }

}  // namespace

void make_input(const Inputs& inputs, int rank, std::size_t first, std::size_t count, void* out) {
  visit_type(inputs.type, [&](auto zero_of_type) {
    draw_inputs(inputs, rank, first, count, static_cast<decltype(zero_of_type)*>(out));
  });
}

std::uint64_t wrong_inputs(const Inputs& inputs, int rank, std::size_t first, std::size_t count, const void* got) {
  return visit_type(inputs.type, [&](auto zero_of_type) {
    using T = decltype(zero_of_type);
    return sum_blocks(count, [&](std::size_t at, std::size_t n) {
      Block<T> expected;
      draw_inputs(inputs, rank, first + at, n, expected.data());
      return different_elements(expected.data(), static_cast<const T*>(got) + at, n, sizeof(T));
    });
  });
}

std::uint64_t wrong_reductions(const Inputs& inputs, std::size_t first, std::size_t count, const void* got) {
  return visit_type(inputs.type, [&](auto zero_of_type) {
    using T = decltype(zero_of_type);
    return sum_blocks(count, [&](std::size_t at, std::size_t n) {
      const T* part = static_cast<const T*>(got) + at;
      if constexpr (kIsFloat<T>) {
        return wrong_floats<T>(inputs, first + at, n, part);
      } else {
        return wrong_exact<T>(inputs, first + at, n, part);
      }
    });
  });
}

void make_poison(std::int64_t offset, std::size_t bytes, void* out) {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const std::int64_t word = offset >> 3;  // rounds down, negative offsets too
    const auto skip = static_cast<std::size_t>(offset & 7);
    const std::size_t n = std::min(8 - skip, bytes);
    const std::uint64_t value = poison_word(word);
    std::memcpy(to, reinterpret_cast<const char*>(&value) + skip, n);
    to += n;
    offset += static_cast<std::int64_t>(n);
    bytes -= n;
  }
}

std::uint64_t wrong_poison(std::int64_t offset, std::size_t count, std::size_t element_bytes, const void* got) {
  return sum_blocks(count, [&](std::size_t at, std::size_t n) {
    Block<std::uint64_t> expected;
    make_poison(offset + static_cast<std::int64_t>(at * element_bytes), n * element_bytes, expected.data());
    return different_elements(expected.data(), static_cast<const char*>(got) + at * element_bytes, n, element_bytes);
  });
}

void make_premul_scalar(hocketDataType_t type, int rank, void* out) {
  visit_type(type, [&](auto zero_of_type) {
    const auto scalar = premul_scalar<decltype(zero_of_type)>(rank);
    std::memcpy(out, &scalar, sizeof scalar);
  });
}

void user_sum(void* inout, const void* in, std::size_t count, hocketDataType_t type, void* /*user_data*/) {
  visit_type(type, [&](auto zero_of_type) {
    using T = decltype(zero_of_type);
    if constexpr (std::is_arithmetic_v<T>) {
      auto* into = static_cast<T*>(inout);
      const auto* from = static_cast<const T*>(in);
      for (std::size_t i = 0; i < count; ++i) {
        if constexpr (kIsWideFloat<T>) {
          into[i] += from[i];
        } else {
          into[i] = combine_integers(Op::sum, into[i], from[i]);
        }
      }
    }
  });
}

}  // namespace hocket::perf
