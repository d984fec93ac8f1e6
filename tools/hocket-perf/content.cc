// SPDX-License-Identifier: Apache-2.0
#include "content.h"

#include <algorithm>

namespace hocket::perf {
namespace {

// The elements [begin, end) of a part.
Part cut(const Part& part, std::size_t begin, std::size_t end) {
  Part out = part;
  out.at = begin;
  out.count = end - begin;
  out.first = part.first + (begin - part.at);
  return out;
}

// Replaces what `content` says about the elements of `part`.
Content put(const Content& content, const Part& part) {
  if (part.count == 0) return content;
  const std::size_t end = part.at + part.count;
  Content out;
  for (const Part& old : content) {
    const std::size_t old_end = old.at + old.count;
    if (old.at < part.at) out.push_back(cut(old, old.at, std::min(old_end, part.at)));
    if (old.at <= part.at && part.at < old_end) out.push_back(part);
    if (old_end > end) out.push_back(cut(old, std::max(old.at, end), old_end));
  }
  return out;
}

}  // namespace

Content overlay(std::size_t count, const std::vector<Part>& base, const std::vector<Part>& top) {
  Content content;
  if (count > 0) content.push_back({0, count, Origin::poison});
  for (const Part& part : base) content = put(content, part);
  for (const Part& part : top) content = put(content, part);
  return content;
}

void fill(const Content& content, const Inputs& inputs, std::size_t element_bytes, char* data) {
  for (const Part& part : content) {
    const std::size_t offset = part.at * element_bytes;
    if (part.origin == Origin::input) {
      make_input(inputs, part.rank, part.first, part.count, data + offset);
    } else {
      make_poison(static_cast<std::int64_t>(offset), part.count * element_bytes, data + offset);
    }
  }
}

std::uint64_t count_wrong(const Content& content, const Inputs& inputs, std::size_t element_bytes, const char* data) {
  std::uint64_t wrong = 0;
  for (const Part& part : content) {
    const std::size_t offset = part.at * element_bytes;
    switch (part.origin) {
      case Origin::poison:
        wrong += wrong_poison(static_cast<std::int64_t>(offset), part.count, element_bytes, data + offset);
        break;
      case Origin::input: wrong += wrong_inputs(inputs, part.rank, part.first, part.count, data + offset); break;
      case Origin::reduction: wrong += wrong_reductions(inputs, part.first, part.count, data + offset); break;
    }
  }
  return wrong;
}

}  // namespace hocket::perf
