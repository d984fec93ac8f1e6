// SPDX-License-Identifier: Apache-2.0
// The ControlLink of a rank that has joined through sockets: passes calls from any thread to its Line on the control thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "control/joiner.h"

namespace hocket::control {

class SocketLink final : public ControlLink {
 public:
  // `hosted`: the meeting whose centre lives in this process with this rank, rank 0.
  SocketLink(ServiceUse use, int rank, std::optional<MeetingId> hosted, Admission admission);
  ~SocketLink() override;

  const std::vector<RankInfo>& ranks() const override { return ranks_; }
  UniqueFd take_shared_memory() override { return std::move(memory_); }
  void start(ControlEvents* events) override;
  void report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int waited_ms) override;
  void report_mismatch(std::uint64_t sequence, const Error& fallback) override;
  void broadcast_failure(const Error& error) override;
  Result<UniqueFd> fetch_allocation(int rank, std::uint64_t allocation, int timeout_ms) override;
  bool has_left(int rank) const override { return line_->has_left(rank); }

 private:
  ServiceUse use_;
  const int rank_;
  const std::optional<MeetingId> hosted_;
  std::vector<RankInfo> ranks_;
  UniqueFd memory_;
  std::unique_ptr<Line> line_;  // used and destroyed on the control thread
  std::atomic<std::uint32_t> next_fetch_{1};
};

// join() of a rank that runs another version: for tests.
Result<std::unique_ptr<ControlLink>> join_as(const JoinOptions& options, std::uint32_t version);

}  // namespace hocket::control
