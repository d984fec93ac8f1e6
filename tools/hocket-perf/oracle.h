// SPDX-License-Identifier: Apache-2.0
// What the ranks put in and what must come out. Every element is a function of (seed, rank, index), so that any rank
// can say what any other rank sent without asking.
//
// What counts as right:
//  - moved data and min/max: the same bits; a NaN in any input of min/max gives NaN
//  - integers and bool: exact in the type, sums and products wrap
//  - float and double: within n * epsilon * sum|x| of the sum computed in the next wider type
//  - 16- and 8-bit floats: accumulated in fp32 and rounded once, so between the roundings of (exact - e) and (exact +
//  e),
//    e = (n + 2) * 2^-24 * sum|x|; a second rounding on the way is wrong
#pragma once

#include <cstddef>
#include <cstdint>

#include "types.h"

namespace hocket::perf {

struct Inputs {
  hocketDataType_t type;
  Op op;  // decides which values are drawn: none gives arbitrary bits, a product values near 1, a min some NaN, …
  int n_ranks;
  std::uint64_t seed;
};

// Elements [first, first + count) of what `rank` sends.
void make_input(const Inputs& inputs, int rank, std::size_t first, std::size_t count, void* out);

// How many of `count` elements differ from what `rank` sent at [first, …).
std::uint64_t wrong_inputs(const Inputs& inputs, int rank, std::size_t first, std::size_t count, const void* got);

// How many of `count` elements are not the reduction over all ranks of [first, …).
std::uint64_t wrong_reductions(const Inputs& inputs, std::size_t first, std::size_t count, const void* got);

// Bytes that nobody may have touched: a pattern by offset (in bytes, may be negative).
void make_poison(std::int64_t offset, std::size_t bytes, void* out);
std::uint64_t wrong_poison(std::int64_t offset, std::size_t count, std::size_t element_bytes, const void* got);

// The scalar of `rank` for premulsum, as one element of the type.
void make_premul_scalar(hocketDataType_t type, int rank, void* out);

// The user-defined operation: a sum. A hocketUserReduceFn.
void user_sum(void* inout, const void* in, std::size_t count, hocketDataType_t type, void* user_data);

}  // namespace hocket::perf
