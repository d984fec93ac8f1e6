// SPDX-License-Identifier: Apache-2.0
#include "plan/check_values.h"

#include <algorithm>
#include <utility>

namespace hocket {

std::size_t SymbolicValues::Hash::operator()(const std::vector<int>& ids) const {
  std::size_t hash = ids.size();
  for (int id : ids) hash = (hash ^ static_cast<std::size_t>(id)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 32);
}

int SymbolicValues::intern(SymbolicValue value) {
  const auto [found, is_new] = ids_.try_emplace(value, static_cast<int>(values_.size()));
  if (is_new) values_.push_back(std::move(value));
  return found->second;
}

int SymbolicValues::input(int rank, int block) { return intern({block, {rank}, true, false}); }

Result<int> SymbolicValues::combine(const std::vector<int>& sources) {
  if (sources.size() == 1) return sources.front();
  if (const auto known = combined_.find(sources); known != combined_.end()) return known->second;

  SymbolicValue sum = (*this)[sources.front()];
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const SymbolicValue& next = (*this)[sources[i]];
    if (next.finished) return fail(hocketInvalidArgument, "combines {} after it was finished", to_string(next));
    if (next.block != sum.block) return fail(hocketInvalidArgument, "combines {} with {}", to_string(sum), to_string(next));
    if (i == 0) continue;
    sum.left_fold &= next.ranks.size() == 1;
    sum.ranks.insert(sum.ranks.end(), next.ranks.begin(), next.ranks.end());
  }
  std::vector<int> sorted = sum.ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return fail(hocketInvalidArgument, "counts rank {} twice: {}", *twice, to_string(sum));
  }
  const int id = intern(std::move(sum));
  combined_.emplace(sources, id);
  return id;
}

Result<int> SymbolicValues::finish(int value) {
  if (const auto known = finished_.find(value); known != finished_.end()) return known->second;
  SymbolicValue result = (*this)[value];
  if (result.finished) return fail(hocketInvalidArgument, "finishes {} again", to_string(result));
  result.finished = true;
  const int id = intern(std::move(result));
  finished_.emplace(value, id);
  return id;
}

std::string to_string(const SymbolicValue& value) {
  return fmt::format("block {} of rank{} {}{}", value.block, value.ranks.size() == 1 ? "" : "s", fmt::join(value.ranks, ", "),
                     value.finished ? ", finished" : "");
}

}  // namespace hocket
