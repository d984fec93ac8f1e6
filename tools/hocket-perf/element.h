// SPDX-License-Identifier: Apache-2.0
// Element types of the oracle, and from a datatype value to one of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hocket/hocket.h"
#include "minifloat.h"

namespace hocket::perf {

struct BoolByte {
  std::uint8_t bits;
};

template <class T>
inline constexpr bool kIsBool = std::is_same_v<T, BoolByte>;
template <class T>
inline constexpr bool kIsWideFloat = std::is_floating_point_v<T>;
template <class T>
inline constexpr bool kIsMiniFloat = !std::is_arithmetic_v<T> && !kIsBool<T>;
template <class T>
inline constexpr bool kIsFloat = kIsWideFloat<T> || kIsMiniFloat<T>;

template <class Visitor>
auto visit_type(hocketDataType_t type, Visitor&& visitor) {
  switch (type) {
    case hocketInt8: return visitor(std::int8_t{});
    case hocketUint8: return visitor(std::uint8_t{});
    case hocketInt16: return visitor(std::int16_t{});
    case hocketUint16: return visitor(std::uint16_t{});
    case hocketInt32: return visitor(std::int32_t{});
    case hocketUint32: return visitor(std::uint32_t{});
    case hocketInt64: return visitor(std::int64_t{});
    case hocketUint64: return visitor(std::uint64_t{});
    case hocketFloat16: return visitor(Half{});
    case hocketFloat32: return visitor(float{});
    case hocketFloat64: return visitor(double{});
    case hocketBfloat16: return visitor(BFloat16{});
    case hocketFloat8e4m3: return visitor(Fp8E4M3{});
    case hocketFloat8e5m2: return visitor(Fp8E5M2{});
    case hocketBool: return visitor(BoolByte{});
    case hocketNumTypes: break;
  }
  return visitor(std::uint8_t{});
}

template <class T>
T from_bits(std::uint64_t bits) {
  T out;
  std::memcpy(&out, &bits, sizeof(T));
  return out;
}

// The nearest value of a float type.
template <class T>
T nearest(double value) {
  if constexpr (kIsMiniFloat<T>) {
    return T::from(value);
  } else {
    return static_cast<T>(value);
  }
}

}  // namespace hocket::perf
