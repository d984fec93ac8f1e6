// SPDX-License-Identifier: Apache-2.0
// Operations made by hocketRedOpCreate*: numbered from hocketNumOps in the order of creation, which is the same on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "hocket/hocket.h"

namespace hocket {

struct CustomOp {
  bool alive = false;
  // Pre-multiplied sum.
  hocketDataType_t datatype = hocketFloat32;
  const void* scalar = nullptr;      // caller's memory, read when a call runs; or null: `immediate`
  alignas(8) std::byte immediate[8] = {};
  // User-defined.
  hocketUserReduceFn user_fn = nullptr;
  void* user_data = nullptr;

  const void* scale() const { return scalar != nullptr ? scalar : immediate; }
};

class CustomOps {
 public:
  Result<hocketRedOp_t> add_premultiplied(const void* scalar, hocketDataType_t datatype, hocketScalarResidence_t residence);
  Result<hocketRedOp_t> add_user(hocketUserReduceFn fn, void* user_data);
  Status remove(hocketRedOp_t op);
  // Null when `op` was never made or is destroyed.
  const CustomOp* find(hocketRedOp_t op) const;

 private:
  hocketRedOp_t add(const CustomOp& op);
  std::vector<CustomOp> ops_;
};

}  // namespace hocket
