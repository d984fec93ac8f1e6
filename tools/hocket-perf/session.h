// SPDX-License-Identifier: Apache-2.0
// What one thread does once its ranks are up: all cases, all sizes; member 0 also reports.
#pragma once

#include <vector>

#include "limit.h"
#include "options.h"
#include "rank.h"
#include "team.h"

namespace hocket::perf {

struct Session {
  const Options* options;
  int n_ranks;
  std::vector<int> cpus;
  // Where two ranks measure limits themselves; each with its side.
  const LimitMeter* meter = nullptr;
  // Where limits were measured before: one per size.
  std::vector<Limit> limits;
};

// Returns an exit code, the same on every member.
int run_session(const Session& session, const std::vector<Rank>& ranks, Team& team);

}  // namespace hocket::perf
