// SPDX-License-Identifier: Apache-2.0
// The control plane as a communicator sees it: joining, who is alive, "what are you doing?", telling everyone about a
// failure, passing file descriptors. It carries no collective data. One quiet thread per process serves every communicator
// of the process (docs/concepts/control-plane.md).
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "hocket/hocket.h"

namespace hocket {

// A call as ranks compare it. `sequence` counts the collective calls of a communicator from 1. Plain bytes: ranks of one
// job run the same version (checked when they join).
struct CallRecord {
  std::uint64_t sequence = 0;
  std::uint8_t collective = 0;  // Collective, or kCollectiveCount + for v-forms: see call_text()
  std::uint8_t vector_form = 0;
  std::uint8_t datatype = 0;
  std::uint8_t unused = 0;
  std::int32_t op = 0;
  std::int32_t root = 0;
  std::uint32_t unused2 = 0;
  std::uint64_t count = 0;        // as passed to the call; of v-forms a hash where all ranks must agree, else 0

  friend bool operator==(const CallRecord&, const CallRecord&) = default;
};

// "AllReduce(count 1024, Float32, Sum)": the name in the C API and the arguments that ranks must agree on.
std::string call_text(const CallRecord& call);

// A rank's answer to "what are you doing?" about collective call `sequence`.
struct CallReport {
  std::uint64_t current_sequence = 0;   // last collective call that this rank has entered
  bool in_call = false;                 // it is inside a call now (collective or point-to-point)
  bool point_to_point = false;          // that call is a send, a receive or a group of them
  std::optional<CallRecord> record;     // its call at the asked sequence, if entered and still remembered
};

struct RankInfo {
  int rank = 0;
  pid_t pid = 0;
  std::string host;  // host name, for messages only

  std::string text() const { return fmt::format("rank {} (pid {}, host {})", rank, pid, host); }
};

// What the control thread asks of and tells a communicator. Called on the control thread; must not block, must not call
// back into ControlLink.
class ControlEvents {
 public:
  virtual ~ControlEvents() = default;
  virtual CallReport report(std::uint64_t sequence) = 0;
  // A rank died, left in the middle, aborted or failed, or ranks called different things. First one wins.
  virtual void failed(const Error& error) = 0;
  // Answer to report_stall(): who has not come to the call yet, as text ("rank 2 (pid 7, host a) is in call 6
  // AllReduce(...)"), and for how the wait should be described. Repeated at most once a second.
  virtual void stall_explained(std::uint64_t sequence, const std::string& text) = 0;
};

struct JoinOptions {
  int n_ranks = 1;
  int rank = 0;
  hocketUniqueId id{};
  int timeout_ms = 60000;           // 0: no limit
  // What must be equal on all ranks: "name=value" lines. A difference fails everyone: "rank 1 has X, rank 0 has Y".
  std::string settings;
  std::size_t shared_bytes = 0;     // size of the memory that all ranks map
  const std::atomic<bool>* cancel = nullptr;  // another thread aborts the join
};

// One rank's membership. Thread-safe. The destructor leaves at once (other ranks are told that this rank left); no event is
// delivered after it returns.
class ControlLink {
 public:
  virtual ~ControlLink() = default;

  virtual const std::vector<RankInfo>& ranks() const = 0;
  // Memory shared by all ranks of the host: a memfd with its bytes reserved. Empty after join_locally() and when
  // JoinOptions::shared_bytes was 0.
  virtual UniqueFd take_shared_memory() = 0;

  // From the moment of this call events are delivered. Called once.
  virtual void start(ControlEvents* events) = 0;

  // This rank has waited in collective call `sequence` (0: point-to-point) for the ranks in `awaited` since `waited_ms`.
  // Starts an inquiry among all ranks; its verdict arrives as failed() on every rank (mismatch, gone) or as
  // stall_explained() here. Cheap; never blocks.
  virtual void report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int waited_ms) = 0;

  // This rank saw data that do not fit its call `sequence`: the same inquiry at once, and failed() on every rank in any
  // case, with `fallback` when the inquiry finds no difference.
  virtual void report_mismatch(std::uint64_t sequence, const Error& fallback) = 0;

  // Tells every other rank to fail with `error` (abort, local failure). Never blocks.
  virtual void broadcast_failure(const Error& error) = 0;

  // The memory of hocketMemAlloc number `allocation` of another rank's process. Blocks until it is here, at most
  // `timeout_ms`; asks through the control threads.
  virtual Result<UniqueFd> fetch_allocation(int rank, std::uint64_t allocation, int timeout_ms) = 0;

  // True once the rank has said good-bye (destroyed its communicator) or is dead.
  virtual bool has_left(int rank) const = 0;
};

// Makes a meeting place in this process.
Result<hocketUniqueId> make_unique_id();

// Forgets the meeting of an id that nobody will join, such as that of a communicator with a single rank, if this process holds
// it. Those who wait there are told. An id that is none is refused.
Status end_meeting(const hocketUniqueId& id);

// Meets the other ranks. Blocks, at most timeout_ms: the error lists the missing ranks.
Result<std::unique_ptr<ControlLink>> join(const JoinOptions& options);

// All ranks in this process: no sockets, no descriptors.
Result<std::vector<std::unique_ptr<ControlLink>>> join_locally(int n_ranks);

// Rank, size and meeting place from a launcher's environment (torchrun, Open MPI, MPICH, srun, HOCKET_RANK). Rank 0 makes
// the meeting place under a name that all ranks derive from the job's identity; HOCKET_ROOT=unix:NAME fixes it.
struct Launch {
  int rank = 0;
  int n_ranks = 1;
  int local_rank = 0;
  hocketUniqueId id{};
  std::string launcher;  // "torchrun", "Open MPI", ...
};
Result<Launch> launch_from_environment();

// Provided by the owner of hocketMemAlloc'd memory: a duplicate of the descriptor of allocation `allocation`, if it lives.
using AllocationLookup = UniqueFd (*)(std::uint64_t allocation);
void set_allocation_lookup(AllocationLookup lookup);

}  // namespace hocket
