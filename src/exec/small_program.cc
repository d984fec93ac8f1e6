// SPDX-License-Identifier: Apache-2.0
#include "exec/small_program.h"

#include <algorithm>
#include <cstring>

namespace hocket {

namespace {

enum class Role : std::uint8_t { sends, receives, local, relays };

Role role_of(const Program& program, const ProgramStep& step) {
  bool receives = false, sends = false;
  for (std::uint32_t i = 0; i < step.n_sources; ++i) receives |= program.operands[step.first_source + i].recv != nullptr;
  for (std::uint32_t i = 0; i < step.n_sinks; ++i) sends |= program.operands[step.first_sink + i].send != nullptr;
  if (sends && receives) return Role::relays;
  return sends ? Role::sends : receives ? Role::receives : Role::local;
}

// Steps run one after the other, all that send before all that receive: no lane may need another order, and nobody may
// depend on what a rank passes on.
bool runs_in_order(const Program& program) {
  for (const ProgramLane& lane : program.lanes) {
    bool received = false;
    for (std::uint32_t i = lane.first_step; i < lane.first_step + lane.n_steps; ++i) {
      const Role role = role_of(program, program.steps[i]);
      if (role == Role::relays || (role == Role::sends && received)) return false;
      received |= role == Role::receives;
    }
  }
  return true;
}

}  // namespace

std::optional<SmallProgram> SmallProgram::make(const Program& program, const CallData& data) {
  if (program.plan.needs_scratch || program.plan.needs_mapped_buffers || program.widened || data.scale != nullptr ||
      data.user_fn != nullptr || data.fingerprint_by_block || !runs_in_order(program))
    return std::nullopt;
  SmallProgram small;
  small.program_ = &program;
  small.move_ = data.move;
  small.operands_ = program.operands;
  Execution layout;
  Doorbells none;
  layout.start(program, data, none);
  for (std::uint32_t i = 0; i < program.steps.size(); ++i) {
    const ProgramStep& step = program.steps[i];
    const Execution::Extents extents = layout.extents(i);
    const bool token = step.block == kToken;
    if (extents.count == 0 && !token) continue;  // nothing to move for either end
    const bool fits = extents.ll || (role_of(program, step) == Role::local &&
                                     extents.count * data.element_bytes <= program.ll_bytes);
    if (!token && !fits) return std::nullopt;
    small.add_step(program, step, extents, data);
  }
  std::stable_partition(small.steps_.begin(), small.steps_.end(), [](const Step& step) { return step.sends; });
  small.sources_.resize(program.most_sources);
  small.sinks_.resize(program.most_sinks);
  small.staging_.resize((program.most_sources + program.most_sinks) * small.stage_bytes_);
  return small;
}

void SmallProgram::add_step(const Program& program, const ProgramStep& step, const Execution::Extents& extents,
                            const CallData& data) {
  Step made;
  made.shape = step.shape;
  made.sends = role_of(program, step) == Role::sends;
  made.count = static_cast<std::uint32_t>(extents.count);
  made.bytes = static_cast<std::uint32_t>(extents.count * data.element_bytes);
  made.n_lines = static_cast<std::uint16_t>(lines_for(made.bytes));
  made.input_offset = extents.input_offset * data.element_bytes;
  made.output_offset = extents.output_offset * data.element_bytes;
  made.divisor = step.finish ? data.divisor : 1;
  made.first_source = step.first_source;
  made.n_sources = step.n_sources;
  made.first_sink = step.first_sink;
  made.n_sinks = step.n_sinks;
  // With one ring, its readiness is the step's.
  int n_rings = 0;
  for (std::uint32_t i = 0; i < step.n_sources; ++i)
    if (RecvRing* ring = program.operands[step.first_source + i].recv; ring != nullptr) made.recv = ring, ++n_rings;
  for (std::uint32_t i = 0; i < step.n_sinks; ++i)
    if (SendRing* ring = program.operands[step.first_sink + i].send; ring != nullptr) made.send = ring, ++n_rings;
  made.one_ring = n_rings == 1;
  if (step.shape == ProgramStep::Shape::move && made.n_lines > 1)
    stage_bytes_ = std::max(stage_bytes_, static_cast<std::size_t>(made.n_lines) * kLinePayload);
  steps_.push_back(made);
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
  for (std::size_t at = at_; at < steps_.size(); ++at) {
    const Step& step = steps_[at];
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
  for (std::size_t at = at_; at < steps_.size(); ++at)
    for (std::uint32_t i = 0; i < steps_[at].n_sources; ++i) {
      const ProgramOperand& operand = operands_[steps_[at].first_source + i];
      if (operand.recv != nullptr && operand.recv->mismatched(fingerprint)) return operand.peer;
    }
  return -1;
}

}  // namespace hocket
