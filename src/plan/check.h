// SPDX-License-Identifier: Apache-2.0
// Proves a plan by running it on sets of ranks instead of numbers, with the real number of slots: every output holds
// exactly what the collective promises, no order of progress deadlocks, no lane overwrites what another still reads, and
// both ends of every connection agree.
#pragma once

#include <span>

#include "base/error.h"
#include "plan/plan.h"

namespace hocket {

struct CheckOptions {
  int slots = 4;          // depth of every connection
  int rounds = 3;         // slices per block; > slots exercises back-pressure
  bool in_place = false;  // input and output share memory as the collective's in-place form has it, where there is one
  // Overrides `rounds` per block: uneven and zero-sized blocks; repeated when there are more blocks. In an all_to_all, what
  // goes from rank r to rank k has entry r + k.
  std::span<const int> slices_per_block;
};

// `plans`: one per rank, in rank order. The error names rank, lane, step, round and what is wrong.
Status check(std::span<const Plan> plans, const CheckOptions& options = {});

// A send and the receive that matches it; the other ranks have no part in them.
Status check_send_recv(const Plan& send, const Plan& recv, const CheckOptions& options = {});

}  // namespace hocket
