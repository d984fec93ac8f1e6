// SPDX-License-Identifier: Apache-2.0
#include "runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "errors.h"

namespace hocket::perf {
namespace {

constexpr double kSampleUs = 20;     // reading the clock takes about 25 ns
constexpr double kSizeUs = 200'000;  // per size and placement, unless -n says otherwise
constexpr double kMinSamples = 5;
constexpr double kMaxSamples = 20'000;
constexpr int kRoundsWithLimits = 4;  // limits and results in turn, so that noise hits both

}  // namespace

Runner::Runner(const Options& options, int n_ranks, const std::vector<Rank>& ranks, Team& team, Progress& progress,
               const LimitMeter* meter, int side)
    : options_(options),
      n_ranks_(n_ranks),
      ranks_(ranks),
      team_(team),
      progress_(progress),
      meter_(meter),
      side_(side) {}

// A call that reads what an earlier one left must not get away with it: no two fills have the same data.
std::uint64_t Runner::next_seed() { return options_.seed + 0x10001 * fills_++; }

Runner::Repetition Runner::choose_repetition(const Workload& workload) {
  constexpr double kEnoughUs = 50;
  constexpr std::uint64_t kMostCalls = 4096;
  workload.run(static_cast<std::uint64_t>(options_.warmup), options_.aggregate);
  std::uint64_t calls = 1;
  double call_us = 0;
  while (true) {
    team_.barrier_apart();
    const auto start = Clock::now();
    workload.run(calls, options_.aggregate);
    const double us = team_.share(elapsed_us(start, Clock::now()));  // rank 0 decides for all
    call_us = std::max(us / static_cast<double>(calls), 1e-3);
    if (us >= kEnoughUs || calls >= kMostCalls) break;
    calls *= 4;
  }
  const double batch = std::max(1.0, std::ceil(kSampleUs / call_us));
  const double fitting = std::clamp(kSizeUs / (call_us * batch), kMinSamples, kMaxSamples);
  const double samples = options_.iterations ? static_cast<double>(*options_.iterations) : fitting;
  const int rounds = meter_ != nullptr ? kRoundsWithLimits : 1;
  return {static_cast<std::uint64_t>(batch), static_cast<std::uint64_t>(std::ceil(samples / rounds)), rounds};
}

void Runner::time_round(const Workload& workload, const Repetition& repetition, std::vector<double>& samples_us) {
  const std::size_t first = samples_us.size();
  samples_us.reserve(first + repetition.samples);  // nothing is allocated while time runs
  team_.barrier_apart();
  workload.run(static_cast<std::uint64_t>(options_.warmup), options_.aggregate);
  auto start = Clock::now();
  for (std::uint64_t i = 0; i < repetition.samples; ++i) {
    workload.run(repetition.calls, options_.aggregate);
    const auto end = Clock::now();
    samples_us.push_back(elapsed_us(start, end));
    progress_.update(end, [&] {
      return fmt::format("{} {} {} B: iteration {} of {}", what_.collective->name, what_.type->name, bytes_,
                         samples_us.size(), repetition.samples * static_cast<unsigned>(repetition.rounds));
    });
    start = Clock::now();
  }
  const auto round = std::span(samples_us).subspan(first);
  team_.max(round);
  for (double& us : round) us /= static_cast<double>(repetition.calls) * options_.aggregate;
}

Figures Runner::summarise(const std::vector<double>& samples_us) const {
  Figures figures;
  figures.time_us = median(samples_us);
  figures.p99_us = percentile(samples_us, 0.99);
  figures.min_us = percentile(samples_us, 0);
  figures.algbw_gbyte_s = figures.time_us > 0 ? static_cast<double>(bytes_) * 1e-3 / figures.time_us : 0;
  figures.busbw_gbyte_s = figures.algbw_gbyte_s * what_.collective->bus_factor(n_ranks_);
  return figures;
}

std::optional<std::uint64_t> Runner::check(const Workload& workload) {
  if (options_.checks == 0) return std::nullopt;
  std::uint64_t wrong = 0;
  for (int i = 0; i < options_.checks; ++i) {
    const std::uint64_t seed = next_seed();
    workload.fill(seed);
    team_.barrier();  // checking takes its time; nobody waits for it inside of a call
    workload.run(1, 1);
    progress_.update(Clock::now(), [&] {
      return fmt::format("{} {} {} B: checking", what_.collective->name, what_.type->name, bytes_);
    });
    wrong += workload.count_wrong(seed);
  }
  return team_.sum(wrong);
}

Result Runner::run(const Case& what, std::size_t bytes, const std::vector<hocketRedOp_t>& ops) {
  const Setting setting = make_setting(*what.collective, bytes, what.type->bytes, n_ranks_, what.root, options_.seed);
  what_ = what;
  bytes_ = total_count(*what.collective, setting) * what.type->bytes;

  const Workload apart(what, setting, Placement::out_of_place, ranks_, ops);
  const Workload in_place(what, setting, what.collective->in_place ? Placement::in_place : Placement::out_of_place,
                          ranks_, ops);
  std::vector<double> apart_us;
  std::vector<double> in_place_us;
  LimitSamples limit;

  apart.fill_for_timing(next_seed());
  const Repetition repetition = choose_repetition(apart);
  for (int round = 0; round < repetition.rounds; ++round) {
    if (meter_ != nullptr) meter_->measure(side_, bytes_, limit);
    apart.fill_for_timing(next_seed());
    time_round(apart, repetition, apart_us);
    if (!what.collective->in_place) continue;
    in_place.fill_for_timing(next_seed());
    time_round(in_place, repetition, in_place_us);
  }

  Result result{what, bytes_, setting.count, summarise(apart_us), std::nullopt, std::nullopt};
  result.out_of_place.wrong = check(apart);
  if (what.collective->in_place) {
    result.in_place = summarise(in_place_us);
    result.in_place->wrong = check(in_place);
  }
  if (meter_ != nullptr) result.limit = limit.summary(bytes_);
  progress_.clear();
  return result;
}

}  // namespace hocket::perf
