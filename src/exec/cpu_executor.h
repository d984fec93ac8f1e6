// SPDX-License-Identifier: Apache-2.0
// Walks a program on the CPU. One execution is one call in flight on one rank; its lanes are small state machines that
// advance while slots allow and never block, so one thread can progress many executions (groups) without deadlock.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/doorbell.h"
#include "exec/blocks.h"
#include "exec/move.h"
#include "exec/prologue.h"
#include "exec/program.h"

namespace hocket {

// The data of one call.
struct CallData {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  BlockMap input_blocks;
  BlockMap output_blocks;
  std::size_t element_bytes = 1;
  std::size_t partial_bytes = 1;
  // Reductions: the kernel and what it needs.
  MoveFn move = nullptr;
  int divisor = 1;
  const void* scale = nullptr;
  hocketUserReduceFn user_fn = nullptr;
  void* user_data = nullptr;
  // How the output and the slots' bulk areas are written.
  Store output_store = Store::cached;
  Store slot_store = Store::cached;
  std::size_t bytes = 0;  // of the larger buffer
  std::chrono::steady_clock::time_point begun{};  // of calls that are timed
  // Stamped on every transfer. When not every rank knows all counts, each transfer's own size is mixed in.
  std::uint32_t fingerprint = 0;
  bool fingerprint_by_block = false;
  // Peers' buffers as mapped here, by rank, for plans that need them.
  const std::byte* const* peer_inputs = nullptr;
  std::byte* const* peer_outputs = nullptr;
};

class Execution {
 public:
  // `program` and what `data` points to outlive the execution. Reuses the memory of earlier calls.
  void start(const Program& program, const CallData& data, Doorbells& bells);

  // Runs `prologue` first; when it is done, `start_after` starts this execution.
  template <class StartAfter>
  void start_later(Prologue& prologue, StartAfter start_after) {
    active_.clear();
    prologue_ = &prologue;
    start_after_ = std::move(start_after);
  }

  // One pass over the lanes: each takes at most one step. True when any did.
  bool advance();
  bool done() const { return prologue_ == nullptr && active_.empty(); }
  const CallData& data() const { return data_; }

  // Where the block of step `index` lies, in elements, and whether it fits the lines of a slot.
  struct Extents {
    std::size_t input_offset = 0, output_offset = 0, count = 0;
    bool ll = false;
  };
  Extents extents(std::size_t index) const {
    const Run& run = runs_[index];
    return {run.input_offset, run.output_offset, run.count, run.ll};
  }

  // For the slow path of a wait.
  bool could_advance() const;
  void add_awaited(std::vector<int>& ranks) const;  // the peers that unready steps wait for, without duplicates
  int mismatched_peer() const;  // whose data at the head of an awaited ring belong to another call; -1: none

 private:
  // A step's block in this call.
  struct Run {
    std::size_t input_offset = 0;   // elements
    std::size_t output_offset = 0;
    std::size_t peer_input_offset = 0, peer_output_offset = 0;  // of the block in peers' buffers
    std::size_t count = 0;          // elements of the block
    std::size_t slice = 0;          // elements of one slice; the last may be smaller
    std::uint32_t n_slices = 0;
    std::uint32_t fingerprint = 0;
    bool ll = false;                // fits the lines of a slot: one slice, no bulk area
  };
  struct LaneState {
    std::uint32_t step = 0;  // index into Program::steps
    std::uint32_t first = 0, end = 0;
    std::uint32_t round = 0, n_rounds = 0;
  };

  Run make_run(const ProgramStep& step) const;
  void choose_slices(Run& run) const;
  bool settle(LaneState& lane) const;  // skips steps without a slice in this round; false at the end of the lane
  bool ready(const LaneState& lane) const;
  std::size_t stamped_lines(const Run& run, std::size_t count) const;
  void execute(const LaneState& lane);
  void move_token(const ProgramStep& step, const Run& run);
  void send(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count);
  void receive(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count);
  void copy(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count);
  void combine(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count);
  const std::byte* local_source(const ProgramOperand& operand, const Run& run, std::size_t begin) const;
  std::byte* local_sink(const ProgramOperand& operand, const Run& run, std::size_t begin) const;
  std::size_t bytes_of(Format format) const {
    return format == Format::accumulator ? data_.partial_bytes : data_.element_bytes;
  }
  template <class Visit>
  void for_each_unready(Visit&& visit) const;

  Prologue* prologue_ = nullptr;  // while it runs
  std::function<void()> start_after_;
  const Program* program_ = nullptr;
  CallData data_;
  Doorbells* bells_ = nullptr;
  std::size_t wire_bytes_ = 1;  // the widest element of the plan: what slices are sized by
  std::vector<Run> runs_;       // one per step
  std::vector<LaneState> active_;
  std::vector<std::byte> scratch_;
  // Workspace of combine().
  std::vector<MoveSource> sources_;
  std::vector<MoveSink> sinks_;
  std::vector<std::byte> staging_;  // contiguous copies of what lies in lines
};

}  // namespace hocket
