// SPDX-License-Identifier: Apache-2.0
// Move kernels of floating-point types that the compiler knows.
#include "exec/move_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/move_float.cc"
#include "hwy/foreach_target.h"

#include "exec/move-inl.h"
#include "exec/move_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace hocket {
namespace HWY_NAMESPACE {

template <class T>
MoveFn float_kernel_for(hocketRedOp_t op) {
  if constexpr (std::is_floating_point_v<T>) {
    return kernel_for<T>(op);
  } else {
    return nullptr;
  }
}

MoveFn float_kernel_here(hocketDataType_t type, hocketRedOp_t op) {
  switch (type) {
#define HOCKET_CASE(name, value, bytes, type, acc) \
  case hocket##name:                               \
    return float_kernel_for<type>(op);
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

HWY_EXPORT(float_kernel_here);

MoveFn float_kernel(hocketDataType_t type, hocketRedOp_t op) { return HWY_DYNAMIC_DISPATCH(float_kernel_here)(type, op); }

}  // namespace hocket
#endif  // HWY_ONCE
