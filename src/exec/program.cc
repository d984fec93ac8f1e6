// SPDX-License-Identifier: Apache-2.0
#include "exec/program.h"

#include <algorithm>

#include "plan/algorithm.h"

namespace hocket {
namespace {

bool is_local(const Operand& operand) {
  return operand.where == Buffer::input || operand.where == Buffer::output;
}
bool is_connection(const Operand& operand) { return operand.where == Buffer::connection; }

ProgramStep::Shape shape_of(const Step& step) {
  if (step.block == kToken) return ProgramStep::Shape::token;
  const bool plain = step.sources.size() == 1 && step.sinks.size() == 1 && !step.finish && !step.sources[0].partial &&
                     !step.sinks[0].partial;
  if (!plain) return ProgramStep::Shape::move;
  const Operand& source = step.sources[0];
  const Operand& sink = step.sinks[0];
  if (is_local(source) && is_connection(sink)) return ProgramStep::Shape::send;
  if (is_connection(source) && is_local(sink)) return ProgramStep::Shape::receive;
  if (!is_connection(source) && !is_connection(sink)) return ProgramStep::Shape::copy;
  return ProgramStep::Shape::move;
}

// Both ends of a connection slice alike, so slices are sized by what any rank's steps may carry, not by this rank's own: the
// first rank of a chain sends raw inputs only, the ones after it partial results. Two ranks have nothing in between.
bool partials_travel(const Plan& plan) {
  if (!reduces(plan.collective) || plan.n_ranks == 2) return false;
  const auto all = algorithms();
  return std::any_of(all.begin(), all.end(), [&](const Algorithm* a) { return a->name == plan.algorithm && a->partials_travel; });
}

class Builder {
 public:
  Builder(Program& program, Transport& transport) : program_(program), transport_(transport) {}

  Status build() {
    for (std::size_t channel = 0; channel < program_.plan.channels.size(); ++channel)
      for (const Lane& lane : program_.plan.channels[channel].lanes) HOCKET_TRY(add_lane(lane, channel));
    return {};
  }

 private:
  Status add_lane(const Lane& lane, std::size_t channel) {
    program_.lanes.push_back({static_cast<std::uint32_t>(program_.steps.size()), static_cast<std::uint32_t>(lane.steps.size())});
    for (const Step& step : lane.steps) HOCKET_TRY(add_step(step, static_cast<int>(channel)));
    return {};
  }

  Status add_step(const Step& step, int channel) {
    ProgramStep made;
    made.shape = shape_of(step);
    made.finish = step.finish;
    made.block = static_cast<std::int16_t>(step.block);
    made.channel = static_cast<std::uint16_t>(channel);
    const auto reads = [](const Operand& o) { return o.where == Buffer::input || o.where == Buffer::peer_input; };
    const auto writes = [](const Operand& o) { return o.where == Buffer::output || o.where == Buffer::peer_output; };
    made.sized_by_input = std::any_of(step.sources.begin(), step.sources.end(), reads) &&
                          std::none_of(step.sinks.begin(), step.sinks.end(), writes);
    made.first_source = static_cast<std::uint32_t>(program_.operands.size());
    made.n_sources = static_cast<std::uint32_t>(step.sources.size());
    for (const Operand& operand : step.sources) HOCKET_TRY(add_operand(operand, channel, false));
    made.first_sink = static_cast<std::uint32_t>(program_.operands.size());
    made.n_sinks = static_cast<std::uint32_t>(step.sinks.size());
    for (const Operand& operand : step.sinks) HOCKET_TRY(add_operand(operand, channel, true));
    program_.most_sources = std::max(program_.most_sources, made.n_sources);
    program_.most_sinks = std::max(program_.most_sinks, made.n_sinks);
    program_.steps.push_back(made);
    return {};
  }

  Status add_operand(const Operand& operand, int channel, bool sink) {
    ProgramOperand made;
    made.where = operand.where;
    made.partial = operand.partial || operand.where == Buffer::scratch;
    made.peer = operand.peer;
    program_.widened |= made.partial;
    if (is_connection(operand)) {
      const RingKey key{operand.peer, operand.port, channel};
      if (sink)
        made.send = transport_.sender(key);
      else
        made.recv = transport_.receiver(key);
      if (made.send == nullptr && made.recv == nullptr)
        return fail(hocketInternalError, "{} gives no {} ring to peer {} on port {}, channel {}", transport_.name(),
                    sink ? "send" : "receive", operand.peer, to_string(operand.port), channel);
      note_capacity(sink ? made.send->memory() : made.recv->memory());
    }
    program_.operands.push_back(made);
    return {};
  }

  void note_capacity(const RingMemory& memory) {
    const auto take = [](std::size_t& smallest, std::size_t value) {
      smallest = smallest == 0 ? value : std::min(smallest, value);
    };
    take(program_.slot_bytes, memory.slot_bytes);
    take(program_.ll_bytes, memory.ll_bytes());
  }

  Program& program_;
  Transport& transport_;
};

}  // namespace

Result<Program> make_program(Plan plan, Transport& transport) {
  Program program;
  program.plan = std::move(plan);
  program.widened = partials_travel(program.plan);
  HOCKET_TRY(Builder(program, transport).build());
  return program;
}

}  // namespace hocket
