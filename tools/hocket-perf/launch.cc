// SPDX-License-Identifier: Apache-2.0
// Who is who:  rank = process * threads + thread.  A member of the team is a thread that makes calls: one per rank, or
// with
// --single-thread one per process. Processes are forked before anything else happens, so no thread or lock is copied.
// The unique id is made by rank 0's own process, because the meeting place lives in it.
#include "launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "cpus.h"
#include "errors.h"
#include "session.h"
#include "supervise.h"

namespace hocket::perf {
namespace {

hocketConfig_t make_config(const Options& options) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.commName = "hocket-perf";
  if (options.deterministic) config.deterministic = 1;
  if (!options.algorithm.empty()) config.algorithm = options.algorithm.c_str();
  if (options.channels > 0) config.channels = options.channels;
  if (options.slot_bytes > 0) config.slotBytes = options.slot_bytes;
  if (options.timeout_s) config.timeoutMs = static_cast<int>(std::ceil(*options.timeout_s * 1000));
  return config;
}

// Runs body(0) … body(n - 1) at once; the last one, where there is only one, on the caller's thread: easier on
// debuggers.
template <class Body>
void run_threads(int n, Body body) {
  if (n == 1) return body(0);
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

struct LocalJob {
  const Options& options;
  Session session;
  const SharedBoard& board;
};

hocketComm_t init_rank(const Options& options, const hocketUniqueId& id, int rank) {
  hocketComm_t comm = nullptr;
  hocketConfig_t config = make_config(options);
  must(hocketCommInitRankConfig(&comm, options.n_local_ranks(), id, rank, &config), "hocketCommInitRankConfig", rank,
       comm);
  return comm;
}

// All ranks of the only process.
std::vector<hocketComm_t> init_all(const Options& options) {
  std::vector<hocketComm_t> comms(static_cast<std::size_t>(options.n_local_ranks()));
  hocketConfig_t config = make_config(options);
  must(hocketCommInitAllConfig(comms.data(), options.n_local_ranks(), nullptr, &config), "hocketCommInitAllConfig", -1);
  return comms;
}

hocketUniqueId agree_on_id(Team& team) {
  hocketUniqueId id{};
  if (team.member() == 0) must(hocketGetUniqueId(&id), "hocketGetUniqueId", 0);
  return team.share(id);
}

// A thread per rank. `comms`: of this process, where they are made at once.
int run_rank_per_thread(const LocalJob& job, int process, const std::vector<hocketComm_t>& comms) {
  const Options& options = job.options;
  int code = kExitOk;
  run_threads(options.threads_per_process(), [&](int thread) {
    const int rank = process * options.threads_per_process() + thread;
    if (options.pin) pin_thread(job.session.cpus, rank);
    const std::unique_ptr<Team> team = job.board.join(rank);
    const hocketComm_t comm =
        comms.empty() ? init_rank(options, agree_on_id(*team), rank) : comms[static_cast<std::size_t>(thread)];
    std::vector<Rank> ranks;
    ranks.emplace_back(options, rank, comm);
    const int mine = run_session(job.session, ranks, *team);
    if (thread == 0) code = mine;
  });
  return code;
}

// One thread for all ranks of the process.
int run_single_thread(const LocalJob& job, int process, std::vector<hocketComm_t> comms) {
  const Options& options = job.options;
  const int n = options.threads_per_process();
  const std::unique_ptr<Team> team = job.board.join(process);
  if (comms.empty()) {
    const hocketUniqueId id = agree_on_id(*team);
    comms.resize(static_cast<std::size_t>(n));
    // Init of one rank waits for the others, so it takes a thread each.
    run_threads(n, [&](int i) { comms[static_cast<std::size_t>(i)] = init_rank(options, id, process * n + i); });
  }
  if (options.pin) pin_thread(job.session.cpus, process);
  std::vector<Rank> ranks;
  ranks.reserve(comms.size());
  for (int i = 0; i < n; ++i) ranks.emplace_back(options, process * n + i, comms[static_cast<std::size_t>(i)]);
  return run_session(job.session, ranks, *team);
}

int run_process(const LocalJob& job, int process) {
  std::vector<hocketComm_t> comms;
  if (job.options.n_processes() == 1) comms = init_all(job.options);
  return job.options.single_thread ? run_single_thread(job, process, std::move(comms))
                                   : run_rank_per_thread(job, process, comms);
}

int launch_local(const Options& options) {
  const int n_ranks = options.n_local_ranks();
  Session session{&options, n_ranks, allowed_cpus(), nullptr, {}};
  std::optional<LimitMeter> meter;
  if (options.limits) {
    if (session.cpus.size() < 2) {
      end_with_error("--limits needs two allowed CPUs and there is one; allow more (taskset, the container's cpuset)");
    }
    if (n_ranks == 2 && !options.single_thread) {
      session.meter = &meter.emplace(options.max_bytes, session.cpus);
    } else {
      session.limits = measure_limits(sizes(options), session.cpus);
    }
  }
  const SharedBoard board(options.single_thread ? options.n_processes() : n_ranks,
                          static_cast<int>(session.cpus.size()));
  const LocalJob job{options, session, board};
  if (options.n_processes() == 1) return run_process(job, 0);
  return supervise(options.n_processes(), options.threads_per_process(),
                   [&](int process) { return run_process(job, process); });
}

int launch_from_environment(const Options& options) {
  hocketComm_t comm = nullptr;
  hocketConfig_t config = make_config(options);
  const hocketResult_t result = hocketCommInitFromEnv(&comm, &config);
  if (result == hocketInvalidArgument || result == hocketInvalidUsage) {
    fmt::print(stderr,
               "hocket-perf: neither -p nor -t given, so a launcher should have started this; to start local ranks: "
               "hocket-perf … -p 2\n");
  }
  must(result, "hocketCommInitFromEnv", -1);
  int rank = 0;
  int n_ranks = 0;
  must(hocketCommUserRank(comm, &rank), "hocketCommUserRank", -1);
  must(hocketCommCount(comm, &n_ranks), "hocketCommCount", rank);
  if (options.root.value_or(0) >= n_ranks) {
    end_with_error(fmt::format("-r {}: there are {} ranks", *options.root, n_ranks));
  }
  const Session session{&options, n_ranks, allowed_cpus(), nullptr, {}};
  if (options.pin) pin_thread(session.cpus, rank);
  const std::unique_ptr<Team> team = make_communicator_team(comm, rank, n_ranks);
  std::vector<Rank> ranks;
  ranks.emplace_back(options, rank, comm);
  return run_session(session, ranks, *team);
}

}  // namespace

int launch(const Options& options) {
  return options.from_launcher() ? launch_from_environment(options) : launch_local(options);
}

}  // namespace hocket::perf
