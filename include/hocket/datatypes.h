/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of datatypes and the one list of reduction operations. The C enums, sizes, names, dispatch tables, kernel
 * instances and per-type tests are all expanded from these two lists: adding a datatype is adding one line here (plus,
 * for a truly new format, its arithmetic in src/base/float_types.h). */
#ifndef HOCKET_DATATYPES_H_
#define HOCKET_DATATYPES_H_

/* X(name, value, bytes, C++ element type, C++ accumulation type)
 * Values 0-11 equal NCCL's. Sums and products of 16- and 8-bit floats are accumulated in fp32 and rounded once. */
#define HOCKET_FOR_EACH_DATATYPE(X)               \
  X(Int8, 0, 1, std::int8_t, std::int8_t)         \
  X(Uint8, 1, 1, std::uint8_t, std::uint8_t)      \
  X(Int32, 2, 4, std::int32_t, std::int32_t)      \
  X(Uint32, 3, 4, std::uint32_t, std::uint32_t)   \
  X(Int64, 4, 8, std::int64_t, std::int64_t)      \
  X(Uint64, 5, 8, std::uint64_t, std::uint64_t)   \
  X(Float16, 6, 2, ::hocket::Float16, float)      \
  X(Float32, 7, 4, float, float)                  \
  X(Float64, 8, 8, double, double)                \
  X(Bfloat16, 9, 2, ::hocket::Bfloat16, float)    \
  X(Float8e4m3, 10, 1, ::hocket::Float8e4m3, float) \
  X(Float8e5m2, 11, 1, ::hocket::Float8e5m2, float) \
  X(Int16, 12, 2, std::int16_t, std::int16_t)     \
  X(Uint16, 13, 2, std::uint16_t, std::uint16_t)  \
  X(Bool, 14, 1, ::hocket::Bool, ::hocket::Bool)

/* X(name, value). Values 0-4 equal NCCL's. Bitwise operations take integers and bool; logical ones take every type and
 * give 0 or 1; avg takes every type but bool. */
#define HOCKET_FOR_EACH_REDOP(X) \
  X(Sum, 0)                      \
  X(Prod, 1)                     \
  X(Max, 2)                      \
  X(Min, 3)                      \
  X(Avg, 4)                      \
  X(Band, 5)                     \
  X(Bor, 6)                      \
  X(Bxor, 7)                     \
  X(Land, 8)                     \
  X(Lor, 9)

#endif /* HOCKET_DATATYPES_H_ */
