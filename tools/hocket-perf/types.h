// SPDX-License-Identifier: Apache-2.0
// Datatypes and operations as the command line names them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "hocket/hocket.h"

namespace hocket::perf {

struct DataType {
  std::string_view name;
  hocketDataType_t type;
  std::size_t bytes;
};

// In the order in which `-d all` runs them.
std::span<const DataType> all_data_types();
const DataType& data_type(hocketDataType_t type);
// Also knows aliases such as float32 and bf16.
const DataType* find_data_type(std::string_view name);

// `none` is the operation of collectives that only move data.
enum class Op { sum, prod, min, max, avg, premulsum, band, bor, bxor, land, lor, user, none };

// In the order in which `-o all` runs them; without `none`.
std::span<const Op> all_ops();
std::string_view op_name(Op op);
std::optional<Op> find_op(std::string_view name);
// The library's value; nothing for the operations that are created per communicator.
std::optional<hocketRedOp_t> builtin_op(Op op);

// Whether the library promises the pair. `user` is this tool's own function, a sum of integers, float and double.
bool supported(hocketDataType_t type, Op op);

}  // namespace hocket::perf
