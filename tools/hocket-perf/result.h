// SPDX-License-Identifier: Apache-2.0
// What is reported of one size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectives.h"
#include "limit.h"
#include "types.h"

namespace hocket::perf {

// One run of the table: a collective with its type, operation and root, over all sizes.
struct Case {
  const Collective* collective;
  const DataType* type;
  Op op;
  int root;  // -1: has none
};

struct Figures {
  double time_us = 0;  // median over the samples; a sample is that of the slowest rank
  double p99_us = 0;
  double min_us = 0;
  double algbw_gbyte_s = 0;
  double busbw_gbyte_s = 0;
  std::optional<std::uint64_t> wrong;  // elements, over all ranks; nothing when not checked
};

struct Result {
  Case what;
  std::size_t bytes = 0;
  std::size_t count = 0;
  Figures out_of_place;
  std::optional<Figures> in_place;
  std::optional<Limit> limit;
};

}  // namespace hocket::perf
