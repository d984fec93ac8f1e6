// SPDX-License-Identifier: Apache-2.0
// The instruction sets that move kernels are compiled for. Included before any Highway header, by every source file that
// does run-time dispatch, so that all of them agree.
#pragma once

// Below AVX2 the scalar code serves; AVX3_DL adds no instruction that a move uses through Highway; SVE and RVV vectors cannot be kept in arrays.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
