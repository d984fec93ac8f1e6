// SPDX-License-Identifier: Apache-2.0
#include "plan/check_shape.h"

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "plan/contract.h"

namespace hocket {

namespace {

constexpr int kMaxBlocks = 1 << 16;

template <class... Args>
tl::unexpected<Error> wrong(fmt::format_string<Args...> format, Args&&... args) {
  return fail(hocketInvalidArgument, format, std::forward<Args>(args)...);
}

bool is_point_to_point(Collective kind) { return kind == Collective::send || kind == Collective::recv; }

// What every rank's plan must agree on with rank 0's. A send and its receive are two calls.
Status check_agreement(const Plan& plan, const Plan& first) {
  const bool pairs = is_point_to_point(plan.collective) || is_point_to_point(first.collective);
  if (!pairs && plan.collective != first.collective) {
    return wrong("is for {}, rank 0's for {}", to_string(plan.collective), to_string(first.collective));
  }
  if (!pairs && plan.root != first.root) return wrong("has root {}, rank 0's {}", plan.root, first.root);
  if (plan.n_blocks != first.n_blocks) return wrong("has {} blocks, rank 0's {}", plan.n_blocks, first.n_blocks);
  if (plan.protocol != first.protocol || plan.sliced != first.sliced || plan.canonical_order != first.canonical_order ||
      plan.needs_mapped_buffers != first.needs_mapped_buffers) {
    return wrong("differs from rank 0's in protocol or in what it needs or promises");
  }
  if (plan.channels.size() != first.channels.size()) {
    return wrong("has {} channels, rank 0's {}", plan.channels.size(), first.channels.size());
  }
  for (std::size_t c = 0; c < plan.channels.size(); ++c) {
    if (plan.channels[c].share != first.channels[c].share) return wrong("channel {}: share differs from rank 0's", c);
  }
  return {};
}

Status check_header(const Plan& plan, int rank, int n_ranks) {
  if (plan.rank != rank) return wrong("is for rank {}", plan.rank);
  if (plan.n_ranks != n_ranks) return wrong("is for {} ranks, given are {}", plan.n_ranks, n_ranks);
  if (plan.root < 0 || plan.root >= n_ranks) return wrong("root {} is not a rank", plan.root);
  if (plan.n_blocks < 1 || plan.n_blocks > kMaxBlocks) return wrong("{} blocks", plan.n_blocks);
  if (blocks_by_rank(plan.collective) && plan.n_blocks != n_ranks) {
    return wrong("{} has a block per rank, not {}", to_string(plan.collective), plan.n_blocks);
  }
  if (plan.channels.empty()) return wrong("has no channel");
  double shares = 0;
  for (const Channel& channel : plan.channels) {
    if (!(channel.share > 0)) return wrong("a channel has share {}", channel.share);
    shares += channel.share;
  }
  if (std::abs(shares - 1) > 1e-9) return wrong("shares add up to {}, not 1", shares);
  return {};
}

enum class Side { source, sink };

// The plan of the rank whose buffer a peer_* operand names has the contract of that buffer.
struct Place {
  std::span<const Plan> plans;
  const Plan& plan;
  const Step& step;
  Side side;
};

Status check_connection(const Place& at, const Operand& operand) {
  const int n = at.plan.n_ranks;
  const bool to_all = operand.port == Port::multicast && at.side == Side::sink;
  if (static_cast<int>(operand.port) >= kPortCount) return wrong("unknown port");
  if (to_all != (operand.peer == kAllPeers)) return wrong("a sink on multicast, and nothing else, goes to all peers");
  if (!to_all && (operand.peer < 0 || operand.peer >= n)) return wrong("peer {} is not a rank", operand.peer);
  if (operand.peer == at.plan.rank && operand.port != Port::p2p) return wrong("connects the rank to itself");
  if (at.step.block == kToken) return operand.partial ? Status(wrong("a token is not partial")) : Status();
  if (!at.plan.sliced) return wrong("data pass through a connection, but the plan is not sliced");
  return {};
}

Status check_buffer(const Place& at, const Operand& operand) {
  const bool of_peer = operand.where == Buffer::peer_input || operand.where == Buffer::peer_output;
  const bool is_input = operand.where == Buffer::input || operand.where == Buffer::peer_input;
  const int owner = of_peer ? operand.peer : at.plan.rank;
  if (at.step.block == kToken) return wrong("a token step touches {}", to_string(operand.where));
  if (of_peer && !at.plan.needs_mapped_buffers) return wrong("{}, but needs_mapped_buffers is not set", to_string(operand.where));
  if (owner < 0 || owner >= at.plan.n_ranks) return wrong("peer {} is not a rank", owner);
  if (of_peer && owner == at.plan.rank) return wrong("{} of the own rank", to_string(operand.where));
  if (operand.partial) return wrong("{} cannot hold a partial result", to_string(operand.where));
  if (is_input && at.side == Side::sink) return wrong("writes the input");

  // In an all-to-all a peer's block is the one of this pair: always there.
  const bool pair = of_peer && at.plan.collective == Collective::all_to_all;
  const Plan& contract = at.plans[static_cast<std::size_t>(owner)];
  const int block = pair ? at.plan.rank : at.step.block;
  if (is_input && !has_input_block(contract, block)) return wrong("rank {} has no input block {}", owner, block);
  if (!is_input && !has_output_block(contract, block)) {
    return wrong("rank {} has no output block {}: only documented buffers may be touched", owner, block);
  }
  return {};
}

Status check_operand(const Place& at, const Operand& operand) {
  switch (operand.where) {
    case Buffer::connection: return check_connection(at, operand);
    case Buffer::scratch:
      if (at.step.block == kToken) return wrong("a token step touches scratch");
      if (!at.plan.needs_scratch) return wrong("uses scratch, but needs_scratch is not set");
      if (!operand.partial) return wrong("scratch is always partial");
      return {};
    case Buffer::input:
    case Buffer::output:
    case Buffer::peer_input:
    case Buffer::peer_output: return check_buffer(at, operand);
  }
  return wrong("unknown buffer");
}

// Sizes of an all-to-all's blocks belong to pairs: a step must tell which one it handles.
Status check_pair(const Plan& plan, const Step& step) {
  if (plan.collective != Collective::all_to_all || step.block == kToken) return {};
  bool reads = false;
  bool writes = false;
  for (const Operand& source : step.sources) reads |= source.where == Buffer::input;
  for (const Operand& sink : step.sinks) writes |= sink.where == Buffer::output;
  if (!reads && !writes) return wrong("a step of an all_to_all reads the input or writes the output");
  if (reads && writes && step.block != plan.rank) return wrong("copies the block of another rank to the own output");
  return {};
}

Status check_step(std::span<const Plan> plans, const Plan& plan, const Step& step) {
  if (step.block != kToken && (step.block < 0 || step.block >= plan.n_blocks)) return wrong("there is no block {}", step.block);
  if (step.block != kToken && step.sources.empty()) return wrong("has no source");
  if (step.block != kToken && step.sinks.empty()) return wrong("has no sink");
  if (step.finish && step.block == kToken) return wrong("finishes a token");
  if (step.finish && !reduces(plan.collective)) return wrong("finishes, but {} combines nothing", to_string(plan.collective));
  for (const Operand& source : step.sources) HOCKET_TRY(check_operand({plans, plan, step, Side::source}, source));
  for (const Operand& sink : step.sinks) HOCKET_TRY(check_operand({plans, plan, step, Side::sink}, sink));
  return check_pair(plan, step);
}

// At each end exactly one lane, and one slot per step.
class Ends {
 public:
  Status claim(const Step& step, std::size_t lane) {
    std::set<End> in_step;
    for (const Operand& source : step.sources) HOCKET_TRY(claim(source, Side::source, lane, in_step));
    for (const Operand& sink : step.sinks) HOCKET_TRY(claim(sink, Side::sink, lane, in_step));
    return {};
  }

 private:
  using End = std::tuple<Side, Port, int>;

  Status claim(const Operand& operand, Side side, std::size_t lane, std::set<End>& in_step) {
    if (operand.where != Buffer::connection) return {};
    const End end{side, operand.port, operand.peer};
    const char* way = side == Side::source ? "from" : "to";
    if (!in_step.insert(end).second) return wrong("takes {} {} {} twice", to_string(operand.port), way, operand.peer);
    const auto [owner, is_new] = lanes_.try_emplace(end, lane);
    if (owner->second == lane) return {};
    return wrong("{} {} {} is lane {}'s: one lane per end", to_string(operand.port), way, operand.peer, owner->second);
  }

  std::map<End, std::size_t> lanes_;
};

Status check_channel(std::span<const Plan> plans, const Plan& plan, const Channel& channel) {
  Ends ends;
  for (std::size_t l = 0; l < channel.lanes.size(); ++l) {
    const Lane& lane = channel.lanes[l];
    for (std::size_t s = 0; s < lane.steps.size(); ++s) {
      Status status = check_step(plans, plan, lane.steps[s]);
      if (status) status = ends.claim(lane.steps[s], l);
      if (!status) return tl::make_unexpected(std::move(status).error().with_context(
          fmt::format("lane {} ({}) step {}", l, lane.name, s)));
    }
  }
  return {};
}

}  // namespace

Status check_shape(std::span<const Plan> plans) {
  if (plans.empty()) return wrong("no plans");
  const auto n = static_cast<int>(plans.size());
  const auto named = [](int rank, Status status) -> Status {
    if (status) return status;
    return tl::make_unexpected(std::move(status).error().with_context(fmt::format("rank {}", rank)));
  };
  for (int r = 0; r < n; ++r) {
    const Plan& plan = plans[static_cast<std::size_t>(r)];
    HOCKET_TRY(named(r, check_header(plan, r, n)));
    HOCKET_TRY(named(r, check_agreement(plan, plans[0])));
  }
  for (int r = 0; r < n; ++r) {
    const Plan& plan = plans[static_cast<std::size_t>(r)];
    for (const Channel& channel : plan.channels) HOCKET_TRY(named(r, check_channel(plans, plan, channel)));
  }
  return {};
}

}  // namespace hocket
