// SPDX-License-Identifier: Apache-2.0
// One rank of a communicator: owns its membership, connections, plans and the calls in flight. Members are declared
// parents first, so that they die in reverse.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/doorbell.h"
#include "base/params.h"
#include "comm/call_history.h"
#include "comm/custom_ops.h"
#include "comm/hot_calls.h"
#include "comm/mapped_buffers.h"
#include "comm/plan_cache.h"
#include "comm/store_choice.h"
#include "control/control.h"
#include "enqueue/request.h"
#include "exec/cpu_executor.h"
#include "exec/wait.h"
#include "shm/shm_transport.h"

namespace hocket {

class Communicator final : public ControlEvents, public WaitMonitor {
 public:
  Communicator(int rank, int n_ranks, Settings settings);
  ~Communicator() override;

  // Meets the other ranks; blocks within the init time limit. abort() from another thread ends it.
  Status connect(const hocketUniqueId& id);
  // The same for all ranks in this process, at once.
  static Status connect_all(const std::vector<std::shared_ptr<Communicator>>& communicators);

  int rank() const { return rank_; }
  int n_ranks() const { return n_ranks_; }
  const Settings& settings() const { return settings_; }
  std::string describe();

  // ---- Calls. One thread at a time (the handle table sees to it), in ticket order. ----

  // Runs one validated call to its end on this thread.
  Status run(Request& request);

  // The fast path: a small call that was made before with the same shape, ready to run with `request`'s buffers; null when
  // it takes the general way, which validates.
  HotCall* find_hot(const Request& request) {
    HotCall* const call = hot_calls_.find(request);
    return call != nullptr && call->accepts(request) && !failed_.load(std::memory_order_acquire) && !finalized() ? call
                                                                                                                 : nullptr;
  }
  Status run_hot(HotCall& call, const Request& request);
  // A send or receive, if it can be done without waiting.
  bool try_hot_message(HotCall& call, const Request& request);

  // The same in pieces, for groups: begin() gives an execution to advance, or null when there is nothing to move; finish()
  // takes it back.
  Result<Execution*> begin(Request& request);
  void finish(Execution* execution);
  Doorbells& bells() { return bells_; }
  const WaitPolicy& wait_policy() const { return wait_policy_; }
  // Ends the call with `error`: the communicator is aborted from now on and the peers are told.
  Error end_with(const Error& error);

  CustomOps& custom_ops() { return custom_ops_; }

  // Order of calls issued from different streams: a ticket is drawn when a call is issued and waited for before it runs.
  std::uint64_t draw_ticket() { return issued_++; }
  void await_ticket(std::uint64_t ticket);
  void pass_ticket();
  // No ticket is ever drawn by a stream: blocking calls need none.
  bool streams_used() const { return streams_used_; }
  void use_streams() { streams_used_ = true; }
  std::uint64_t pending() const { return issued_ - completed_.load(std::memory_order_acquire); }

  // ---- State. Any thread. ----

  // The first error, or success.
  Status state() const;
  void abort();
  // Waits for work on streams; false when it has not ended within `limit`.
  bool drain(std::chrono::milliseconds limit);
  void finalize() { finalized_.store(true, std::memory_order_relaxed); }  // by the one calling thread
  bool finalized() const { return finalized_.load(std::memory_order_relaxed); }

  // WaitMonitor
  Status check(std::chrono::steady_clock::duration waited) override;

  // ControlEvents
  CallReport report(std::uint64_t sequence) override;
  void failed(const Error& error) override;
  void stall_explained(std::uint64_t sequence, const std::string& text) override;

 private:
  void attach(std::shared_ptr<Mapping> memory);
  void publish_cpus();
  void read_cpus();
  Status init_barrier();
  Result<CallData> prepare(const Request& request, const Program*& program, PlanKey& key);
  bool wants_agreement(const Request& request, const PlanKey& key) const;
  Status start_after_agreement(Execution& execution, const Request& request, const CallData& data, const Program& program,
                               PlanKey key);
  PlanKey plan_key(const Request& request) const;
  Status apply_op(const Request& request, CallData& data, PlanKey& key) const;
  static std::uint32_t fingerprint(const CallRecord& record);
  static std::uint32_t message_fingerprint(const Request& request);
  void make_hot(const Request& request, const Program& program, const CallData& data);
  template <class Ready>
  Status await(Ready&& ready);
  Status walk(Execution& execution);
  void note_call(const Request& request);
  int mismatched_peer() const;
  Status explain_wait(std::chrono::steady_clock::duration waited);
  std::string call_in_progress() const;
  std::string name() const;

  const int rank_;
  const int n_ranks_;
  const Settings settings_;
  const ShmLayout layout_;

  mutable std::mutex state_mutex_;
  std::atomic<bool> failed_{false};
  Error first_error_;
  std::string stall_text_;  // last explanation, for the time-out's message

  // The set-up below is complete; until then only the thread in init touches it.
  bool attached() const { return attached_.load(std::memory_order_acquire); }
  std::atomic<bool> attached_{false};
  std::unique_ptr<ControlLink> link_;
  std::vector<RankInfo> ranks_;
  std::unique_ptr<ShmTransport> transport_;
  Doorbells bells_;
  WaitPolicy wait_policy_;
  int n_cpus_ = 1;
  std::unique_ptr<PlanCache> plans_;
  std::unique_ptr<MappedBuffers> mapped_buffers_;
  BufferAgreement::Ports agreement_ports_;
  CustomOps custom_ops_;

  HotCalls hot_calls_;
  StoreChoice store_choice_;
  CallHistory history_;
  std::uint64_t sequence_ = 0;  // of collective calls
  // For messages about a wait: the call that began last, by the general way or the fast one.
  const Request* current_ = nullptr;
  HotCall* hot_ = nullptr;
  std::uint32_t hot_fingerprint_ = 0;
  std::atomic<bool> in_call_{false};
  std::atomic<bool> in_message_{false};
  std::vector<std::unique_ptr<Execution>> executions_;  // those in flight first
  BufferAgreement agreement_;  // of the one collective call in progress
  std::size_t n_in_flight_ = 0;
  std::chrono::steady_clock::time_point last_report_{};
  bool mismatch_reported_ = false;

  bool streams_used_ = false;
  std::uint64_t issued_ = 0;
  std::atomic<std::uint64_t> completed_{0};
  std::atomic<bool> finalized_{false};
};

}  // namespace hocket
