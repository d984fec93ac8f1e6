// SPDX-License-Identifier: Apache-2.0
// What a buffer holds, as a list of parts: the same words say how to fill it before a call and what to expect after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "oracle.h"

namespace hocket::perf {

enum class Origin {
  poison,     // nobody's data: must stay as it was
  input,      // what `rank` sends, from element `first` on
  reduction,  // the same elements of all ranks, reduced
};

struct Part {
  std::size_t at;     // in elements from the start of the buffer
  std::size_t count;  // elements
  Origin origin;
  int rank = 0;
  std::size_t first = 0;
};

// Sorted by `at`, without gaps or overlaps.
using Content = std::vector<Part>;

// `count` elements of poison under `base` under `top`. Parts within one list do not overlap; parts may be empty.
Content overlay(std::size_t count, const std::vector<Part>& base, const std::vector<Part>& top);

// Writes a content that has no reductions into the elements at `data`.
void fill(const Content& content, const Inputs& inputs, std::size_t element_bytes, char* data);

// How many elements at `data` are not as the content says.
std::uint64_t count_wrong(const Content& content, const Inputs& inputs, std::size_t element_bytes, const char* data);

}  // namespace hocket::perf
