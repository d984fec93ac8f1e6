// SPDX-License-Identifier: Apache-2.0
// Sizes, names and rules of datatypes and operations, all expanded from include/hocket/datatypes.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/float_types.h"
#include "hocket/hocket.h"

namespace hocket {

inline constexpr int kDatatypeCount = hocketNumTypes;
inline constexpr int kBuiltinOpCount = hocketNumOps;

constexpr bool is_datatype(int type) { return type >= 0 && type < kDatatypeCount; }

// Bytes of one element in user buffers.
constexpr std::size_t element_bytes(hocketDataType_t type) {
  constexpr std::uint8_t kBytes[] = {
#define HOCKET_BYTES(name, value, bytes, type, acc) bytes,
      HOCKET_FOR_EACH_DATATYPE(HOCKET_BYTES)
#undef HOCKET_BYTES
  };
  // The list is in order of value except that 16-bit integers and bool come last, as their values do.
  return kBytes[type];
}

template <hocketDataType_t>
struct DatatypeTraits;
#define HOCKET_TRAITS(name, value, bytes, type, acc)                                  \
  template <>                                                                         \
  struct DatatypeTraits<hocket##name> {                                               \
    using Element = type;                                                             \
    using Accumulator = acc;                                                          \
    static_assert(sizeof(Element) == (bytes), "datatypes.h gives the size in bytes"); \
  };
HOCKET_FOR_EACH_DATATYPE(HOCKET_TRAITS)
#undef HOCKET_TRAITS

// Bytes of one partial result on its way between ranks when it travels unrounded.
constexpr std::size_t accumulator_bytes(hocketDataType_t type) {
  constexpr std::uint8_t kBytes[] = {
#define HOCKET_ACC_BYTES(name, value, bytes, type, acc) sizeof(acc),
      HOCKET_FOR_EACH_DATATYPE(HOCKET_ACC_BYTES)
#undef HOCKET_ACC_BYTES
  };
  return kBytes[type];
}

constexpr std::string_view datatype_name(hocketDataType_t type) {
  constexpr std::string_view kNames[] = {
#define HOCKET_NAME(name, value, bytes, type, acc) #name,
      HOCKET_FOR_EACH_DATATYPE(HOCKET_NAME)
#undef HOCKET_NAME
  };
  return is_datatype(type) ? kNames[type] : "unknown";
}

constexpr std::string_view builtin_op_name(int op) {
  constexpr std::string_view kNames[] = {
#define HOCKET_NAME(name, value) #name,
      HOCKET_FOR_EACH_REDOP(HOCKET_NAME)
#undef HOCKET_NAME
  };
  return op >= 0 && op < kBuiltinOpCount ? kNames[op] : "user-defined";
}

constexpr bool is_float(hocketDataType_t type) {
  switch (type) {
    case hocketFloat16:
    case hocketFloat32:
    case hocketFloat64:
    case hocketBfloat16:
    case hocketFloat8e4m3:
    case hocketFloat8e5m2:
      return true;
    default:
      return false;
  }
}

// Which built-in operations a datatype has.
constexpr bool supports(hocketRedOp_t op, hocketDataType_t type) {
  switch (op) {
    case hocketBand:
    case hocketBor:
    case hocketBxor:
      return !is_float(type);
    case hocketAvg:
      return type != hocketBool;
    default:
      return op >= 0 && op < kBuiltinOpCount;
  }
}

}  // namespace hocket
