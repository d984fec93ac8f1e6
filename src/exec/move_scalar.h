// SPDX-License-Identifier: Apache-2.0
// The fused move one element at a time: what every vector kernel must equal bit for bit. Used for heads, tails, very small
// counts, and on machines without a vector target.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/float_types.h"
#include "exec/move.h"

namespace hocket {

// The folds. Kernels of Bool are those of std::uint8_t with a logical fold, which normalises each operand to 0 or 1 first.
struct FoldSum {};
struct FoldProd {};
struct FoldMax {};
struct FoldMin {};
struct FoldBand {};
struct FoldBor {};
struct FoldBxor {};
struct FoldLand {};
struct FoldLor {};
struct FoldLxor {};

template <class Fold>
inline constexpr bool kLogical =
    std::same_as<Fold, FoldLand> || std::same_as<Fold, FoldLor> || std::same_as<Fold, FoldLxor>;

// Sum can be pre-multiplied and averaged. So can the sum of bools, `or`; its product is `and`.
template <class T, class Fold>
inline constexpr bool kScalable = std::same_as<Fold, FoldSum> || (std::same_as<Fold, FoldLor> && std::same_as<T, std::uint8_t>);

// A type that only holds bits and does its arithmetic in float.
template <class T>
concept NarrowFloat = requires(T value) {
  { value.to_float() } -> std::same_as<float>;
  { T::from(0.0f) } -> std::same_as<T>;
};

template <class T>
struct AccumulatorOf {
  using type = T;
};
template <NarrowFloat T>
struct AccumulatorOf<T> {
  using type = float;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

// Whether every operand is an element that needs nothing but the fold: no conversion, no scale, no division.
template <class T>
bool is_plain(const MoveArgs& args) {
  constexpr bool kWidens = !std::same_as<T, Accumulator<T>>;
  if (args.divisor > 1) return false;
  for (int s = 0; s < args.n_sources; ++s) {
    if (args.sources[s].scale != nullptr) return false;
    if (kWidens && args.sources[s].format != Format::element) return false;
  }
  for (int k = 0; kWidens && k < args.n_sinks; ++k) {
    if (args.sinks[k].format != Format::element) return false;
  }
  return true;
}

namespace scalar {

template <class T>
T load(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(void* data, std::size_t i, T value) {
  std::memcpy(static_cast<char*>(data) + i * sizeof(T), &value, sizeof(T));
}

template <class T>
Accumulator<T> widen(T value) {
  if constexpr (NarrowFloat<T>) {
    return value.to_float();
  } else {
    return value;
  }
}

template <class T>
T narrow(Accumulator<T> value) {
  if constexpr (NarrowFloat<T>) {
    return T::from(value);
  } else {
    return value;
  }
}

// Integer arithmetic wraps: it is done in an unsigned type that does not promote to int.
template <class A>
A multiply(A a, A b) {
  if constexpr (std::is_integral_v<A>) {
    using U = std::common_type_t<std::make_unsigned_t<A>, unsigned>;
    return static_cast<A>(static_cast<U>(a) * static_cast<U>(b));
  } else {
    return a * b;
  }
}

template <class Fold, class A>
A prepare(A value) {
  if constexpr (kLogical<Fold>) {
    return static_cast<A>(value == A{0} ? 0 : 1);  // NaN is true
  } else {
    return value;
  }
}

template <class Fold, class A>
A fold(A a, A b) {
  if constexpr (std::same_as<Fold, FoldSum>) {
    if constexpr (std::is_integral_v<A>) {
      using U = std::common_type_t<std::make_unsigned_t<A>, unsigned>;
      return static_cast<A>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  } else if constexpr (std::same_as<Fold, FoldProd>) {
    return multiply(a, b);
  } else if constexpr (std::same_as<Fold, FoldMax>) {
    return b > a || b != b ? b : a;  // the first of equals, so the sign of a zero is defined; any NaN stays
  } else if constexpr (std::same_as<Fold, FoldMin>) {
    return b < a || b != b ? b : a;
  } else if constexpr (std::same_as<Fold, FoldLand>) {
    return a != A{0} && b != A{0} ? A{1} : A{0};
  } else if constexpr (std::same_as<Fold, FoldLor>) {
    return a != A{0} || b != A{0} ? A{1} : A{0};
  } else if constexpr (std::same_as<Fold, FoldBand>) {
    return static_cast<A>(a & b);
  } else if constexpr (std::same_as<Fold, FoldBor>) {
    return static_cast<A>(a | b);
  } else {
    return static_cast<A>(a ^ b);  // bitwise and, on 0 and 1, logical
  }
}

template <class T, class Fold>
Accumulator<T> source_value(const MoveSource& source, std::size_t i) {
  using A = Accumulator<T>;
  A value;
  if (std::same_as<T, A> || source.format == Format::element) {
    value = widen<T>(load<T>(source.data, i));
  } else {
    value = load<A>(source.data, i);
  }
  value = prepare<Fold>(value);
  if constexpr (kScalable<T, Fold>) {
    if (source.scale != nullptr) {
      const A scale = prepare<Fold>(widen<T>(load<T>(source.scale, 0)));
      value = widen<T>(narrow<T>(multiply(value, scale)));
    }
  }
  return value;
}

template <class A>
A divide(A value, int divisor) {
  if constexpr (std::is_integral_v<A>) {
    // An unsigned or narrow value is divided in a type that holds both.
    using Wide = std::conditional_t<std::is_signed_v<A>, std::int64_t, std::uint64_t>;
    return static_cast<A>(static_cast<Wide>(value) / static_cast<Wide>(divisor));
  } else {
    return value / static_cast<A>(divisor);
  }
}

// Elements [begin, end).
template <class T, class Fold>
void move_range(const MoveArgs& args, std::size_t begin, std::size_t end) {
  using A = Accumulator<T>;
  for (std::size_t i = begin; i < end; ++i) {
    A value = source_value<T, Fold>(args.sources[0], i);
    for (int s = 1; s < args.n_sources; ++s) value = fold<Fold>(value, source_value<T, Fold>(args.sources[s], i));
    if constexpr (std::same_as<Fold, FoldSum>) {
      if (args.divisor > 1) value = divide(value, args.divisor);
    }
    for (int k = 0; k < args.n_sinks; ++k) {
      if (std::same_as<T, A> || args.sinks[k].format == Format::element) {
        store<T>(args.sinks[k].data, i, narrow<T>(value));
      } else {
        store<A>(args.sinks[k].data, i, value);
      }
    }
  }
}

}  // namespace scalar
}  // namespace hocket
