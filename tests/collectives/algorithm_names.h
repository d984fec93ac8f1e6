// SPDX-License-Identifier: Apache-2.0
// Names to force, for tests of what must not depend on the algorithm.
#pragma once

#include <string>
#include <vector>

#include "plan/algorithm.h"

namespace hocket::test {

// The planner's choice ("") and every algorithm that knows a reduction; those that cannot keep the order are set aside then.
inline std::vector<std::string> reduction_algorithms() {
  std::vector<std::string> names = {""};
  for (const Algorithm* algorithm : algorithms())
    for (const Collective collective : {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter}) {
      PlanRequest request;
      request.collective = collective;
      request.n_ranks = 3;
      request.bytes = 1024;
      if (algorithm->unsupported(request) == kOtherCollective) continue;
      names.emplace_back(algorithm->name);
      break;
    }
  return names;
}

}  // namespace hocket::test
