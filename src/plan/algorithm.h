// SPDX-License-Identifier: Apache-2.0
// An algorithm is one file in algorithms/: it says which requests it serves, what they cost and which steps they take.
// The build collects `const Algorithm& algorithm_<file name>()` of every file into one table.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "plan/plan_request.h"

namespace hocket {

// What `unsupported` says of a collective that the algorithm has no steps for. The planner does not list it as a candidate.
inline constexpr std::string_view kOtherCollective = "does not do this collective";

struct Algorithm {
  std::string_view name;
  // Empty when it serves the request, else the reason why not, as a phrase for --explain.
  std::string (*unsupported)(const PlanRequest&);
  double (*predicted_us)(const PlanRequest&);
  // The plan of one rank, with one channel of share 1. The planner fills in what is common.
  Plan (*build)(const PlanRequest&, int rank);
  // Unfinished combinations travel between ranks: transfers may be as wide as the accumulation type.
  bool partials_travel = false;
  // At equal cost (few ranks make patterns alike) the smaller number is taken, then the name.
  int preference = 1;
};

// By name.
std::span<const Algorithm* const> algorithms();

}  // namespace hocket
