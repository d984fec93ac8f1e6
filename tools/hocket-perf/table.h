// SPDX-License-Identifier: Apache-2.0
// The table, on standard output (or error, where --json or --csv go to standard output), in nccl-tests' order of
// columns.
#pragma once

#include <array>
#include <vector>

#include "options.h"
#include "result.h"

namespace hocket::perf {

// Where a rank runs.
struct RankPlace {
  int rank;
  int pid;
  int cpu;  // the one it ran on when asked
  std::array<char, 64> host;
};

void print_header(const Options& options, const std::vector<RankPlace>& places, int n_cpus);
// Opens the rows of one collective.
void print_columns(const Options& options, const Collective& collective);
void print_row(const Options& options, const Result& result, int n_ranks);
void print_footer(const Options& options, const std::vector<Result>& results);

// Elements that are wrong in any of the results.
std::uint64_t total_wrong(const std::vector<Result>& results);

// Our bandwidth over the limit's, in place where there is that form. Nothing where the limit does not compare.
struct LimitRatios {
  std::optional<double> to_best;  // of plain and streaming stores
  std::optional<double> to_streaming;
  std::optional<double> hand_overs;  // time over one hand-over
};
LimitRatios limit_ratios(const Result& result, int n_ranks);

}  // namespace hocket::perf
