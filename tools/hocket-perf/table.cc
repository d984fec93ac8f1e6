// SPDX-License-Identifier: Apache-2.0
#include "table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace hocket::perf {
namespace {

constexpr std::size_t kLatencyBytes = 4096;  // up to here time is counted in hand-overs, from here in bandwidth

// Nine characters, at least three significant digits.
std::string column(const std::optional<double>& value) {
  if (!value) return fmt::format(" {:>9}", "-");
  const int decimals = *value < 10 ? 3 : *value < 1000 ? 2 : *value < 100'000 ? 1 : 0;
  return fmt::format(" {:>9.{}f}", *value, decimals);
}

std::string words(std::initializer_list<const char*> words) {
  std::string out;
  for (const char* word : words) out += fmt::format(" {:>9}", word);
  return out;
}

std::string figures_titles(const Options& options) {
  return words({"time"}) + (options.percentiles ? words({"min", "p99"}) : "") + words({"algbw", "busbw", "#wrong"});
}

std::string figures_units(const Options& options) {
  return words({"(us)"}) + (options.percentiles ? words({"(us)", "(us)"}) : "") + words({"(GB/s)", "(GB/s)", ""});
}

std::string figures_columns(const Options& options, const std::optional<Figures>& figures) {
  const int n = options.percentiles ? 6 : 4;
  if (!figures) {
    std::string none;
    for (int i = 0; i < n; ++i) none += fmt::format(" {:>9}", "N/A");
    return none;
  }
  std::string out = column(figures->time_us);
  if (options.percentiles) out += column(figures->min_us) + column(figures->p99_us);
  out += column(figures->algbw_gbyte_s) + column(figures->busbw_gbyte_s);
  out += figures->wrong ? fmt::format(" {:>9}", *figures->wrong) : fmt::format(" {:>9}", "N/A");
  return out;
}

std::string limit_columns(const Result& result, int n_ranks) {
  if (!result.limit) return "";
  const Limit& limit = *result.limit;
  const LimitRatios ratios = limit_ratios(result, n_ranks);
  std::string out = " ";
  for (const auto& value : {limit.plain_gbyte_s, limit.streaming_gbyte_s, limit.memcpy_gbyte_s, ratios.to_best,
                            ratios.to_streaming, std::optional(limit.hand_over_ns), ratios.hand_overs}) {
    out += column(value);
  }
  return out;
}

std::string checks_text(int checks) {
  return checks == 0 ? "off" : checks == 1 ? "on" : fmt::format("{} times", checks);
}

// Standard output belongs to results as data where they are asked for there.
std::FILE* table_stream(const Options& options) { return options.json == "-" || options.csv == "-" ? stderr : stdout; }

void print_title(const Options& options, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print(table_stream(options), "#{}\n", line);
  std::fflush(table_stream(options));
}

std::string growth_text(const Options& options) {
  return options.step_bytes ? fmt::format("{}(bytes)", *options.step_bytes)
                            : fmt::format("{:g}(factor)", options.step_factor);
}

}  // namespace

LimitRatios limit_ratios(const Result& result, int n_ranks) {
  LimitRatios ratios;
  if (!result.limit || n_ranks != 2) return ratios;
  const Figures& ours = result.in_place ? *result.in_place : result.out_of_place;
  const Limit& limit = *result.limit;
  if (limit.plain_gbyte_s && limit.streaming_gbyte_s) {
    ratios.to_best = ours.algbw_gbyte_s / std::max(*limit.plain_gbyte_s, *limit.streaming_gbyte_s);
    ratios.to_streaming = ours.algbw_gbyte_s / *limit.streaming_gbyte_s;
  }
  if (result.bytes <= kLatencyBytes && limit.hand_over_ns > 0)
    ratios.hand_overs = ours.time_us * 1e3 / limit.hand_over_ns;
  return ratios;
}

void print_header(const Options& options, const std::vector<RankPlace>& places, int n_cpus) {
  std::FILE* to = table_stream(options);
  int version = 0;
  hocketGetVersion(&version);
  fmt::print(to, "# hocket-perf {}.{}.{}, library {}.{}.{}\n", HOCKET_MAJOR, HOCKET_MINOR, HOCKET_PATCH,
             version / 10000, version / 100 % 100, version % 100);
  fmt::print(to,
             "# nRanks {} nThreads {} minBytes {} maxBytes {} step: {} warmup iters: {} iters: {} agg iters: {} "
             "validation: {} calls: {}\n#\n",
             places.size(), options.threads_per_process(), options.min_bytes, options.max_bytes, growth_text(options),
             options.warmup, options.iterations ? std::to_string(*options.iterations) : "auto", options.aggregate,
             checks_text(options.checks), options.host_stream ? "host stream" : "blocking");
  fmt::print(to, "# Ranks ({} CPUs allowed)\n", n_cpus);
  constexpr std::size_t kMostShown = 32;
  for (std::size_t i = 0; i < std::min(places.size(), kMostShown); ++i) {
    const RankPlace& place = places[i];
    fmt::print(to, "#  Rank {:>3} Pid {:>6} on {} CPU {}{}\n", place.rank, place.pid, place.host.data(), place.cpu,
               options.pin ? " (pinned)" : "");
  }
  if (places.size() > kMostShown) fmt::print(to, "#  and {} more\n", places.size() - kMostShown);
  std::fflush(to);
}

void print_columns(const Options& options, const Collective& collective) {
  const std::size_t width = figures_titles(options).size();
  const bool limits = options.limits && collective.name == "all_reduce";
  const std::string over_limits = limits ? fmt::format("  {:^69}", "limit of two cores") : "";
  const std::string limit_titles =
      limits ? words({"", "plain", "stream", "memcpy", "of best", "of stream", "hand-over", "hand-overs"}).substr(9)
             : "";
  const std::string limit_units =
      limits ? words({"", "(GB/s)", "(GB/s)", "(GB/s)", "", "", "(ns)", "in time"}).substr(9) : "";
  print_title(options, "");
  print_title(options, fmt::format(" {}", collective.name));
  print_title(options, fmt::format("{:49}{:^{}}  {:^{}}{}", "", "out-of-place", width, "in-place", width, over_limits));
  print_title(options, fmt::format("{:>12} {:>12} {:>9} {:>7} {:>5}{}  {}{}", "size", "count", "type", "redop", "root",
                                   figures_titles(options), figures_titles(options), limit_titles));
  print_title(options, fmt::format("{:>12} {:>12} {:>9} {:>7} {:>5}{}  {}{}", "(B)", "(elements)", "", "", "",
                                   figures_units(options), figures_units(options), limit_units));
}

void print_row(const Options& options, const Result& result, int n_ranks) {
  std::FILE* to = table_stream(options);
  const bool typed = result.what.collective->sizing != Sizing::nothing;
  fmt::print(to, " {:>12} {:>12} {:>9} {:>7} {:>5}{}  {}{}\n", result.bytes, result.count,
             typed ? result.what.type->name : "none", op_name(result.what.op), result.what.root,
             figures_columns(options, result.out_of_place), figures_columns(options, result.in_place),
             limit_columns(result, n_ranks));
  std::fflush(to);
}

std::uint64_t total_wrong(const std::vector<Result>& results) {
  std::uint64_t wrong = 0;
  for (const Result& result : results) {
    wrong += result.out_of_place.wrong.value_or(0);
    if (result.in_place) wrong += result.in_place->wrong.value_or(0);
  }
  return wrong;
}

void print_footer(const Options& options, const std::vector<Result>& results) {
  std::FILE* to = table_stream(options);
  double busbw = 0;
  int n = 0;
  for (const Result& result : results) {
    busbw += result.out_of_place.busbw_gbyte_s;
    ++n;
    if (!result.in_place) continue;
    busbw += result.in_place->busbw_gbyte_s;
    ++n;
  }
  const std::uint64_t wrong = total_wrong(results);
  fmt::print(to, "#\n# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print(to, "# Avg bus bandwidth    : {:.6g}\n#\n", n == 0 ? 0.0 : busbw / n);
  std::fflush(to);
}

}  // namespace hocket::perf
