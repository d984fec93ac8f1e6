// SPDX-License-Identifier: Apache-2.0
#include "exec/cpu_executor.h"

#include <algorithm>
#include <cstring>

namespace hocket {
namespace {

// A block is cut so that peers with different roles overlap (one fills a slot while another drains one), but not so fine
// that the hand-over of a slot shows.
constexpr std::size_t kSmallestSlice = 16 * 1024;
constexpr std::size_t kSlicesPerBlock = 8;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::uint32_t mix_size(std::uint32_t fingerprint, std::size_t count) {
  return static_cast<std::uint32_t>((fingerprint ^ (count * 0x9e3779b97f4a7c15u)) >> 8) ^ fingerprint;
}

}  // namespace

void Execution::start(const Program& program, const CallData& data, Doorbells& bells) {
  prologue_ = nullptr;
  program_ = &program;
  data_ = data;
  bells_ = &bells;
  wire_bytes_ = program.widened ? std::max(data.element_bytes, data.partial_bytes) : data.element_bytes;
  if (program.plan.needs_scratch) {
    const BlockMap& whole = data_.output_blocks;
    const std::size_t elements = whole.form == BlockMap::Form::even ? whole.count : whole.count * whole.n_blocks;
    scratch_.resize(std::max(scratch_.size(), elements * data.partial_bytes));
  }
  runs_.resize(program.steps.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i] = make_run(program.steps[i]);
  active_.clear();
  for (const ProgramLane& lane : program.lanes) {
    LaneState state;
    state.step = state.first = lane.first_step;
    state.end = lane.first_step + lane.n_steps;
    for (std::uint32_t i = state.first; i < state.end; ++i) state.n_rounds = std::max(state.n_rounds, runs_[i].n_slices);
    if (settle(state)) active_.push_back(state);
  }
}

Execution::Run Execution::make_run(const ProgramStep& step) const {
  Run run;
  run.fingerprint = data_.fingerprint;
  if (step.block == kToken) {
    run.n_slices = 1;
    run.ll = true;
    return run;
  }
  const auto block = static_cast<std::size_t>(step.block);
  const Extent input = data_.input_blocks.block(block);
  const Extent output = data_.output_blocks.block(block);
  const std::size_t count = step.sized_by_input ? input.count : output.count;
  const Extent part = even_part(count, program_->plan.channels.size(), step.channel, kCacheLine / data_.element_bytes);
  run.input_offset = input.offset + part.offset;
  run.output_offset = output.offset + part.offset;
  run.peer_input_offset = run.input_offset;
  run.peer_output_offset = run.output_offset;
  const Collective kind = program_->plan.collective;
  if (kind == Collective::gather || kind == Collective::scatter || kind == Collective::all_to_all) {
    // A peer's buffer is laid out in its way: it has a block for every rank, and this rank's is meant. Calls on mapped
    // buffers are even.
    run.peer_input_offset = static_cast<std::size_t>(program_->plan.rank) * count + part.offset;
    run.peer_output_offset = run.peer_input_offset;
  }
  run.count = part.count;
  if (data_.fingerprint_by_block) run.fingerprint = mix_size(run.fingerprint, count);
  choose_slices(run);
  return run;
}

void Execution::choose_slices(Run& run) const {
  if (run.count == 0) return;
  const std::size_t bytes = run.count * wire_bytes_;
  if (!program_->plan.sliced) {
    run.slice = run.count;
  } else if (bytes <= program_->ll_bytes) {
    run.ll = true;
    run.slice = run.count;
  } else {
    const std::size_t wanted = std::max(kSmallestSlice, round_up(bytes / kSlicesPerBlock, kCacheLine));
    run.slice = std::min(wanted, program_->slot_bytes) / wire_bytes_;
  }
  run.n_slices = static_cast<std::uint32_t>((run.count + run.slice - 1) / run.slice);
}

bool Execution::settle(LaneState& lane) const {
  while (lane.round < lane.n_rounds) {
    for (; lane.step < lane.end; ++lane.step)
      if (lane.round < runs_[lane.step].n_slices) return true;
    lane.step = lane.first;
    ++lane.round;
  }
  return false;
}

bool Execution::advance() {
  if (prologue_ != nullptr) {
    const bool prologue_moved = prologue_->advance();
    if (!prologue_->done()) return prologue_moved;
    prologue_ = nullptr;
    start_after_();
  }
  bool moved = false;
  for (std::size_t i = 0; i < active_.size();) {
    LaneState& lane = active_[i];
    if (!ready(lane)) {
      ++i;
      continue;
    }
    execute(lane);
    moved = true;
    ++lane.step;
    if (settle(lane))
      ++i;
    else
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return moved;
}

std::size_t Execution::stamped_lines(const Run& run, std::size_t count) const {
  return run.ll ? lines_for(count * wire_bytes_) : 1;
}

bool Execution::ready(const LaneState& lane) const {
  const ProgramStep& step = program_->steps[lane.step];
  const Run& run = runs_[lane.step];
  const std::size_t lines = stamped_lines(run, run.count);
  const ProgramOperand* operand = &program_->operands[step.first_source];
  for (std::uint32_t i = 0; i < step.n_sources; ++i)
    if (operand[i].recv != nullptr && !operand[i].recv->ready(run.fingerprint, lines)) return false;
  operand = &program_->operands[step.first_sink];
  for (std::uint32_t i = 0; i < step.n_sinks; ++i)
    if (operand[i].send != nullptr && !operand[i].send->can_send()) return false;
  return true;
}

void Execution::execute(const LaneState& lane) {
  const ProgramStep& step = program_->steps[lane.step];
  const Run& run = runs_[lane.step];
  const std::size_t begin = lane.round * run.slice;
  const std::size_t count = std::min(run.slice, run.count - begin);
  switch (step.shape) {
    case ProgramStep::Shape::token:
      return move_token(step, run);
    case ProgramStep::Shape::send:
      if (data_.scale != nullptr) break;
      return send(step, run, begin, count);
    case ProgramStep::Shape::receive:
      return receive(step, run, begin, count);
    case ProgramStep::Shape::copy:
      if (data_.scale != nullptr) break;
      return copy(step, run, begin, count);
    case ProgramStep::Shape::move:
      break;
  }
  combine(step, run, begin, count);
}

void Execution::move_token(const ProgramStep& step, const Run& run) {
  for (std::uint32_t i = 0; i < step.n_sources; ++i) program_->operands[step.first_source + i].recv->release();
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) program_->operands[step.first_sink + i].send->commit(run.fingerprint, 1);
  bells_->ring();
}

void Execution::send(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count) {
  SendRing& ring = *program_->operands[step.first_sink].send;
  const std::byte* source = local_source(program_->operands[step.first_source], run, begin);
  const std::size_t bytes = count * data_.element_bytes;
  if (run.ll) {
    fill_lines(ring.lines(), source, bytes);
    ring.commit(run.fingerprint, stamped_lines(run, count));
  } else {
    const MoveSink target{ring.bulk(), Format::element, data_.slot_store};
    copy_move(source, &target, 1, bytes);
    ring.commit_bulk(run.fingerprint, bytes);
  }
  bells_->ring();
}

void Execution::receive(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count) {
  RecvRing& ring = *program_->operands[step.first_source].recv;
  std::byte* sink = local_sink(program_->operands[step.first_sink], run, begin);
  const std::size_t bytes = count * data_.element_bytes;
  if (run.ll) {
    drain_lines(ring.lines(), sink, bytes);
    ring.release();
  } else {
    const MoveSink target{sink, Format::element, data_.output_store};
    copy_move(ring.bulk(), &target, 1, bytes);
    ring.release_bulk(bytes);
  }
  bells_->ring();
}

void Execution::copy(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count) {
  const std::byte* source = local_source(program_->operands[step.first_source], run, begin);
  const MoveSink sink{local_sink(program_->operands[step.first_sink], run, begin), Format::element, data_.output_store};
  if (sink.data != source) copy_move(source, &sink, 1, count * data_.element_bytes);
}

void Execution::combine(const ProgramStep& step, const Run& run, std::size_t begin, std::size_t count) {
  const ProgramOperand* operands = program_->operands.data();
  const std::size_t bytes = count * wire_bytes_;
  const bool in_lines = run.ll && bytes > kLinePayload;  // one line is contiguous as it is
  sources_.resize(step.n_sources);
  sinks_.resize(step.n_sinks);
  if (in_lines) staging_.resize(std::max(staging_.size(), (step.n_sources + step.n_sinks) * program_->ll_bytes));
  std::byte* stage = staging_.data();

  for (std::uint32_t i = 0; i < step.n_sources; ++i) {
    const ProgramOperand& operand = operands[step.first_source + i];
    MoveSource& source = sources_[i];
    source.format = operand.partial ? Format::accumulator : Format::element;
    source.scale = operand.where == Buffer::input ? data_.scale : nullptr;
    if (operand.recv == nullptr) {
      source.data = local_source(operand, run, begin);
    } else if (!run.ll) {
      source.data = operand.recv->bulk();
    } else if (!in_lines) {
      source.data = operand.recv->lines()->data;
    } else {
      drain_lines(operand.recv->lines(), stage, bytes);
      source.data = stage;
      stage += program_->ll_bytes;
    }
  }
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
    const ProgramOperand& operand = operands[step.first_sink + i];
    MoveSink& sink = sinks_[i];
    sink.format = operand.partial ? Format::accumulator : Format::element;
    sink.store = Store::cached;
    if (operand.send == nullptr) {
      sink.data = local_sink(operand, run, begin);
      sink.store = data_.output_store;
    } else if (!run.ll) {
      sink.data = operand.send->bulk();
      sink.store = data_.slot_store;
    } else if (!in_lines) {
      sink.data = operand.send->lines()->data;
    } else {
      sink.data = stage;
      stage += program_->ll_bytes;
    }
  }

  MoveArgs args;
  args.sources = sources_.data();
  args.sinks = sinks_.data();
  args.n_sources = static_cast<int>(step.n_sources);
  args.n_sinks = static_cast<int>(step.n_sinks);
  args.count = count;
  args.divisor = step.finish ? data_.divisor : 1;
  args.user_fn = data_.user_fn;
  args.user_data = data_.user_data;
  if (data_.move == nullptr && sinks_[0].data == sources_[0].data && step.n_sinks == 2)
    copy_move(sources_[0].data, &sinks_[1], 1, count * data_.element_bytes);  // in place: the first sink has it already
  else if (data_.move != nullptr)
    data_.move(args);
  else
    copy_move(sources_[0].data, sinks_.data(), args.n_sinks, count * data_.element_bytes);

  const std::size_t lines = stamped_lines(run, count);
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
    SendRing* ring = operands[step.first_sink + i].send;
    if (ring == nullptr) continue;
    if (!run.ll) {
      ring->commit_bulk(run.fingerprint, count * bytes_of(sinks_[i].format));
      continue;
    }
    if (in_lines) fill_lines(ring->lines(), sinks_[i].data, bytes);
    ring->commit(run.fingerprint, lines);
  }
  for (std::uint32_t i = 0; i < step.n_sources; ++i) {
    RecvRing* ring = operands[step.first_source + i].recv;
    if (ring == nullptr) continue;
    if (run.ll)
      ring->release();
    else
      ring->release_bulk(count * bytes_of(sources_[i].format));
  }
  bells_->ring();
}

const std::byte* Execution::local_source(const ProgramOperand& operand, const Run& run, std::size_t begin) const {
  switch (operand.where) {
    case Buffer::input:
      return data_.input + (run.input_offset + begin) * data_.element_bytes;
    case Buffer::output:
      return data_.output + (run.output_offset + begin) * data_.element_bytes;
    case Buffer::scratch:
      return scratch_.data() + (run.output_offset + begin) * data_.partial_bytes;
    case Buffer::peer_input:
      return data_.peer_inputs[operand.peer] + (run.peer_input_offset + begin) * data_.element_bytes;
    case Buffer::peer_output:
      return data_.peer_outputs[operand.peer] + (run.peer_output_offset + begin) * data_.element_bytes;
    case Buffer::connection:
      break;
  }
  return nullptr;
}

std::byte* Execution::local_sink(const ProgramOperand& operand, const Run& run, std::size_t begin) const {
  // Plans write outputs, scratch and peers' outputs only.
  return const_cast<std::byte*>(local_source(operand, run, begin));
}

template <class Visit>
void Execution::for_each_unready(Visit&& visit) const {
  for (const LaneState& lane : active_) {
    const ProgramStep& step = program_->steps[lane.step];
    const Run& run = runs_[lane.step];
    const std::size_t lines = stamped_lines(run, run.count);
    for (std::uint32_t i = 0; i < step.n_sources + step.n_sinks; ++i) {
      const ProgramOperand& operand =
          program_->operands[i < step.n_sources ? step.first_source + i : step.first_sink + i - step.n_sources];
      if (operand.recv != nullptr && !operand.recv->ready(run.fingerprint, lines)) visit(operand, run);
      if (operand.send != nullptr && !operand.send->can_send()) visit(operand, run);
    }
  }
}

bool Execution::could_advance() const {
  if (prologue_ != nullptr) return prologue_->could_advance();
  return std::any_of(active_.begin(), active_.end(), [&](const LaneState& lane) { return ready(lane); });
}

void Execution::add_awaited(std::vector<int>& ranks) const {
  if (prologue_ != nullptr) return prologue_->add_awaited(ranks);
  const auto add = [&](int rank) {
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  };
  for_each_unready([&](const ProgramOperand& operand, const Run&) {
    if (operand.peer != kAllPeers) add(operand.peer);
    else
      for (int rank = 0; rank < program_->plan.n_ranks; ++rank)
        if (rank != program_->plan.rank) add(rank);
  });
  std::sort(ranks.begin(), ranks.end());
}

int Execution::mismatched_peer() const {
  if (prologue_ != nullptr) return prologue_->mismatched_peer();
  int peer = -1;
  for_each_unready([&](const ProgramOperand& operand, const Run& run) {
    if (operand.recv != nullptr && operand.recv->mismatched(run.fingerprint)) peer = operand.peer;
  });
  return peer;
}

}  // namespace hocket
