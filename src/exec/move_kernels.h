// SPDX-License-Identifier: Apache-2.0
// Tables of vector kernels, by kind of element; each is its own source file to keep compilation short.
#pragma once

#include "exec/move.h"

namespace hocket {

// nullptr where the type is of the other kind or has no such operation.
MoveFn integer_kernel(hocketDataType_t type, hocketRedOp_t op);
MoveFn float_kernel(hocketDataType_t type, hocketRedOp_t op);
MoveFn narrow_float_kernel(hocketDataType_t type, hocketRedOp_t op);

}  // namespace hocket
