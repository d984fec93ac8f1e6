// SPDX-License-Identifier: Apache-2.0
// A call as a value, and the rules that its arguments must keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/datatype.h"
#include "base/error.h"
#include "control/control.h"
#include "plan/plan.h"

namespace hocket {

struct Request {
  Collective collective = Collective::barrier;
  bool vector_form = false;
  hocketDataType_t datatype = hocketInt8;
  hocketRedOp_t op = hocketSum;
  int root = 0;  // of rooted collectives; the peer of send and recv
  // Elements as the C API counts them; in v-forms the count of this rank's own block where the call has one.
  std::size_t count = 0;
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  // v-forms: per rank, of the buffer that has a block for every rank.
  const std::size_t* send_counts = nullptr;
  const std::size_t* send_displs = nullptr;
  const std::size_t* recv_counts = nullptr;
  const std::size_t* recv_displs = nullptr;
  // Counts copied for calls that run after the caller returned.
  std::vector<std::size_t> storage;

  bool point_to_point() const { return collective == Collective::send || collective == Collective::recv; }
  bool reduction() const {
    return collective == Collective::all_reduce || collective == Collective::reduce ||
           collective == Collective::reduce_scatter;
  }
  bool rooted() const {
    return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
           collective == Collective::scatter;
  }

  // All that a plain call's shape depends on, but for its count.
  std::uint64_t shape_key() const {
    return static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(datatype) << 4 |
           static_cast<std::uint64_t>(reduction() ? op : 0) << 8 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(rooted() || point_to_point() ? root : 0)) << 40;
  }

  // Makes the request independent of the caller's arrays.
  void own_counts(int n_ranks);
  // "hocketAllReduce"
  const char* function() const;
  // What ranks compare.
  CallRecord record(std::uint64_t sequence, int n_ranks) const;
};

// What a rank reads and writes in a call, in elements, and the one placement in which the two buffers may share memory.
struct BufferUse {
  std::size_t send_elements = 0;
  std::size_t recv_elements = 0;
  bool has_in_place = true;
  std::size_t in_place_send_offset = 0;  // in place: send + this == recv + in_place_recv_offset
  std::size_t in_place_recv_offset = 0;
  const char* in_place_rule = "sendbuff == recvbuff";
};
Result<BufferUse> buffer_use(const Request& request, int rank, int n_ranks);

// Refuses what is wrong by itself: null, misaligned or overlapping buffers, unknown types, roots out of range, sizes that
// overflow. Knows nothing of custom operations beyond their number.
Status validate(const Request& request, int rank, int n_ranks);

}  // namespace hocket
