// SPDX-License-Identifier: Apache-2.0
#include "plan/check_run.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "plan/contract.h"

namespace hocket {

namespace {

constexpr int kLocalBuffers = 3;  // input, output, scratch

template <class... Args>
tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(hocketInvalidArgument, format, std::forward<Args>(args)...);
}

template <class T>
auto& at(std::vector<T>& items, int index) {
  return items[static_cast<std::size_t>(index)];
}
template <class T>
const auto& at(const std::vector<T>& items, int index) {
  return items[static_cast<std::size_t>(index)];
}

// What the collective promises in a block of a rank's output.
SymbolicValue promised(const Plan& plan, int block) {
  switch (plan.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter: {
      SymbolicValue all{block, std::vector<int>(static_cast<std::size_t>(plan.n_ranks)), true, true};
      std::iota(all.ranks.begin(), all.ranks.end(), 0);
      return all;
    }
    case Collective::broadcast:
    case Collective::scatter:
    case Collective::recv: return {block, {plan.root}, true, false};
    case Collective::all_to_all: return {plan.rank, {block}, true, false};
    case Collective::all_gather:
    case Collective::gather:
    case Collective::barrier:
    case Collective::send: break;
  }
  return {block, {block}, true, false};
}

// The same combination in any order and association.
SymbolicValue without_order(SymbolicValue value) {
  std::sort(value.ranks.begin(), value.ranks.end());
  value.left_fold = true;
  return value;
}

}  // namespace

std::string_view to_string(Schedule schedule) {
  switch (schedule) {
    case Schedule::in_order: return "in order";
    case Schedule::reverse: return "in reverse";
    case Schedule::round_robin: return "round robin";
    case Schedule::random: return "random, seed 1";
  }
  return "?";
}

// ---- Preparation ----

SymbolicRun::SymbolicRun(std::span<const Plan> plans, std::size_t channel, const CheckOptions& options)
    : plans_(plans),
      channel_(channel),
      options_(options),
      n_ranks_(static_cast<int>(plans.size())),
      n_blocks_(plans.front().n_blocks),
      sliced_(plans.front().sliced) {
  for (int block = 0; block < std::max(n_blocks_, 2 * n_ranks_); ++block) rounds_ = std::max(rounds_, block_slices(block));
  fill_inputs();
  fifo_index_.assign(static_cast<std::size_t>(n_ranks_) * static_cast<std::size_t>(n_ranks_ + 1) * kPortCount, -1);
  for (const Plan& plan : plans_) {
    const std::vector<Lane>& lanes = plan.channels[channel_].lanes;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      Thread thread;
      thread.rank = plan.rank;
      thread.lane = lane;
      for (const Step& step : lanes[lane].steps) {
        Move move;
        move.step = &step;
        for (const Operand& source : step.sources) move.sources.push_back(place(plan, step, source, true));
        for (const Operand& sink : step.sinks) move.sinks.push_back(place(plan, step, sink, false));
        move.slices = step_slices(plan, step);
        thread.moves.push_back(std::move(move));
      }
      threads_.push_back(std::move(thread));
    }
  }
}

int SymbolicRun::block_slices(int block) const {
  const auto uneven = options_.slices_per_block;
  const int slices = uneven.empty() ? options_.rounds : uneven[static_cast<std::size_t>(block) % uneven.size()];
  return sliced_ ? slices : std::min(slices, 1);
}

int SymbolicRun::pair_slices(int from, int to) const { return block_slices(from + to); }

int SymbolicRun::output_slices(int rank, int block) const {
  return plan_of(rank).collective == Collective::all_to_all ? pair_slices(block, rank) : block_slices(block);
}

int SymbolicRun::step_slices(const Plan& plan, const Step& step) const {
  if (step.block == kToken) return 1;
  return plan.collective == Collective::all_to_all ? pair_slices(plan.rank, step.block) : block_slices(step.block);
}

bool SymbolicRun::shares_memory(int rank, int block) const {
  const Plan& plan = plan_of(rank);
  return options_.in_place && plan.collective != Collective::all_to_all && has_input_block(plan, block) &&
         has_output_block(plan, block);
}

int SymbolicRun::cell_index(int rank, Buffer buffer, int block) const {
  int local = 2;
  if (buffer == Buffer::input || buffer == Buffer::peer_input) local = shares_memory(rank, block) ? 1 : 0;
  if (buffer == Buffer::output || buffer == Buffer::peer_output) local = 1;
  return ((rank * kLocalBuffers + local) * n_blocks_ + block) * rounds_;
}

SymbolicRun::Place SymbolicRun::place(const Plan& plan, const Step& step, const Operand& operand, bool is_source) {
  if (operand.where == Buffer::connection) return connect(plan.rank, operand, is_source);
  const bool of_peer = operand.where == Buffer::peer_input || operand.where == Buffer::peer_output;
  const bool pair = of_peer && plan.collective == Collective::all_to_all;
  Place place;
  place.partial = operand.partial;
  place.owner = of_peer ? operand.peer : plan.rank;
  place.cell = cell_index(place.owner, operand.where, pair ? plan.rank : step.block);
  place.operand = &operand;
  return place;
}

SymbolicRun::Place SymbolicRun::connect(int rank, const Operand& operand, bool is_source) {
  const int producer = is_source ? operand.peer : rank;
  const bool multicast = operand.port == Port::multicast;
  const int consumer = multicast ? n_ranks_ : is_source ? rank : operand.peer;
  int& index = at(fifo_index_, (producer * (n_ranks_ + 1) + consumer) * kPortCount + static_cast<int>(operand.port));
  if (index < 0) {
    index = static_cast<int>(fifos_.size());
    Fifo fifo;
    fifo.producer = producer;
    fifo.port = operand.port;
    if (!multicast) fifo.consumers.push_back(consumer);
    for (int peer = 0; multicast && peer < n_ranks_; ++peer) {
      if (peer != producer) fifo.consumers.push_back(peer);
    }
    fifo.consumer_threads.assign(fifo.consumers.size(), -1);
    fifos_.push_back(std::move(fifo));
  }
  Place place;
  place.is_connection = true;
  place.partial = operand.partial;
  place.connection = index;
  place.reader = multicast && rank > producer ? rank - 1 : multicast ? rank : 0;
  place.operand = &operand;
  // The lane that is being prepared.
  const auto thread = static_cast<int>(threads_.size());
  Fifo& fifo = at(fifos_, index);
  (is_source ? at(fifo.consumer_threads, place.reader) : fifo.producer_thread) = thread;
  return place;
}

void SymbolicRun::fill_inputs() {
  inputs_.resize(static_cast<std::size_t>(n_ranks_) * kLocalBuffers * static_cast<std::size_t>(n_blocks_) *
                 static_cast<std::size_t>(rounds_));
  for (const Plan& plan : plans_) {
    for (int block = 0; block < n_blocks_; ++block) {
      if (!has_input_block(plan, block)) continue;
      const bool all_to_all = plan.collective == Collective::all_to_all;
      const int slices = all_to_all ? pair_slices(plan.rank, block) : block_slices(block);
      const int first = cell_index(plan.rank, Buffer::input, block);
      const int value = values_.input(plan.rank, block);
      for (int slice = 0; slice < slices; ++slice) at(inputs_, first + slice).value = value;
    }
  }
}

void SymbolicRun::reset() {
  for (Fifo& fifo : fifos_) {
    fifo.slots.assign(static_cast<std::size_t>(options_.slots), {});
    fifo.consumed.assign(fifo.consumers.size(), 0);
    fifo.produced = fifo.freed = 0;
  }
  for (Thread& thread : threads_) {
    thread.next = 0;
    thread.round = 0;
    thread.asleep = false;
    thread.last = kNoEvent;
  }
  cells_ = inputs_;
  readings_.clear();
  foreign_.clear();
  events_.clear();
  event_rank_.clear();
  random_ = 1;
}

// ---- Running ----

bool SymbolicRun::is_active(const Thread& thread) const { return thread.round < thread.moves[thread.next].slices; }

// Goes to the next step that has something to do; false at the end of the lane.
bool SymbolicRun::skip_to_active(Thread& thread) const {
  while (thread.round < rounds_) {
    for (; thread.next < thread.moves.size(); ++thread.next) {
      if (is_active(thread)) return true;
    }
    thread.next = 0;
    ++thread.round;
  }
  return false;
}

bool SymbolicRun::is_ready(const Move& move) {
  for (const Place& source : move.sources) {
    if (!source.is_connection) continue;
    const Fifo& fifo = at(fifos_, source.connection);
    if (fifo.produced <= at(fifo.consumed, source.reader)) return false;
  }
  for (const Place& sink : move.sinks) {
    if (!sink.is_connection) continue;
    Fifo& fifo = at(fifos_, sink.connection);
    if (fifo.produced - fifo.freed < options_.slots) continue;
    fifo.freed = *std::min_element(fifo.consumed.begin(), fifo.consumed.end());
    if (fifo.produced - fifo.freed >= options_.slots) return false;
  }
  return true;
}

Status SymbolicRun::fire(int index) {
  Thread& thread = at(threads_, index);
  const Move& move = thread.moves[thread.next];
  if (schedule_ == Schedule::in_order) {
    causes_.assign(1, thread.last);
    for (const Place& source : move.sources) {
      if (!source.is_connection) continue;
      const Fifo& fifo = at(fifos_, source.connection);
      causes_.push_back(at(fifo.slots, static_cast<int>(at(fifo.consumed, source.reader) % options_.slots)).filled);
    }
    event_ = thread.last = events_.add(causes_);
    event_rank_.push_back(thread.rank);
  }

  taken_.clear();
  for (const Place& source : move.sources) {
    const Result<int> value = take(thread, source);
    HOCKET_TRY(value);
    taken_.push_back(*value);
  }
  const Result<int> result = result_of(move);
  HOCKET_TRY(result);
  for (const Place& sink : move.sinks) HOCKET_TRY(put(thread, move, sink, *result));
  return {};
}

Result<int> SymbolicRun::take(Thread& thread, const Place& source) {
  const Step& step = *thread.moves[thread.next].step;
  if (!source.is_connection) {
    Cell& cell = at(cells_, source.cell + thread.round);
    if (cell.value < 0) return wrong("reads {} before it holds anything", to_string(source.operand->where));
    HOCKET_TRY(note_read(static_cast<int>(&thread - threads_.data()), source, cell));
    return cell.value;
  }

  Fifo& fifo = at(fifos_, source.connection);
  const Slot& slot = at(fifo.slots, static_cast<int>(at(fifo.consumed, source.reader) % options_.slots));
  const auto from = [&] { return fmt::format("{} from rank {}", to_string(fifo.port), fifo.producer); };
  if ((slot.value == kToken) != (step.block == kToken)) {
    return wrong("{}: gets {}", from(), slot.value == kToken ? "a token instead of data" : "data instead of a token");
  }
  ++at(fifo.consumed, source.reader);
  wake(fifo.producer_thread);
  if (slot.value == kToken) return slot.value;
  if (slot.partial != source.partial) {
    return wrong("{}: {} sent, {} expected", from(), slot.partial ? "a partial result" : "elements",
                 source.partial ? "a partial result" : "elements");
  }
  const bool pair = plan_of(thread.rank).collective == Collective::all_to_all;
  const SymbolicValue& value = values_[slot.value];
  if (slot.slice != thread.round) return wrong("{}: gets slice {}", from(), slot.slice);
  if (!pair && value.block != step.block) return wrong("{}: gets block {} instead of {}", from(), value.block, step.block);
  return slot.value;
}

Result<int> SymbolicRun::result_of(const Move& move) {
  if (move.step->block == kToken) return kToken;
  const Result<int> combined = values_.combine(taken_);
  return combined && move.step->finish ? values_.finish(*combined) : combined;
}

Status SymbolicRun::put(Thread& thread, const Move& move, const Place& sink, int value) {
  const bool is_token = move.step->block == kToken;
  const bool unfinished = !is_token && values_[value].unfinished_combination();
  if (!sink.is_connection) {
    if (unfinished && !sink.partial) {
      return wrong("writes an unfinished combination, {}, to {}", to_string(values_[value]), to_string(sink.operand->where));
    }
    Cell& cell = at(cells_, sink.cell + thread.round);
    HOCKET_TRY(note_write(static_cast<int>(&thread - threads_.data()), sink, cell));
    cell.value = value;
    return {};
  }
  Fifo& fifo = at(fifos_, sink.connection);
  if (!is_token && sink.partial != unfinished) {
    return wrong("sends {} on {} {} a partial result", to_string(values_[value]), to_string(fifo.port),
                 sink.partial ? "as" : "without calling it");
  }
  at(fifo.slots, static_cast<int>(fifo.produced % options_.slots)) = {value, thread.round, sink.partial, event_};
  ++fifo.produced;
  for (int consumer : fifo.consumer_threads) wake(consumer);
  return {};
}

Status SymbolicRun::note_read(int thread, const Place& place, Cell& cell) {
  if (schedule_ != Schedule::in_order) return {};
  if (place.owner != at(threads_, thread).rank) foreign_.push_back({place.owner, thread, event_});
  if (cell.writer_thread != thread && !events_.happens_before(cell.writer, event_)) {
    return wrong("reads {} while {} writes it: nothing orders the two", to_string(place.operand->where),
                 where(at(threads_, cell.writer_thread)));
  }
  readings_.push_back({event_, thread, cell.readers});
  cell.readers = static_cast<int>(readings_.size()) - 1;
  return {};
}

Status SymbolicRun::note_write(int thread, const Place& place, Cell& cell) {
  if (schedule_ != Schedule::in_order) return {};
  if (place.owner != at(threads_, thread).rank) foreign_.push_back({place.owner, thread, event_});
  if (cell.writer_thread != thread && !events_.happens_before(cell.writer, event_)) {
    return wrong("writes {} while {} writes it: nothing orders the two", to_string(place.operand->where),
                 where(at(threads_, cell.writer_thread)));
  }
  for (int i = cell.readers; i >= 0; i = at(readings_, i).next) {
    const Reading& reading = at(readings_, i);
    if (reading.thread == thread || events_.happens_before(reading.event, event_)) continue;
    return wrong("writes {} while {} reads it: nothing orders the two", to_string(place.operand->where),
                 where(at(threads_, reading.thread)));
  }
  cell.writer = event_;
  cell.writer_thread = thread;
  cell.readers = -1;
  return {};
}

void SymbolicRun::wake(int thread) {
  if (thread >= 0) at(threads_, thread).asleep = false;
}

// Returns how many steps were made.
Result<int> SymbolicRun::advance(int index, int at_most) {
  Thread& thread = at(threads_, index);
  if (thread.asleep) return 0;
  int made = 0;
  for (; made < at_most && skip_to_active(thread) && is_ready(thread.moves[thread.next]); ++made, ++thread.next) {
    if (Status status = fire(index); !status) {
      return tl::make_unexpected(std::move(status).error().with_context(
          fmt::format("{} step {} round {}", where(thread), thread.next, thread.round)));
    }
  }
  thread.asleep = made < at_most;
  return made;
}

std::vector<int> SymbolicRun::next_turns() {
  std::vector<int> turns(threads_.size());
  std::iota(turns.begin(), turns.end(), 0);
  if (schedule_ == Schedule::reverse) std::reverse(turns.begin(), turns.end());
  if (schedule_ != Schedule::random) return turns;
  for (std::size_t i = turns.size(); i > 1; --i) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    std::swap(turns[i - 1], turns[(random_ >> 33) % i]);
  }
  return turns;
}

Status SymbolicRun::run_until_stuck() {
  const bool one_by_one = schedule_ == Schedule::round_robin || schedule_ == Schedule::random;
  const int at_most = one_by_one ? 1 : std::numeric_limits<int>::max();
  std::vector<int> turns = next_turns();
  for (bool moved = true; moved;) {
    moved = false;
    for (int index : turns) {
      const Result<int> made = advance(index, at_most);
      HOCKET_TRY(made);
      moved |= *made > 0;
    }
    if (schedule_ == Schedule::random) turns = next_turns();
  }
  return {};
}

Status SymbolicRun::run(Schedule schedule) {
  schedule_ = schedule;
  reset();
  HOCKET_TRY(run_until_stuck());
  HOCKET_TRY(check_all_done());
  HOCKET_TRY(check_slots());
  HOCKET_TRY(check_outputs());
  if (schedule != Schedule::in_order) return {};
  HOCKET_TRY(check_returns());
  return plans_.front().collective == Collective::barrier ? check_barrier() : Status();
}

// ---- The verdict ----

std::string SymbolicRun::where(const Thread& thread) const {
  const Lane& lane = plan_of(thread.rank).channels[channel_].lanes[thread.lane];
  return fmt::format("rank {} lane {} ({})", thread.rank, thread.lane, lane.name);
}

std::string SymbolicRun::awaited(const Thread& thread) {
  const Move& move = thread.moves[thread.next];
  for (const Place& source : move.sources) {
    if (!source.is_connection) continue;
    const Fifo& fifo = at(fifos_, source.connection);
    if (fifo.produced > at(fifo.consumed, source.reader)) continue;
    return fmt::format("a slot from rank {} on {}", fifo.producer, to_string(fifo.port));
  }
  for (const Place& sink : move.sinks) {
    if (!sink.is_connection) continue;
    const Fifo& fifo = at(fifos_, sink.connection);
    for (std::size_t i = 0; i < fifo.consumers.size(); ++i) {
      if (fifo.produced - fifo.consumed[i] < options_.slots) continue;
      return fmt::format("a free slot to rank {} on {}", fifo.consumers[i], to_string(fifo.port));
    }
  }
  return "nothing";
}

Status SymbolicRun::check_all_done() {
  for (Thread& thread : threads_) {
    if (!skip_to_active(thread)) continue;
    return wrong("deadlock: {} step {} round {} waits for ever for {}", where(thread), thread.next, thread.round,
                 awaited(thread));
  }
  return {};
}

Status SymbolicRun::check_slots() const {
  for (const Fifo& fifo : fifos_) {
    for (std::size_t i = 0; i < fifo.consumers.size(); ++i) {
      if (fifo.consumed[i] == fifo.produced) continue;
      return wrong("rank {} leaves {} slots of rank {}'s {} behind", fifo.consumers[i], fifo.produced - fifo.consumed[i],
                   fifo.producer, to_string(fifo.port));
    }
  }
  return {};
}

Status SymbolicRun::check_outputs() const {
  for (const Plan& plan : plans_) {
    for (int block = 0; block < n_blocks_; ++block) {
      if (!has_output_block(plan, block)) continue;
      for (int slice = 0; slice < output_slices(plan.rank, block); ++slice) {
        HOCKET_TRY(check_output(plan, block, slice));
      }
    }
  }
  return {};
}

Status SymbolicRun::check_output(const Plan& plan, int block, int slice) const {
  const Cell& cell = at(cells_, cell_index(plan.rank, Buffer::output, block) + slice);
  const SymbolicValue wanted = promised(plan, block);
  if (cell.value < 0) return wrong("rank {}: output block {} slice {} is never written", plan.rank, block, slice);
  const SymbolicValue& value = values_[cell.value];
  const bool canonical = plan.canonical_order && reduces(plan.collective);
  if (value == wanted || (!canonical && without_order(value) == wanted)) return {};
  if (without_order(value) == wanted) {
    return wrong("rank {}: output block {} slice {} was not combined in canonical order: {}", plan.rank, block, slice,
                 to_string(value));
  }
  return wrong("rank {}: output block {} slice {} holds {}, not {}", plan.rank, block, slice, to_string(value),
               to_string(wanted));
}

// All that must have happened when a rank returns.
std::vector<char> SymbolicRun::events_before_return(int rank) const {
  std::vector<EventId> ends;
  for (const Thread& thread : threads_) {
    if (thread.rank == rank) ends.push_back(thread.last);
  }
  return events_.ancestors(ends);
}

// A rank that returns gives its buffers back to its caller: peers must be done with them.
Status SymbolicRun::check_returns() const {
  if (foreign_.empty()) return {};
  for (int rank = 0; rank < n_ranks_; ++rank) {
    const std::vector<char> over = events_before_return(rank);
    for (const ForeignAccess& access : foreign_) {
      if (access.owner != rank || at(over, access.event)) continue;
      return wrong("rank {} may return while {} still uses its buffers", rank, where(at(threads_, access.thread)));
    }
  }
  return {};
}

// Nobody leaves a barrier before everyone has come to it.
Status SymbolicRun::check_barrier() const {
  for (int rank = 0; rank < n_ranks_; ++rank) {
    const std::vector<char> over = events_before_return(rank);
    std::vector<char> has_come(static_cast<std::size_t>(n_ranks_), 0);
    at(has_come, rank) = 1;
    for (EventId event = 0; event < static_cast<EventId>(over.size()); ++event) {
      if (at(over, event)) at(has_come, at(event_rank_, event)) = 1;
    }
    const auto missing = std::find(has_come.begin(), has_come.end(), 0);
    if (missing == has_come.end()) continue;
    return wrong("rank {} may leave before rank {} has come", rank, missing - has_come.begin());
  }
  return {};
}

}  // namespace hocket
