// SPDX-License-Identifier: Apache-2.0
// The fast path of small calls: a program whose lanes have one step each and whose transfers all fit the lines of a slot,
// with everything that depends on the call's shape worked out beforehand. Same plan, same transfers, same stamps as the
// general walk (cpu_executor.h): ranks may take either, call by call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/cpu_executor.h"

namespace hocket {

class SmallProgram {
 public:
  // Empty when the call is not of this kind. `data` gives the shape; its buffers and fingerprint are ignored.
  static std::optional<SmallProgram> make(const Program& program, const CallData& data);

  // Runs one call to its end. `await(ready)` returns once ready() is true, or an error. Steps that only send come first:
  // they wait for credit at most, which peers give while they finish earlier calls, so blocking here cannot deadlock.
  template <class Await>
  Status run(const std::byte* input, std::byte* output, std::uint32_t fingerprint, Doorbells& bells, Await&& await) {
    for (at_ = 0; at_ < steps_.size(); ++at_) {
      const Step& step = steps_[at_];
      if (!ready(step, fingerprint)) HOCKET_TRY(await([&] { return ready(step, fingerprint); }));
      execute(step, input, output, fingerprint);
      bells.ring();
    }
    return {};
  }

  // The same, if its first step (a message has one) is ready now.
  bool try_run(const std::byte* input, std::byte* output, std::uint32_t fingerprint, Doorbells& bells) {
    if (steps_.size() != 1 || !ready(steps_[0], fingerprint)) return false;
    execute(steps_[0], input, output, fingerprint);
    bells.ring();
    return true;
  }

  // For messages about a wait, which is rare: the peers that steps not yet done wait for.
  void add_awaited(std::uint32_t fingerprint, std::vector<int>& ranks) const;
  int mismatched_peer(std::uint32_t fingerprint) const;

 private:
  struct Step {
    ProgramStep::Shape shape = ProgramStep::Shape::token;
    bool sends = false;     // and receives nothing
    bool one_ring = false;  // `send` or `recv` is the only ring
    std::uint16_t n_lines = 1;
    std::uint32_t bytes = 0;
    std::uint32_t count = 0;
    std::size_t input_offset = 0, output_offset = 0;  // bytes
    int divisor = 1;
    SendRing* send = nullptr;
    RecvRing* recv = nullptr;
    std::uint32_t first_source = 0, n_sources = 0;  // of operands_
    std::uint32_t first_sink = 0, n_sinks = 0;
  };

  bool ready(const Step& step, std::uint32_t fingerprint) const {
    if (!step.one_ring) return all_ready(step, fingerprint);
    return step.recv != nullptr ? step.recv->ready(fingerprint, step.n_lines) : step.send->can_send();
  }
  void add_step(const Program& program, const ProgramStep& step, const Execution::Extents& extents, const CallData& data);
  bool all_ready(const Step& step, std::uint32_t fingerprint) const;
  void execute(const Step& step, const std::byte* input, std::byte* output, std::uint32_t fingerprint);
  void combine(const Step& step, const std::byte* input, std::byte* output, std::uint32_t fingerprint);

  const Program* program_ = nullptr;
  MoveFn move_ = nullptr;
  std::vector<Step> steps_;
  std::size_t at_ = 0;  // the step that run() is at; those before it are done, and their rings may hold later calls' data
  std::vector<ProgramOperand> operands_;
  // Workspace of combine(), sized once.
  std::vector<MoveSource> sources_;
  std::vector<MoveSink> sinks_;
  std::vector<std::byte> staging_;
  std::size_t stage_bytes_ = 0;
};

}  // namespace hocket
