// SPDX-License-Identifier: Apache-2.0
// The symbolic machine on which check() runs one channel of all ranks: lanes, connections with a limited number of slots,
// and buffers, all holding symbolic values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/check.h"
#include "plan/check_events.h"
#include "plan/check_values.h"
#include "plan/plan.h"

namespace hocket {

// In which order lanes get their turn. Lanes block on connections and on nothing else, and each end belongs to one lane:
// if no buffer is touched in two orders, every schedule gives the same result. `in_order` proves that premise, by the
// order of events; the other schedules are there in case this machine is wrong.
enum class Schedule { in_order, reverse, round_robin, random };
inline constexpr Schedule kSchedules[] = {Schedule::in_order, Schedule::reverse, Schedule::round_robin, Schedule::random};
std::string_view to_string(Schedule schedule);

class SymbolicRun {
 public:
  // The plans have passed check_shape and outlive the run.
  SymbolicRun(std::span<const Plan> plans, std::size_t channel, const CheckOptions& options);

  // Runs all lanes to the end and looks at what is left: outputs, slots.
  Status run(Schedule schedule);

 private:
  // An operand with its connection or its place in memory looked up.
  struct Place {
    bool is_connection = false;
    bool partial = false;
    int connection = 0;  // index into connections_
    int reader = 0;      // which of the connection's consumers
    int cell = 0;        // of slice 0
    int owner = 0;       // rank whose memory it is
    const Operand* operand = nullptr;
  };
  struct Move {
    const Step* step = nullptr;
    std::vector<Place> sources;
    std::vector<Place> sinks;
    int slices = 0;  // of its block; a token counts as one
  };
  struct Thread {  // one lane of one rank
    int rank = 0;
    std::size_t lane = 0;
    std::vector<Move> moves;
    std::size_t next = 0;
    int round = 0;
    bool asleep = false;  // blocked, or at the end, until one of its connections moves
    EventId last = kNoEvent;
  };
  struct Slot {
    int value = 0;  // kToken for a token
    int slice = 0;
    bool partial = false;
    EventId filled = kNoEvent;
  };
  struct Fifo {
    int producer = 0;
    Port port = Port::pair_a;
    std::vector<int> consumers;     // ranks
    int producer_thread = -1;
    std::vector<int> consumer_threads;  // by consumer; -1: none, then nobody ever takes the slots
    std::vector<Slot> slots;
    long produced = 0;
    std::vector<long> consumed;     // by consumer
    long freed = 0;                 // a lower bound of the least of consumed
  };
  struct Cell {
    int value = -1;  // holds nothing
    EventId writer = kNoEvent;
    int writer_thread = -1;
    int readers = -1;  // head of a list in readings_
  };
  struct Reading {
    EventId event = kNoEvent;
    int thread = -1;
    int next = -1;
  };
  struct ForeignAccess {
    int owner = 0;
    int thread = 0;
    EventId event = kNoEvent;
  };

  // Preparation.
  const Plan& plan_of(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }
  int block_slices(int block) const;
  int pair_slices(int from, int to) const;
  int output_slices(int rank, int block) const;
  int step_slices(const Plan& plan, const Step& step) const;
  bool shares_memory(int rank, int block) const;
  int cell_index(int rank, Buffer where, int block) const;
  Place place(const Plan& plan, const Step& step, const Operand& operand, bool is_source);
  Place connect(int rank, const Operand& operand, bool is_source);
  void fill_inputs();
  void reset();

  // Running.
  bool is_active(const Thread& thread) const;
  bool skip_to_active(Thread& thread) const;
  bool is_ready(const Move& move);
  Status fire(int index);
  Result<int> take(Thread& thread, const Place& source);
  Result<int> result_of(const Move& move);
  Status put(Thread& thread, const Move& move, const Place& sink, int value);
  Status note_read(int thread, const Place& place, Cell& cell);
  Status note_write(int thread, const Place& place, Cell& cell);
  void wake(int thread);
  Result<int> advance(int index, int at_most);
  Status run_until_stuck();
  std::vector<int> next_turns();

  // The verdict.
  Status check_all_done();
  std::string awaited(const Thread& thread);
  Status check_slots() const;
  Status check_outputs() const;
  Status check_output(const Plan& plan, int block, int slice) const;
  std::vector<char> events_before_return(int rank) const;
  Status check_returns() const;
  Status check_barrier() const;

  std::string where(const Thread& thread) const;

  std::span<const Plan> plans_;
  const std::size_t channel_;
  const CheckOptions& options_;
  int n_ranks_ = 0;
  int n_blocks_ = 0;
  int rounds_ = 1;
  bool sliced_ = true;

  std::vector<int> fifo_index_;  // by producer, consumer (or all), port; -1: none
  std::vector<Fifo> fifos_;
  std::vector<Thread> threads_;
  std::vector<Cell> inputs_;  // all cells as they are before the call
  std::vector<Cell> cells_;
  std::vector<Reading> readings_;
  std::vector<ForeignAccess> foreign_;
  SymbolicValues values_;
  EventGraph events_;
  std::vector<int> event_rank_;  // by event
  Schedule schedule_ = Schedule::in_order;
  std::uint64_t random_ = 1;

  // Of the step that fires.
  std::vector<int> taken_;
  std::vector<EventId> causes_;
  EventId event_ = kNoEvent;
};

}  // namespace hocket
