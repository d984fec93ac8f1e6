// SPDX-License-Identifier: Apache-2.0
// Times and checks one size. Every member of the team runs the same steps in the same order.
#pragma once

#include <cstdint>
#include <vector>

#include "limit.h"
#include "options.h"
#include "progress.h"
#include "rank.h"
#include "result.h"
#include "team.h"
#include "workload.h"

namespace hocket::perf {

class Runner {
 public:
  // `meter` and `side`: where this member takes part in measuring limits; otherwise NULL.
  Runner(const Options& options, int n_ranks, const std::vector<Rank>& ranks, Team& team, Progress& progress,
         const LimitMeter* meter, int side);

  // All members get the same figures.
  Result run(const Case& what, std::size_t bytes, const std::vector<hocketRedOp_t>& ops);

 private:
  // How often to call: `calls` back to back make a sample, so that the clock does not show in it.
  struct Repetition {
    std::uint64_t calls;
    std::uint64_t samples;  // in each round
    int rounds;
  };

  Repetition choose_repetition(const Workload& workload);
  void time_round(const Workload& workload, const Repetition& repetition, std::vector<double>& samples_us);
  Figures summarise(const std::vector<double>& samples_us) const;
  std::optional<std::uint64_t> check(const Workload& workload);
  std::uint64_t next_seed();

  const Options& options_;
  int n_ranks_;
  const std::vector<Rank>& ranks_;
  Team& team_;
  Progress& progress_;
  const LimitMeter* meter_;
  int side_;
  std::uint64_t fills_ = 0;

  // Of the size being run.
  Case what_{};
  std::size_t bytes_ = 0;
};

}  // namespace hocket::perf
