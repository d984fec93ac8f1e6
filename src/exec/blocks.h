// SPDX-License-Identifier: Apache-2.0
// Where the blocks of a plan lie in the buffers of one call, in elements.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hocket {

struct Extent {
  std::size_t offset = 0;
  std::size_t count = 0;
};

// [0, count) cut into `parts` even pieces whose borders are multiples of `granule`; the last pieces may be empty.
constexpr Extent even_part(std::size_t count, std::size_t parts, std::size_t index, std::size_t granule) {
  if (parts == 1) return {0, count};
  const std::size_t units = (count + granule - 1) / granule;
  const std::size_t per_part = (units + parts - 1) / parts * granule;
  const std::size_t begin = std::min(count, per_part * index);
  return {begin, std::min(count, begin + per_part) - begin};
}

// One buffer as a sequence of blocks.
struct BlockMap {
  enum class Form {
    even,      // `count` elements cut evenly
    uniform,   // block k is `count` elements at k * count
    own_only,  // the buffer is one block, this rank's, of `count` elements
    listed,    // counts[k] elements at displs[k]
  };
  Form form = Form::even;
  std::size_t count = 0;
  std::size_t n_blocks = 1;
  std::size_t granule = 1;
  const std::size_t* counts = nullptr;
  const std::size_t* displs = nullptr;  // null with counts: the blocks follow one another

  Extent block(std::size_t index) const {
    switch (form) {
      case Form::even:
        return even_part(count, n_blocks, index, granule);
      case Form::uniform:
        return {index * count, count};
      case Form::own_only:
        return {0, count};
      case Form::listed:
        return {displs != nullptr ? displs[index] : sum_before(index), counts[index]};
    }
    return {};
  }

 private:
  std::size_t sum_before(std::size_t index) const {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < index; ++i) sum += counts[i];
    return sum;
  }
};

}  // namespace hocket
