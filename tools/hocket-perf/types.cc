// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace hocket::perf {
namespace {

constexpr auto kTypes = std::to_array<DataType>({
    {"int8", hocketInt8, 1},
    {"uint8", hocketUint8, 1},
    {"int16", hocketInt16, 2},
    {"uint16", hocketUint16, 2},
    {"int32", hocketInt32, 4},
    {"uint32", hocketUint32, 4},
    {"int64", hocketInt64, 8},
    {"uint64", hocketUint64, 8},
    {"half", hocketFloat16, 2},
    {"float", hocketFloat32, 4},
    {"double", hocketFloat64, 8},
    {"bfloat16", hocketBfloat16, 2},
    {"fp8_e4m3", hocketFloat8e4m3, 1},
    {"fp8_e5m2", hocketFloat8e5m2, 1},
    {"bool", hocketBool, 1},
});
static_assert(kTypes.size() == hocketNumTypes, "every datatype of datatypes.h has a name here");

constexpr auto kTypeAliases = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"char", "int8"},
    {"int", "int32"},
    {"float16", "half"},
    {"f16", "half"},
    {"float32", "float"},
    {"f32", "float"},
    {"float64", "double"},
    {"f64", "double"},
    {"bf16", "bfloat16"},
    {"f8e4m3", "fp8_e4m3"},
    {"float8_e4m3", "fp8_e4m3"},
    {"f8e5m2", "fp8_e5m2"},
    {"float8_e5m2", "fp8_e5m2"},
});

constexpr auto kOps = std::to_array<Op>({Op::sum, Op::prod, Op::min, Op::max, Op::avg, Op::premulsum, Op::band, Op::bor,
                                         Op::bxor, Op::land, Op::lor, Op::user});

bool is_small_float(hocketDataType_t type) {
  return type == hocketFloat16 || type == hocketBfloat16 || type == hocketFloat8e4m3 || type == hocketFloat8e5m2;
}

bool is_float(hocketDataType_t type) { return is_small_float(type) || type == hocketFloat32 || type == hocketFloat64; }

}  // namespace

std::span<const DataType> all_data_types() { return kTypes; }

const DataType& data_type(hocketDataType_t type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const DataType& t) { return t.type == type; });
}

const DataType* find_data_type(std::string_view name) {
  for (const auto& [alias, meant] : kTypeAliases) {
    if (name == alias) name = meant;
  }
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(), [&](const DataType& t) { return t.name == name; });
  return found == kTypes.end() ? nullptr : found;
}

std::span<const Op> all_ops() { return kOps; }

std::string_view op_name(Op op) {
  switch (op) {
    case Op::sum: return "sum";
    case Op::prod: return "prod";
    case Op::min: return "min";
    case Op::max: return "max";
    case Op::avg: return "avg";
    case Op::premulsum: return "mulsum";  // nccl-tests' name
    case Op::band: return "band";
    case Op::bor: return "bor";
    case Op::bxor: return "bxor";
    case Op::land: return "land";
    case Op::lor: return "lor";
    case Op::user: return "user";
    case Op::none: return "none";
  }
  return "?";
}

std::optional<Op> find_op(std::string_view name) {
  if (name == "premulsum") return Op::premulsum;
  const auto* found = std::find_if(kOps.begin(), kOps.end(), [&](Op op) { return op_name(op) == name; });
  return found == kOps.end() ? std::nullopt : std::optional(*found);
}

std::optional<hocketRedOp_t> builtin_op(Op op) {
  switch (op) {
    case Op::sum: return hocketSum;
    case Op::prod: return hocketProd;
    case Op::min: return hocketMin;
    case Op::max: return hocketMax;
    case Op::avg: return hocketAvg;
    case Op::band: return hocketBand;
    case Op::bor: return hocketBor;
    case Op::bxor: return hocketBxor;
    case Op::land: return hocketLand;
    case Op::lor: return hocketLor;
    case Op::none: return hocketSum;  // not looked at
    case Op::premulsum:
    case Op::user: return std::nullopt;
  }
  return std::nullopt;
}

bool supported(hocketDataType_t type, Op op) {
  switch (op) {
    case Op::band:
    case Op::bor:
    case Op::bxor: return !is_float(type);
    case Op::avg:
    case Op::premulsum: return type != hocketBool;
    case Op::user: return type != hocketBool && !is_small_float(type);
    case Op::sum:
    case Op::prod:
    case Op::min:
    case Op::max:
    case Op::land:
    case Op::lor:
    case Op::none: return true;
  }
  return false;
}

}  // namespace hocket::perf
