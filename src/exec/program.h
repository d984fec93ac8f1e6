// SPDX-License-Identifier: Apache-2.0
// A plan made ready to run by one rank: operands resolved to rings, steps classified. Built once per plan, then reused.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "transport.h"

namespace hocket {

struct ProgramOperand {
  Buffer where = Buffer::input;
  bool partial = false;
  int peer = 0;
  SendRing* send = nullptr;  // of a connection sink
  RecvRing* recv = nullptr;  // of a connection source
};

struct ProgramStep {
  // What the walk does. The first four are the common cases of the fused move, without the kernel.
  enum class Shape : std::uint8_t { token, send, receive, copy, move };
  Shape shape = Shape::move;
  bool finish = false;
  bool sized_by_input = false;  // the block's size is that of the input block; else of the output block
  std::int16_t block = 0;
  std::uint16_t channel = 0;
  // Ranges of Program::operands.
  std::uint32_t first_source = 0, n_sources = 0;
  std::uint32_t first_sink = 0, n_sinks = 0;
};

struct ProgramLane {
  std::uint32_t first_step = 0, n_steps = 0;
};

struct Program {
  Plan plan;
  std::vector<ProgramOperand> operands;
  std::vector<ProgramStep> steps;
  std::vector<ProgramLane> lanes;
  std::size_t slot_bytes = 0;  // the smallest slot of the rings in use
  std::size_t ll_bytes = 0;
  bool widened = false;        // some operand is partial, here or on another rank
  std::uint32_t most_sources = 1;
  std::uint32_t most_sinks = 1;
};

Result<Program> make_program(Plan plan, Transport& transport);

}  // namespace hocket
