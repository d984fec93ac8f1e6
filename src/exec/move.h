// SPDX-License-Identifier: Apache-2.0
// The one data operation of the library on the CPU, the fused move: combine the elements of n sources in their order and
// store the result in m sinks. A copy is a move with one source. Vectorised with run-time dispatch (move.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hocket/hocket.h"

namespace hocket {

// How an operand's elements are stored: as the user's datatype or as its accumulation type (an unrounded partial result).
enum class Format : std::uint8_t { element, accumulator };

// How a sink's cache lines are written. `cached`: ordinary stores. `streaming`: non-temporal stores, for outputs that will
// not be read soon; they are ordered before the move returns (the kernel ends with a store fence).
enum class Store : std::uint8_t { cached, streaming };

struct MoveSource {
  const void* data = nullptr;
  Format format = Format::element;
  // When set, points to one element of the datatype: the source is multiplied by it and rounded to the datatype before it
  // is combined (pre-multiplied sum).
  const void* scale = nullptr;
};

struct MoveSink {
  void* data = nullptr;
  Format format = Format::element;
  Store store = Store::cached;
};

struct MoveArgs {
  const MoveSource* sources = nullptr;
  const MoveSink* sinks = nullptr;
  int n_sources = 0;  // >= 1
  int n_sinks = 0;    // >= 0
  std::size_t count = 0;
  // Average: > 1 divides the combined value by this, in the accumulation type, before the final rounding. Integers divide
  // toward zero.
  int divisor = 1;
  // For user-defined operations.
  hocketUserReduceFn user_fn = nullptr;
  void* user_data = nullptr;
};

// sinks[*][i] = finish(((sources[0][i] op sources[1][i]) op sources[2][i]) ...) for i < count: always this left fold, for
// every count, alignment, number of sources and instruction set, so results are reproducible bit for bit.
// A sink may be the same memory as a source (same address, same element size); otherwise operands do not overlap.
// Data pointers are aligned to their own element size.
using MoveFn = void (*)(const MoveArgs&);

// The kernel of a built-in operation; nullptr when `supports(op, type)` is false. Avg is Sum with a divisor.
// Cheap enough for set-up, not for every call: plans keep the pointer.
MoveFn move_function(hocketDataType_t type, hocketRedOp_t op);

// The kernel that applies args.user_fn, element by element of `type` in rank order; accumulators are elements.
MoveFn user_move_function(hocketDataType_t type);

// Copies bytes to several sinks (formats are ignored, data are opaque).
void copy_move(const void* source, const MoveSink* sinks, int n_sinks, std::size_t bytes);

}  // namespace hocket
