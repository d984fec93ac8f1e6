// SPDX-License-Identifier: Apache-2.0
// What the planner needs to know of a call: nothing else may influence a plan, so that every rank derives the same one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace hocket {

// What the transports between these ranks can do, and what it costs. Times in microseconds, rates in bytes per microsecond
// (= MB/s). Defaults: two cores of a current server that share a last-level cache.
struct TransportCaps {
  int slots = 4;                      // depth of a bulk connection
  std::size_t slot_bytes = 64 * 1024;
  std::size_t ll_bytes = 1792;        // largest transfer that the ll protocol carries
  bool multicast = true;              // a multicast sink is written once, not once per peer
  double handover_us = 0.07;          // one small message, one way
  double step_us = 0.08;              // executor's cost of a step beside the bytes
  double copy_rate = 20000;           // one core, one source, one sink, through cached slots
  double cores_per_rank = 1.0;        // < 1 when ranks outnumber cores
  double switch_us = 1.0;             // one wait when ranks outnumber cores
};

struct PlanRequest {
  Collective collective = Collective::all_reduce;
  int n_ranks = 1;
  int root = 0;  // the peer, for send and recv
  // Bytes of the whole data: count * size for even collectives, all blocks together for gather-like ones, one block for
  // send and recv; the largest of its size class. Absent when not every rank knows (all_to_all_v, gather_v, scatter_v):
  // then no plan may depend on it.
  std::optional<std::size_t> bytes;
  bool uneven = false;           // blocks by rank differ in size (all_gather_v, reduce_scatter_v)
  // Bytes of one element as the user stores it and as a partial result travels; equal where nothing is widened.
  std::size_t element_bytes = 4;
  std::size_t partial_bytes = 4;
  bool commutative = true;       // false for user-defined operations: only canonical order will do
  bool premultiplied = false;    // each rank scales its own input: peers cannot read it in place
  bool deterministic = false;    // canonical order required
  bool mapped_buffers = false;   // the buffers of this call are mapped by every rank
  int channels = 0;              // 0: the planner's choice
  std::string algorithm;         // forced by name; empty: the planner's choice
  TransportCaps caps;
};

}  // namespace hocket
