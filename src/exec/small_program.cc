// SPDX-License-Identifier: Apache-2.0
#include "exec/small_program.h"

#include <algorithm>
#include <cstring>

namespace hocket {

std::optional<SmallProgram> SmallProgram::make(const Program& program, const CallData& data) {
  if (program.plan.needs_scratch || program.plan.needs_mapped_buffers || program.widened || data.scale != nullptr ||
      data.user_fn != nullptr || data.fingerprint_by_block)
    return std::nullopt;
  SmallProgram small;
  small.program_ = &program;
  small.move_ = data.move;
  small.operands_ = program.operands;
  Execution layout;
  Doorbells none;
  layout.start(program, data, none);
  for (const ProgramLane& lane : program.lanes) {
    if (lane.n_steps != 1) return std::nullopt;
    const ProgramStep& step = program.steps[lane.first_step];
    const Execution::Extents extents = layout.extents(lane.first_step);
    if (!extents.ll && !(step.shape == ProgramStep::Shape::copy && extents.count * data.element_bytes <= program.ll_bytes) &&
        extents.count != 0)
      return std::nullopt;
    if (extents.count == 0 && step.block != kToken) continue;  // nothing to move for either end
    Step made;
    made.shape = step.shape;
    made.bytes = static_cast<std::uint32_t>(extents.count * data.element_bytes);
    made.count = static_cast<std::uint32_t>(extents.count);
    made.n_lines = static_cast<std::uint16_t>(lines_for(made.bytes));
    made.input_offset = extents.input_offset * data.element_bytes;
    made.output_offset = extents.output_offset * data.element_bytes;
    made.divisor = step.finish ? data.divisor : 1;
    made.first_source = step.first_source;
    made.n_sources = step.n_sources;
    made.first_sink = step.first_sink;
    made.n_sinks = step.n_sinks;
    if (step.n_sources + step.n_sinks <= 2) {
      // At most one ring: its readiness is the step's.
      for (std::uint32_t i = 0; i < step.n_sources; ++i) made.recv = program.operands[step.first_source + i].recv;
      for (std::uint32_t i = 0; i < step.n_sinks; ++i) made.send = program.operands[step.first_sink + i].send;
      if (made.recv != nullptr && made.send != nullptr) return std::nullopt;  // a relay: not for this walk
    }
    small.steps_.push_back(made);
    if (step.shape == ProgramStep::Shape::move && made.n_lines > 1)
      small.stage_bytes_ = std::max(small.stage_bytes_, static_cast<std::size_t>(made.n_lines) * kLinePayload);
  }
  std::stable_partition(small.steps_.begin(), small.steps_.end(), [&](const Step& step) {
    for (std::uint32_t i = 0; i < step.n_sources; ++i)
      if (small.operands_[step.first_source + i].recv != nullptr) return false;
    return true;
  });
  small.sources_.resize(program.most_sources);
  small.sinks_.resize(program.most_sinks);
  small.staging_.resize((program.most_sources + program.most_sinks) * small.stage_bytes_);
  return small;
}

bool SmallProgram::all_ready(const Step& step, std::uint32_t fingerprint) const {
  for (std::uint32_t i = 0; i < step.n_sources; ++i) {
    const RecvRing* ring = operands_[step.first_source + i].recv;
    if (ring != nullptr && !ring->ready(fingerprint, step.n_lines)) return false;
  }
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
    SendRing* ring = operands_[step.first_sink + i].send;
    if (ring != nullptr && !ring->can_send()) return false;
  }
  return true;
}

void SmallProgram::execute(const Step& step, const std::byte* input, std::byte* output, std::uint32_t fingerprint) {
  switch (step.shape) {
    case ProgramStep::Shape::token:
      for (std::uint32_t i = 0; i < step.n_sources; ++i) operands_[step.first_source + i].recv->release();
      for (std::uint32_t i = 0; i < step.n_sinks; ++i) operands_[step.first_sink + i].send->commit(fingerprint, 1);
      return;
    case ProgramStep::Shape::send:
      fill_lines(step.send->lines(), input + step.input_offset, step.bytes);
      step.send->commit(fingerprint, step.n_lines);
      return;
    case ProgramStep::Shape::receive:
      drain_lines(step.recv->lines(), output + step.output_offset, step.bytes);
      step.recv->release();
      return;
    case ProgramStep::Shape::copy:
      if (input + step.input_offset != output + step.output_offset)
        std::memcpy(output + step.output_offset, input + step.input_offset, step.bytes);
      return;
    case ProgramStep::Shape::move:
      return combine(step, input, output, fingerprint);
  }
}

void SmallProgram::combine(const Step& step, const std::byte* input, std::byte* output, std::uint32_t fingerprint) {
  std::byte* stage = staging_.data();
  for (std::uint32_t i = 0; i < step.n_sources; ++i) {
    const ProgramOperand& operand = operands_[step.first_source + i];
    if (operand.recv == nullptr) {
      sources_[i].data = operand.where == Buffer::input ? input + step.input_offset : output + step.output_offset;
    } else if (step.n_lines == 1) {
      sources_[i].data = operand.recv->lines()->data;
    } else {
      drain_lines(operand.recv->lines(), stage, step.bytes);
      sources_[i].data = stage;
      stage += stage_bytes_;
    }
  }
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
    const ProgramOperand& operand = operands_[step.first_sink + i];
    if (operand.send == nullptr) {
      sinks_[i].data = output + step.output_offset;
    } else if (step.n_lines == 1) {
      sinks_[i].data = operand.send->lines()->data;
    } else {
      sinks_[i].data = stage;
      stage += stage_bytes_;
    }
  }
  if (move_ == nullptr) {  // one value to several sinks
    for (std::uint32_t i = 0; i < step.n_sinks; ++i)
      if (sinks_[i].data != sources_[0].data) std::memcpy(sinks_[i].data, sources_[0].data, step.bytes);
  } else {
    MoveArgs args;
    args.sources = sources_.data();
    args.sinks = sinks_.data();
    args.n_sources = static_cast<int>(step.n_sources);
    args.n_sinks = static_cast<int>(step.n_sinks);
    args.count = step.count;
    args.divisor = step.divisor;
    move_(args);
  }
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
    SendRing* ring = operands_[step.first_sink + i].send;
    if (ring == nullptr) continue;
    if (step.n_lines > 1) fill_lines(ring->lines(), sinks_[i].data, step.bytes);
    ring->commit(fingerprint, step.n_lines);
  }
  for (std::uint32_t i = 0; i < step.n_sources; ++i)
    if (RecvRing* ring = operands_[step.first_source + i].recv; ring != nullptr) ring->release();
}

void SmallProgram::add_awaited(std::uint32_t fingerprint, std::vector<int>& ranks) const {
  for (const Step& step : steps_) {
    for (std::uint32_t i = 0; i < step.n_sources; ++i) {
      const ProgramOperand& operand = operands_[step.first_source + i];
      if (operand.recv != nullptr && !operand.recv->ready(fingerprint, step.n_lines)) ranks.push_back(operand.peer);
    }
    for (std::uint32_t i = 0; i < step.n_sinks; ++i) {
      const ProgramOperand& operand = operands_[step.first_sink + i];
      if (operand.send == nullptr || operand.send->can_send()) continue;
      if (operand.peer != kAllPeers) ranks.push_back(operand.peer);
      else
        for (int rank = 0; rank < program_->plan.n_ranks; ++rank)
          if (rank != program_->plan.rank) ranks.push_back(rank);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
}

int SmallProgram::mismatched_peer(std::uint32_t fingerprint) const {
  for (const Step& step : steps_)
    for (std::uint32_t i = 0; i < step.n_sources; ++i) {
      const ProgramOperand& operand = operands_[step.first_source + i];
      if (operand.recv != nullptr && operand.recv->mismatched(fingerprint)) return operand.peer;
    }
  return -1;
}

}  // namespace hocket
