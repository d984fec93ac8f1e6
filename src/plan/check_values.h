// SPDX-License-Identifier: Apache-2.0
// The numbers of a symbolic run: instead of an element, whose elements were combined, in which order. Equal values have
// equal ids.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace hocket {

struct SymbolicValue {
  int block = 0;            // of the input it began in
  std::vector<int> ranks;   // whose inputs, in the order in which they were combined; none twice
  bool left_fold = true;    // ((r0 op r1) op r2) ..., not op of two combinations
  bool finished = false;

  // Unrounded: travels in the accumulation type.
  bool unfinished_combination() const { return ranks.size() > 1 && !finished; }

  friend auto operator<=>(const SymbolicValue&, const SymbolicValue&) = default;
};

class SymbolicValues {
 public:
  const SymbolicValue& operator[](int id) const { return values_[static_cast<std::size_t>(id)]; }

  // Rank's input block as it is.
  int input(int rank, int block);
  // The sources from left to right. Fails when they do not fit together: another block, a rank twice, something finished.
  Result<int> combine(const std::vector<int>& sources);
  Result<int> finish(int value);

 private:
  struct Hash {
    std::size_t operator()(const std::vector<int>& ids) const;
  };

  int intern(SymbolicValue value);

  std::vector<SymbolicValue> values_;
  std::map<SymbolicValue, int> ids_;
  std::unordered_map<std::vector<int>, int, Hash> combined_;  // results of earlier calls
  std::unordered_map<int, int> finished_;
};

// "block 2 of ranks 0, 1, 3, finished".
std::string to_string(const SymbolicValue& value);

}  // namespace hocket
