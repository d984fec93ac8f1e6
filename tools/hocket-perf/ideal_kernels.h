// SPDX-License-Identifier: Apache-2.0
// The inner loop of the ideal 2-rank all-reduce, in the widest vectors that this CPU has.
#pragma once

#include <cstddef>

namespace hocket::perf {

enum class Stores {
  plain,
  streaming,  // past the caches; on CPUs without them the same as plain
};

// a[i] = b[i] = a[i] + b[i]. Both aligned to 64 bytes.
using AddToBoth = void (*)(float* a, float* b, std::size_t count);

AddToBoth add_to_both(Stores stores);
// "avx512", "avx2" or "portable".
const char* vector_name();

}  // namespace hocket::perf
