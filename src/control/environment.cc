// SPDX-License-Identifier: Apache-2.0
// Launchers, in the order in which they are looked for. The nearest one wins: mpirun inside a Slurm job sees Slurm's
// variables of the job script too, and a HOCKET_RANK is always meant.
#include "control/environment.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <utility>
#include <vector>

#include "control/auth.h"
#include "control/meeting_place.h"
#include "control/process.h"

namespace hocket {
namespace control {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* n_ranks;
  const char* local_rank;     // nullptr: none
  const char* local_n_ranks;  // nullptr: none
  const char* n_hosts;        // nullptr: none
  std::array<const char*, 5> identity;  // what makes this job different from others; nullptr: no more
};

// MASTER_PORT is taken by torchrun's own store; its number serves as a name only.
constexpr Launcher kLaunchers[] = {
    {"HOCKET_RANK", "HOCKET_RANK", "HOCKET_NRANKS", "HOCKET_LOCAL_RANK", nullptr, nullptr, {}},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr, {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, {}},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr,
     {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr, "SLURM_STEP_NUM_NODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

class Reader {
 public:
  explicit Reader(const Surroundings& surroundings) : surroundings_(surroundings) {}

  std::optional<std::string> text(const char* name) const {
    if (name == nullptr) return std::nullopt;
    auto value = surroundings_.variable(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }
  // A whole number that is not negative.
  Result<std::optional<int>> number(const char* name) const {
    const auto value = text(name);
    if (!value) return std::optional<int>();
    int result = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), result);
    if (error != std::errc() || end != value->data() + value->size() || result < 0) {
      return fail(hocketInvalidArgument, "init from environment: {} is '{}'; it is a whole number, 0 or more", name,
                  printable(value->substr(0, 64)));
    }
    return std::optional<int>(result);
  }

 private:
  const Surroundings& surroundings_;
};

std::string looked_for() {
  std::string text;
  for (const Launcher& launcher : kLaunchers) {
    text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", launcher.rank, launcher.n_ranks);
    if (std::string_view(launcher.name) != launcher.rank) text += fmt::format(" ({})", launcher.name);
  }
  return text;
}

Result<const Launcher*> find_launcher(const Reader& read) {
  const char* present = nullptr;
  const char* absent = nullptr;
  for (const Launcher& launcher : kLaunchers) {
    const bool rank = read.text(launcher.rank).has_value();
    const bool n_ranks = read.text(launcher.n_ranks).has_value();
    if (rank && n_ranks) return &launcher;
    if (rank == n_ranks || present != nullptr) continue;
    present = rank ? launcher.rank : launcher.n_ranks;
    absent = rank ? launcher.n_ranks : launcher.rank;
    // What Hocket's own variables say is meant: another launcher does not make up for a missing half.
    if (&launcher == kLaunchers) break;
  }
  if (present != nullptr) {
    return fail(hocketInvalidUsage, "init from environment: {} is set ('{}') but {} is not; set both", present,
                printable(read.text(present)->substr(0, 64)), absent);
  }
  return fail(hocketInvalidUsage,
              "init from environment: no launcher found; looked for {}; start the program with one of them or set HOCKET_RANK "
              "and HOCKET_NRANKS",
              looked_for());
}

Result<int> required(const Reader& read, const char* name) {
  auto value = read.number(name);
  if (!value) return tl::make_unexpected(std::move(value).error());
  return **value;  // find_launcher() saw it
}

// The text of HOCKET_JOB, else what the launcher calls the job, else the launcher's process (parent of all ranks).
std::vector<std::string> identity_of(const Launcher& launcher, const Reader& read, const Surroundings& surroundings) {
  std::vector<std::string> identity{launcher.name};
  if (const auto job = read.text("HOCKET_JOB")) {
    identity.push_back("job=" + *job);
    return identity;
  }
  for (const char* const name : launcher.identity) {
    if (const auto value = read.text(name)) identity.push_back(fmt::format("{}={}", name, *value));
  }
  if (identity.size() == 1) identity.push_back(fmt::format("parent={}", surroundings.parent));
  return identity;
}

Result<std::string> fixed_name(const Reader& read) {
  const auto root = read.text("HOCKET_ROOT");
  if (!root) return std::string();
  constexpr std::string_view kScheme = "unix:";
  std::string name = root->starts_with(kScheme) ? root->substr(kScheme.size()) : std::string();
  if (name.starts_with('@')) name.erase(0, 1);  // as messages print it
  if (name.empty() || name.size() > kMaxPlaceNameBytes) {
    return fail(hocketInvalidArgument,
                "init from environment: HOCKET_ROOT is '{}'; it is unix:NAME with a name of 1 to {} bytes", printable(root->substr(0, 128)),
                kMaxPlaceNameBytes);
  }
  return name;
}

// Every rank derives the same from the same variables.
Result<MeetingPlace> place_of(const Launcher& launcher, const Reader& read, const Surroundings& surroundings) {
  auto name = fixed_name(read);
  if (!name) return tl::make_unexpected(std::move(name).error());
  std::vector<std::string> parts = identity_of(launcher, read, surroundings);
  // With a fixed name the name is the identity: ranks need not be children of one process.
  if (!name->empty()) parts = {"root=" + *name, "job=" + read.text("HOCKET_JOB").value_or("")};
  parts.push_back(fmt::format("user={}", surroundings.user));
  parts.push_back(fmt::format("generation={}", surroundings.generation));

  MeetingPlace place;
  place.origin = MeetingPlace::Origin::derived;
  derive(place.meeting, "hocket meeting", parts);
  const std::string job_secret = read.text("HOCKET_SECRET").value_or("");
  parts.push_back("secret=" + job_secret);
  derive(place.secret, "hocket secret", parts);
  place.name = *name;
  if (name->empty()) {
    std::array<std::uint8_t, 16> hash;
    derive(hash, "hocket name", parts);
    place.name = "hocket-" + to_hex(hash);
  }
  return place;
}

}  // namespace

Result<Launch> launch_from(const Surroundings& surroundings) {
  const Reader read(surroundings);
  const auto launcher = find_launcher(read);
  if (!launcher) return tl::make_unexpected(launcher.error());
  const Launcher& used = **launcher;
  const auto rank = required(read, used.rank);
  if (!rank) return tl::make_unexpected(rank.error());
  const auto n_ranks = required(read, used.n_ranks);
  if (!n_ranks) return tl::make_unexpected(n_ranks.error());
  if (*rank >= *n_ranks) {
    return fail(hocketInvalidArgument, "init from environment: {} is {} but {} is {}; a rank is 0 to n_ranks - 1", used.rank,
                *rank, used.n_ranks, *n_ranks);
  }
  const auto local_rank = read.number(used.local_rank);
  if (!local_rank) return tl::make_unexpected(local_rank.error());
  const auto local_n_ranks = read.number(used.local_n_ranks);
  if (!local_n_ranks) return tl::make_unexpected(local_n_ranks.error());
  if (*local_n_ranks && **local_n_ranks < *n_ranks) {
    return fail(hocketInvalidUsage,
                "init from environment: {} of {} ranks ({} of {}) are on this host; ranks on several hosts are not in this version",
                **local_n_ranks, *n_ranks, used.local_n_ranks, used.n_ranks);
  }
  const auto n_hosts = read.number(used.n_hosts);
  if (!n_hosts) return tl::make_unexpected(n_hosts.error());
  if (n_hosts->value_or(1) > 1) {
    return fail(hocketInvalidUsage, "init from environment: {} is {}; ranks on several hosts are not in this version",
                used.n_hosts, **n_hosts);
  }
  const auto place = place_of(used, read, surroundings);
  if (!place) return tl::make_unexpected(place.error());

  Launch launch;
  launch.rank = *rank;
  launch.n_ranks = *n_ranks;
  launch.local_rank = local_rank->value_or(*rank);
  launch.id = encode(*place);
  launch.launcher = used.name;
  return launch;
}

}  // namespace control

Result<Launch> launch_from_environment() {
  // Counts alike on all ranks because each makes its communicators in the same order. Relaxed: only the number matters.
  static std::atomic<std::uint64_t> generation{0};
  control::Surroundings surroundings;
  surroundings.variable = [](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  surroundings.user = ::geteuid();
  surroundings.parent = ::getppid();
  surroundings.generation = generation.fetch_add(1, std::memory_order_relaxed);
  return control::launch_from(surroundings);
}

}  // namespace hocket
