// SPDX-License-Identifier: Apache-2.0
// Inputs and the expected results of reductions, for every type of datatypes.h. Inputs of sums and products of floats are
// chosen so that every partial result is exact in the accumulation type: then the order of ranks does not matter and the
// only rounding is the last one.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/datatype.h"

namespace hocket::test {

inline constexpr hocketDataType_t kAllTypes[] = {
#define HOCKET_TEST_TYPE(name, value, bytes, type, acc) hocket##name,
    HOCKET_FOR_EACH_DATATYPE(HOCKET_TEST_TYPE)
#undef HOCKET_TEST_TYPE
};
inline constexpr hocketRedOp_t kAllOps[] = {
#define HOCKET_TEST_OP(name, value) hocket##name,
    HOCKET_FOR_EACH_REDOP(HOCKET_TEST_OP)
#undef HOCKET_TEST_OP
};

// Calls body.template operator()<Element>() for the type.
template <class Body>
void with_type(hocketDataType_t type, Body&& body) {
  switch (static_cast<int>(type)) {
#define HOCKET_TEST_CASE(name, value, bytes, element, acc) \
  case value: body.template operator()<element>(); break;
    HOCKET_FOR_EACH_DATATYPE(HOCKET_TEST_CASE)
#undef HOCKET_TEST_CASE
  }
}

template <class T>
struct DatatypeOf;
#define HOCKET_TEST_VALUE(name, number, bytes, element, acc) \
  template <>                                                \
  struct DatatypeOf<element> {                               \
    static constexpr hocketDataType_t value = hocket##name;  \
  };
HOCKET_FOR_EACH_DATATYPE(HOCKET_TEST_VALUE)
#undef HOCKET_TEST_VALUE

template <class T>
inline constexpr bool kNarrow = requires(T v) {
  v.to_float();
};
template <class T>
inline constexpr bool kFloating = std::is_floating_point_v<T> || kNarrow<T>;
template <class T>
using Wide = std::conditional_t<kNarrow<T>, float, T>;

template <class T>
Wide<T> widen(T v) {
  if constexpr (kNarrow<T>)
    return v.to_float();
  else
    return v;
}
template <class T>
T narrow(Wide<T> v) {
  if constexpr (kNarrow<T>)
    return T::from(v);
  else
    return v;
}

// splitmix64: a good hash of a counter.
constexpr std::uint64_t hash(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t hash(std::uint64_t seed, int rank, std::size_t i) {
  return hash(hash(seed + static_cast<std::uint64_t>(rank) * 0x10001) + i);
}

// Any bits: for calls that only move data.
template <class T>
T any_value(std::uint64_t bits) {
  if constexpr (sizeof(T) == 8)
    return std::bit_cast<T>(bits);
  else if constexpr (sizeof(T) == 4)
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  else if constexpr (sizeof(T) == 2)
    return std::bit_cast<T>(static_cast<std::uint16_t>(bits));
  else
    return std::bit_cast<T>(static_cast<std::uint8_t>(bits));
}

template <class T>
T operand(hocketRedOp_t op, std::uint64_t bits) {
  if constexpr (std::is_same_v<T, Bool>) {
    constexpr std::uint8_t kBytes[] = {0, 0, 0, 1, 1, 2, 128, 255};
    return {kBytes[bits % 8]};
  } else if constexpr (kFloating<T>) {
    switch (op) {
      case hocketProd: {
        constexpr float kFactors[] = {0.5f, 1.0f, -1.0f, 2.0f};
        return narrow<T>(static_cast<Wide<T>>(kFactors[bits % 4]));
      }
      case hocketMax:
      case hocketMin: return narrow<T>(static_cast<Wide<T>>(static_cast<int>(bits % 401) - 200));
      case hocketLand:
      case hocketLor: return narrow<T>(static_cast<Wide<T>>(bits % 3 == 0 ? 0 : static_cast<int>(bits % 17) - 8));
      default: return narrow<T>(static_cast<Wide<T>>(static_cast<int>(bits % 17) - 8));
    }
  } else {
    if ((op == hocketLand || op == hocketLor) && bits % 3 == 0) return 0;
    return any_value<T>(bits);
  }
}

template <class A>
A wrapped(std::uint64_t bits) {
  return static_cast<A>(bits);  // modulo 2^width, also for signed types
}

template <class T>
Wide<T> combine(hocketRedOp_t op, Wide<T> a, Wide<T> b) {
  if constexpr (std::is_same_v<T, Bool>) {
    const bool x = a.bits != 0, y = b.bits != 0;
    switch (op) {
      case hocketProd:
      case hocketMin:
      case hocketBand:
      case hocketLand: return {static_cast<std::uint8_t>(x && y)};
      case hocketBxor: return {static_cast<std::uint8_t>(x != y)};
      default: return {static_cast<std::uint8_t>(x || y)};
    }
  } else {
    using A = Wide<T>;
    if (op == hocketLand) return static_cast<A>(a != A{0} && b != A{0});
    if (op == hocketLor) return static_cast<A>(a != A{0} || b != A{0});
    if constexpr (kFloating<T>) {
      if (op == hocketProd) return a * b;
      if (op == hocketMax || op == hocketMin) {
        if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<A>::quiet_NaN();
        return (op == hocketMax) == (a < b) ? b : a;
      }
      return a + b;
    } else {
      const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
      switch (op) {
        case hocketProd: return wrapped<A>(x * y);
        case hocketMax: return a < b ? b : a;
        case hocketMin: return b < a ? b : a;
        case hocketBand: return static_cast<A>(a & b);
        case hocketBor: return static_cast<A>(a | b);
        case hocketBxor: return static_cast<A>(a ^ b);
        default: return wrapped<A>(x + y);
      }
    }
  }
}

// One element of the result: the inputs of all ranks in rank order.
template <class T>
T reduced(hocketRedOp_t op, const std::vector<const T*>& inputs, std::size_t i) {
  const auto first = [&](Wide<T> v) {  // a single rank's result is normalised too
    if constexpr (std::is_same_v<T, Bool>)
      return Bool{static_cast<std::uint8_t>(v.bits != 0)};
    else
      return op == hocketLand || op == hocketLor ? static_cast<Wide<T>>(v != Wide<T>{0}) : v;
  };
  Wide<T> value = first(widen<T>(inputs[0][i]));
  for (std::size_t r = 1; r < inputs.size(); ++r) value = combine<T>(op, value, widen<T>(inputs[r][i]));
  if constexpr (!std::is_same_v<T, Bool>) {
    const auto n = static_cast<std::int64_t>(inputs.size());
    if (op == hocketAvg) {
      if constexpr (kFloating<T>)
        value = value / static_cast<Wide<T>>(n);
      else
        value = static_cast<T>(static_cast<__int128>(value) / n);  // toward zero
    }
  }
  return narrow<T>(value);
}

}  // namespace hocket::test
