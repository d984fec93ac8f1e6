// SPDX-License-Identifier: Apache-2.0
// A plan is what one rank does for one kind of call: plain, immutable data with one instruction, the fused move. Executors
// walk it, check.h proves it, print.h shows it; it names no bytes, threads, sockets or addresses, and no count: the same
// plan serves every count of its size class.
//
// Data model. A call's data are cut into `n_blocks` blocks: by rank for gather-like collectives (block k belongs to rank k),
// evenly for the others. A block is cut into slices, each of which fits one slot. A lane runs its steps once per round;
// round k handles slice k of each step's block. A step whose block has no slice k is skipped: both ends of a connection
// know the size of a block, so both skip alike. A zero-sized block has no slices. Round 0 always takes place, because
// token steps belong to it even when there are no data.
//
// A connection (src, dst, port, channel) is a FIFO of slots. At each end exactly one lane uses it. A step waits until every
// connection source has a slot ready and every connection sink has a slot free; then it moves and all slots are passed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hocket {

enum class Collective : std::uint8_t {
  all_reduce,
  broadcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  barrier,
  send,
  recv,
};
inline constexpr int kCollectiveCount = 11;
std::string_view to_string(Collective kind);
// Whether elements of several ranks are combined: only then `finish` has a meaning.
bool reduces(Collective kind);

// What block k of the input and of the output is, per collective:
//   all_reduce, broadcast, reduce   even blocks of one buffer; input and output are both whole
//   all_gather      input: own block only; output: whole          gather   likewise, output on root only
//   reduce_scatter  input: whole; output: own block only          scatter  likewise, input on root only
//   all_to_all      input block k goes to rank k; output block k comes from rank k (a step that reads the input names an
//                   input block, a step that writes the output an output block; on rank r, the peer's block is the one
//                   of the same pair: peer_input is always the peer's input block r)
//   send, recv      one block

// Several independent FIFOs between the same two ranks, so that two lanes need not share one.
//   multicast: one producer, every other rank of the communicator a consumer; a sink on it always goes to all of them, and
//   a slot is free again when the last of them has passed it on. Shared memory writes it once.
enum class Port : std::uint8_t { pair_a, pair_b, multicast, p2p };
inline constexpr int kPortCount = 4;
std::string_view to_string(Port port);

// Where an operand lives.
enum class Buffer : std::uint8_t {
  input,        // the caller's send buffer
  output,       // the caller's receive buffer
  scratch,      // a buffer of the communicator, laid out like the output, in accumulation type
  connection,   // a slot
  peer_input,   // a peer's buffers, mapped here: only in plans that need mapped memory
  peer_output,
};
inline constexpr int kBufferCount = 6;
std::string_view to_string(Buffer where);

inline constexpr int kAllPeers = -1;

struct Operand {
  Buffer where = Buffer::input;
  Port port = Port::pair_a;  // of a connection
  // Connection: the rank at the other end (kAllPeers for a sink on the multicast port). peer_*: whose buffer.
  int peer = 0;
  // An unfinished combination: travels in the accumulation type, unrounded. Raw inputs and finished results do not.
  // Scratch is always partial.
  bool partial = false;

  friend bool operator==(const Operand&, const Operand&) = default;
};

// A token step moves no bytes: it only orders ranks (barrier, end of a mapped call). It runs in round 0 only.
inline constexpr int kToken = -1;

// One fused move: combine the sources in this order (one source: a copy), store the result in every sink. A step may have
// no sources (token out) or no sinks (token in).
struct Step {
  std::vector<Operand> sources;
  std::vector<Operand> sinks;
  int block = 0;        // or kToken
  bool finish = false;  // the combination is complete: apply what ends the operation (average's division, rounding)

  friend bool operator==(const Step&, const Step&) = default;
};

// A sequential program. Lanes of a rank advance independently of each other, in any order.
struct Lane {
  std::string name;  // "scatter", "reduce", "up", ...
  std::vector<Step> steps;

  friend bool operator==(const Lane&, const Lane&) = default;
};

// A part of every block, moved over connections of its own.
struct Channel {
  double share = 1.0;  // of the data; shares of a plan add up to 1
  std::vector<Lane> lanes;

  friend bool operator==(const Channel&, const Channel&) = default;
};

// How a slot becomes visible (docs/concepts/slot-protocol.md). by_size: each transfer picks ll or simple by its own size,
// for calls whose counts not every rank knows.
enum class Protocol : std::uint8_t { simple, ll, by_size };
inline constexpr int kProtocolCount = 3;
std::string_view to_string(Protocol protocol);

// One algorithm that was considered for a request.
struct Candidate {
  std::string algorithm;
  double predicted_us = 0;
  std::string why_not;  // empty for the chosen one; else "slower", or the contract it cannot keep

  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct Plan {
  Collective collective = Collective::all_reduce;
  std::string algorithm;
  int rank = 0;
  int n_ranks = 1;
  int root = 0;  // of rooted collectives; the peer of send and recv
  int n_blocks = 1;
  Protocol protocol = Protocol::simple;
  // Data pass through slots and are sliced. False when no data step touches a connection (mapped memory, barrier): then a
  // block is one slice, whatever its size.
  bool sliced = true;
  bool needs_mapped_buffers = false;  // peers' buffers must be mapped on every rank
  bool needs_scratch = false;
  bool canonical_order = false;  // every element is combined as ((r0 op r1) op r2) ..., whatever the size
  std::vector<Channel> channels;
  double predicted_us = 0;
  std::vector<Candidate> candidates;  // the chosen one first

  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace hocket
