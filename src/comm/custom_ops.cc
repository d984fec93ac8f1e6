// SPDX-License-Identifier: Apache-2.0
#include "comm/custom_ops.h"

#include <cstring>

#include "base/datatype.h"

namespace hocket {

Result<hocketRedOp_t> CustomOps::add_premultiplied(const void* scalar, hocketDataType_t datatype,
                                                   hocketScalarResidence_t residence) {
  if (scalar == nullptr) return fail(hocketInvalidArgument, "hocketRedOpCreatePreMulSum: scalar is NULL");
  if (!is_datatype(datatype) || datatype == hocketBool)
    return fail(hocketInvalidArgument, "hocketRedOpCreatePreMulSum: datatype {} cannot be multiplied",
                datatype_name(datatype));
  CustomOp op;
  op.datatype = datatype;
  if (residence == hocketScalarHostImmediate)
    std::memcpy(op.immediate, scalar, element_bytes(datatype));
  else if (residence == hocketScalarDevice)
    op.scalar = scalar;
  else
    return fail(hocketInvalidArgument, "hocketRedOpCreatePreMulSum: residence {} is unknown; see hocketScalarResidence_t",
                static_cast<int>(residence));
  return add(op);
}

Result<hocketRedOp_t> CustomOps::add_user(hocketUserReduceFn fn, void* user_data) {
  if (fn == nullptr) return fail(hocketInvalidArgument, "hocketRedOpCreateUser: the function is NULL");
  CustomOp op;
  op.user_fn = fn;
  op.user_data = user_data;
  return add(op);
}

hocketRedOp_t CustomOps::add(const CustomOp& op) {
  ops_.push_back(op);
  ops_.back().alive = true;
  return static_cast<hocketRedOp_t>(hocketNumOps + static_cast<int>(ops_.size()) - 1);
}

Status CustomOps::remove(hocketRedOp_t op) {
  if (find(op) == nullptr)
    return fail(hocketInvalidArgument, "hocketRedOpDestroy: operation {} is not a live operation of this communicator",
                static_cast<int>(op));
  ops_[static_cast<std::size_t>(op) - hocketNumOps].alive = false;
  return {};
}

const CustomOp* CustomOps::find(hocketRedOp_t op) const {
  const auto index = static_cast<std::size_t>(static_cast<int>(op) - hocketNumOps);
  return index < ops_.size() && ops_[index].alive ? &ops_[index] : nullptr;
}

}  // namespace hocket
