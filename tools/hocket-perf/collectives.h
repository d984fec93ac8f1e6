// SPDX-License-Identifier: Apache-2.0
// The table of collectives: for each its buffers, its call, its bus-bandwidth factor and what must come out. A
// collective is one entry in collectives.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "content.h"
#include "hocket/hocket.h"

namespace hocket::perf {

// One call as all ranks see it.
struct Setting {
  int n_ranks;
  int root;
  std::size_t count;                // the count that the call takes; for the v-forms the sum of `counts`
  std::vector<std::size_t> counts;  // v-forms: one count per rank, the same on every rank
};

// One call as one rank sees it. Elements throughout.
struct Shape {
  std::size_t send_count = 0;      // size of the send buffer; 0: the rank has none
  std::size_t recv_count = 0;      // size of the receive buffer; 0: the rank has none
  std::vector<Part> results = {};  // what the call puts into the receive buffer; the rest of it stays
  // In place both lie in one buffer, here.
  std::size_t send_at = 0;
  std::size_t recv_at = 0;
  // v-forms only.
  std::vector<std::size_t> send_counts = {}, send_displs = {}, recv_counts = {}, recv_displs = {};
};

struct Call {
  const void* send;  // NULL where the rank has none
  void* recv;
  const Setting* setting;
  const Shape* shape;
  hocketDataType_t type;
  hocketRedOp_t op;
  int rank;
  hocketComm_t comm;
  hocketStream_t stream;
};

enum class Sizing {
  whole,     // the size is count elements
  per_rank,  // the size is n * count elements
  vectors,   // the size is spread over random counts
  nothing,   // no data
};

struct Collective {
  std::string_view name;
  const char* function;  // in messages
  Sizing sizing;
  bool reduces;
  bool rooted;
  bool in_place;
  bool grouped;               // several calls, which belong in one group
  double (*bus_factor)(int);  // bus bandwidth / algorithm bandwidth, for n ranks
  Shape (*shape)(const Setting&, int rank);
  hocketResult_t (*call)(const Call&);
};

std::span<const Collective> all_collectives();
const Collective* find_collective(std::string_view name);

// The call whose size is the largest that `bytes` allow.
Setting make_setting(const Collective& collective, std::size_t bytes, std::size_t element_bytes, int n_ranks, int root,
                     std::uint64_t seed);

// Elements of the size that is reported.
std::size_t total_count(const Collective& collective, const Setting& setting);

}  // namespace hocket::perf
