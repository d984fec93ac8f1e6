// SPDX-License-Identifier: Apache-2.0
// Move kernels of 16- and 8-bit floats.
#include "exec/move_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/move_narrow_float.cc"
#include "hwy/foreach_target.h"

#include "exec/move-inl.h"
#include "exec/move_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace hocket {
namespace HWY_NAMESPACE {

template <class T>
MoveFn narrow_float_kernel_for(hocketRedOp_t op) {
  if constexpr (NarrowFloat<T>) {
    return kernel_for<T>(op);
  } else {
    return nullptr;
  }
}

MoveFn narrow_float_kernel_here(hocketDataType_t type, hocketRedOp_t op) {
  switch (type) {
#define HOCKET_CASE(name, value, bytes, type, acc) \
  case hocket##name:                               \
    return narrow_float_kernel_for<type>(op);
    HOCKET_FOR_EACH_DATATYPE(HOCKET_CASE)
#undef HOCKET_CASE
    case hocketNumTypes:
      break;
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace hocket
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket {

HWY_EXPORT(narrow_float_kernel_here);

MoveFn narrow_float_kernel(hocketDataType_t type, hocketRedOp_t op) { return HWY_DYNAMIC_DISPATCH(narrow_float_kernel_here)(type, op); }

}  // namespace hocket
#endif  // HWY_ONCE
