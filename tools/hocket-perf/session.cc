// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "cpus.h"
#include "errors.h"
#include "files.h"
#include "progress.h"
#include "runner.h"
#include "svg.h"
#include "table.h"

namespace hocket::perf {
namespace {

std::vector<int> roots(const Options& options, const Collective& collective, int n_ranks) {
  if (!collective.rooted) return {-1};
  if (options.root) return {*options.root};
  std::vector<int> all;
  for (int rank = 0; rank < n_ranks; ++rank) all.push_back(rank);
  return all;
}

std::vector<Case> cases_of(const Options& options, const Collective& collective, int n_ranks) {
  const std::vector<Op> ops = collective.reduces ? options.ops : std::vector<Op>{Op::none};
  std::vector<const DataType*> types = options.types;
  if (collective.sizing == Sizing::nothing) types.resize(1);
  std::vector<Case> out;
  for (const DataType* type : types) {
    for (Op op : ops) {
      if (!supported(type->type, op)) continue;
      for (int root : roots(options, collective, n_ranks)) out.push_back({&collective, type, op, root});
    }
  }
  return out;
}

std::vector<RankPlace> gather_places(const std::vector<Rank>& ranks, Team& team) {
  struct Mine {
    RankPlace first;
    int n;
  } mine{{ranks.front().rank(), static_cast<int>(getpid()), sched_getcpu(), {}}, static_cast<int>(ranks.size())};
  const std::string host = host_name();
  std::copy_n(host.begin(), std::min(host.size(), mine.first.host.size() - 1), mine.first.host.begin());
  std::vector<RankPlace> places;
  for (const Mine& member : team.all_gather(mine)) {
    for (int i = 0; i < member.n; ++i) {
      places.push_back(member.first);
      places.back().rank += i;
    }
  }
  return places;
}

bool measures_limits(const Session& session, const Collective& collective) {
  return session.options->limits && collective.name == "all_reduce";
}

void run_case(const Session& session, const Case& what, const std::vector<Rank>& ranks, Team& team, Progress& progress,
              std::vector<Result>& results) {
  const Options& options = *session.options;
  const bool limits = measures_limits(session, *what.collective);
  Runner runner(options, session.n_ranks, ranks, team, progress, limits ? session.meter : nullptr, team.member());
  std::vector<hocketRedOp_t> ops;
  for (const Rank& rank : ranks) ops.push_back(rank.acquire_op(what.op, *what.type));

  const bool sized = what.collective->sizing != Sizing::nothing;
  const std::vector<std::size_t> all_sizes = sized ? sizes(options) : std::vector<std::size_t>{0};
  for (std::size_t i = 0; i < all_sizes.size(); ++i) {
    results.push_back(runner.run(what, all_sizes[i], ops));
    if (limits && session.meter == nullptr) results.back().limit = session.limits[i];
    if (team.member() == 0) print_row(options, results.back(), session.n_ranks);
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].release_op(what.op, ops[i]);
}

std::string subtitle(const Session& session) {
  const Options& options = *session.options;
  return fmt::format("{} ranks ({} processes, threads in each: {}), {} CPUs allowed, {}", session.n_ranks,
                     options.from_launcher() ? session.n_ranks : options.n_processes(), options.threads_per_process(),
                     session.cpus.size(), cpu_model());
}

bool write_files(const Session& session, const std::vector<Result>& results) {
  const Options& options = *session.options;
  const int n_cpus = static_cast<int>(session.cpus.size());
  bool good = true;
  if (!options.json.empty()) good &= write_file(options.json, to_json(options, results, session.n_ranks, n_cpus));
  if (!options.csv.empty()) good &= write_file(options.csv, to_csv(results));
  if (!options.svg.empty()) good &= write_file(options.svg, to_svg(results, subtitle(session)));
  return good;
}

}  // namespace

int run_session(const Session& session, const std::vector<Rank>& ranks, Team& team) {
  const Options& options = *session.options;
  const bool reports = team.member() == 0;
  Progress progress(reports);
  const std::vector<RankPlace> places = gather_places(ranks, team);
  if (reports) print_header(options, places, static_cast<int>(session.cpus.size()));

  std::vector<Result> results;
  for (const Collective* collective : options.collectives) {
    const std::vector<Case> cases = cases_of(options, *collective, session.n_ranks);
    if (reports && !cases.empty()) print_columns(options, *collective);
    for (const Case& what : cases) run_case(session, what, ranks, team, progress, results);
  }

  int code = total_wrong(results) == 0 ? kExitOk : kExitWrong;
  if (reports) {
    print_footer(options, results);
    if (!write_files(session, results)) code = kExitError;
  }
  return team.share(code);
}

}  // namespace hocket::perf
