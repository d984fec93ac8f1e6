// SPDX-License-Identifier: Apache-2.0
// The words in which algorithms are written.
#pragma once

#include <utility>
#include <vector>

#include "plan/plan.h"

namespace hocket::steps {

inline int mod(int a, int n) { return ((a % n) + n) % n; }

// Operands.
inline Operand input() { return {.where = Buffer::input}; }
inline Operand output() { return {.where = Buffer::output}; }
inline Operand scratch() { return {.where = Buffer::scratch, .partial = true}; }
inline Operand from(int peer, Port port) { return {.where = Buffer::connection, .port = port, .peer = peer}; }
inline Operand to(int peer, Port port) { return from(peer, port); }
inline Operand to_all() { return to(kAllPeers, Port::multicast); }
// An unfinished combination in a slot.
inline Operand partial(Operand operand) {
  operand.partial = true;
  return operand;
}

// Buffers of rank `owner`, seen from rank `rank`.
inline Operand input_of(int owner, int rank) {
  return owner == rank ? input() : Operand{.where = Buffer::peer_input, .peer = owner};
}
inline Operand output_of(int owner, int rank) {
  return owner == rank ? output() : Operand{.where = Buffer::peer_output, .peer = owner};
}

// Moves.
inline Step step(std::vector<Operand> sources, std::vector<Operand> sinks, int block) {
  return {std::move(sources), std::move(sinks), block, false};
}
inline Step finish(std::vector<Operand> sources, std::vector<Operand> sinks, int block) {
  return {std::move(sources), std::move(sinks), block, true};
}

// Every other rank, the next one first: ranks that start with different peers do not crowd on one.
inline std::vector<int> peers_after(int rank, int n_ranks) {
  std::vector<int> peers;
  peers.reserve(static_cast<std::size_t>(n_ranks));
  for (int distance = 1; distance < n_ranks; ++distance) peers.push_back((rank + distance) % n_ranks);
  return peers;
}

// What each peer sent on `port`.
inline std::vector<Operand> from_peers(int rank, int n_ranks, Port port) {
  std::vector<Operand> sources;
  sources.reserve(static_cast<std::size_t>(n_ranks));
  for (int peer : peers_after(rank, n_ranks)) sources.push_back(from(peer, port));
  return sources;
}

// The own input and what each peer sent on `port`, in rank order: combined, the canonical order.
inline std::vector<Operand> all_in_rank_order(int rank, int n_ranks, Port port) {
  std::vector<Operand> sources;
  sources.reserve(static_cast<std::size_t>(n_ranks));
  for (int k = 0; k < n_ranks; ++k) sources.push_back(k == rank ? input() : from(k, port));
  return sources;
}

// Tells every rank that this one is here, and waits until all the others are.
inline void append_token_exchange(Lane& lane, int rank, int n_ranks) {
  lane.steps.push_back(step({}, {to_all()}, kToken));
  lane.steps.push_back(step(from_peers(rank, n_ranks, Port::multicast), {}, kToken));
}

// A plan with these lanes in its one channel.
inline Plan plan_of(int n_blocks, std::vector<Lane> lanes) {
  Plan plan;
  plan.n_blocks = n_blocks;
  plan.channels.push_back({1.0, std::move(lanes)});
  return plan;
}

}  // namespace hocket::steps
