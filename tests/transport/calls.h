// SPDX-License-Identifier: Apache-2.0
// Calls for tests that drive the executor itself: buffers, the plan's data, and what must come out, told naively.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/datatype.h"
#include "comm/plan_cache.h"
#include "enqueue/request.h"
#include "exec/cpu_executor.h"
#include "plan/planner.h"

namespace hocket {

// One collective call of all ranks, as all of them describe it.
struct Call {
  Collective collective = Collective::all_reduce;
  int n_ranks = 2;
  int root = 0;
  std::size_t count = 0;  // as the C API has it; the v-forms vary it by rank
  bool vector_form = false;
  bool in_place = false;
  hocketDataType_t type = hocketFloat32;
  hocketRedOp_t op = hocketSum;
  int channels = 1;
  std::string algorithm;
  std::uint64_t sequence = 1;

  std::string text() const {
    return fmt::format("call {}: {} {}{} of {} {} between {} ranks, root {}, {} channels{}", sequence, algorithm,
                       to_string(collective), vector_form ? " v" : "", count, datatype_name(type), n_ranks, root,
                       channels, in_place ? ", in place" : "");
  }
  std::size_t ranks() const { return static_cast<std::size_t>(n_ranks); }

  // Elements that go from `source` to `sink`: of a v-form uneven, some of them none.
  std::size_t block(int source, int sink) const {
    if (!vector_form) return count;
    constexpr std::size_t kThirds[] = {3, 0, 1, 5, 2};
    int index = source;
    if (collective == Collective::reduce_scatter || collective == Collective::scatter) index = sink;
    if (collective == Collective::all_to_all) index = source + 2 * sink;
    return (count * kThirds[index % 5] + 2) / 3;
  }
  // v-forms leave a gap between blocks, where the call has displacements.
  std::size_t gap() const { return vector_form && collective != Collective::reduce_scatter ? 3 : 0; }

  bool reduction() const { return reduces(collective); }
};

inline std::size_t lowest_bits(std::uint64_t value, int bits) { return value & ((std::uint64_t{1} << bits) - 1); }

// Element `index` of what `rank` puts in: small numbers, so that sums are exact in float and round when kept as bfloat16.
inline int value_of(const Call& call, int rank, std::size_t index) {
  const std::uint64_t hash =
      (index * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xd6e8feb86659fd93u + call.sequence) *
      0x9e3779b97f4a7c15u;
  return static_cast<int>(lowest_bits(hash >> 33, 8)) - 60;
}

// One element of the call's type.
inline void store_element(hocketDataType_t type, double value, std::byte* to) {
  if (type == hocketFloat32) {
    const auto stored = static_cast<float>(value);
    std::memcpy(to, &stored, sizeof stored);
  } else if (type == hocketBfloat16) {
    const Bfloat16 stored = Bfloat16::from(static_cast<float>(value));
    std::memcpy(to, &stored, sizeof stored);
  } else {
    const auto stored = static_cast<std::int32_t>(value);  // toward zero, as the average of integers is
    std::memcpy(to, &stored, sizeof stored);
  }
}

// One rank's buffers in one call, with guard bytes around them, and its part of the call as the executor takes it.
class Part {
 public:
  Part(const Call& call, int rank) : call_(call), rank_(rank), size_(element_bytes(call.type)) {
    set_counts();
    const std::size_t send = is_sender() ? extent(send_counts_) : 0, recv = is_receiver() ? extent(recv_counts_) : 0;
    send_memory_.assign(2 * kGuard + send * size_, kUntouched);
    recv_memory_.assign(2 * kGuard + recv * size_, kUntouched);
    place_buffers();
    for (std::size_t k = 0; k < send_counts_.size(); ++k)
      for (std::size_t i = 0; i < send_counts_[k]; ++i)
        if (is_sender())
          store_element(call_.type, value_of(call_, rank_, send_index(k, i)), input_ + (send_displs_[k] + i) * size_);
    send_before_ = send_memory_;
    expected_ = recv_memory_;
  }

  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }

  CallData data(const Plan& plan) const {
    CallData data;
    data.input = input_;
    data.output = output_;
    data.element_bytes = size_;
    data.partial_bytes = call_.reduction() ? accumulator_bytes(call_.type) : size_;
    if (call_.reduction()) {
      data.move = move_function(call_.type, hocketSum);
      data.divisor = call_.op == hocketAvg ? call_.n_ranks : 1;
    }
    BlockMap even;
    even.count = call_.count;
    even.n_blocks = static_cast<std::size_t>(plan.n_blocks);
    even.granule = kCacheLine / size_;
    data.input_blocks = data.output_blocks = even;
    BlockMap own = even, all = even;
    own.form = BlockMap::Form::own_only;
    all.form = BlockMap::Form::uniform;
    BlockMap sent = all, received = all;
    if (call_.vector_form) {
      own.count = call_.block(own_source(), own_sink());
      sent = listed(send_counts_, send_displs_);
      received = listed(recv_counts_, recv_displs_);
    }
    switch (call_.collective) {
      case Collective::all_gather:
        data.input_blocks = own;
        data.output_blocks = received;
        break;
      case Collective::gather:
        data.input_blocks = own;
        data.output_blocks = rank_ == call_.root ? received : own;
        break;
      case Collective::reduce_scatter:
        data.input_blocks = sent;
        data.output_blocks = own;
        break;
      case Collective::scatter:
        data.input_blocks = rank_ == call_.root ? sent : own;
        data.output_blocks = own;
        break;
      case Collective::all_to_all:
        data.input_blocks = sent;
        data.output_blocks = received;
        break;
      default: break;
    }
    data.fingerprint = static_cast<std::uint32_t>(call_.sequence * 0x9e3779b97f4a7c15u >> 40);
    data.fingerprint_by_block = call_.vector_form;
    return data;
  }

  // What must be in both buffers at the end, every byte of them.
  void expect_result() {
    for (std::size_t k = 0; is_receiver() && k < recv_counts_.size(); ++k)
      for (std::size_t i = 0; i < recv_counts_[k]; ++i)
        store_element(call_.type, result(k, i),
                      expected_.data() + (output_ - recv_memory_.data()) + (recv_displs_[k] + i) * size_);
    EXPECT_EQ(first_difference(recv_memory_, expected_, output_), "") << call_.text() << ", rank " << rank_;
    if (!shared_) {
      EXPECT_EQ(first_difference(send_memory_, send_before_, input_), "")
          << call_.text() << ", rank " << rank_ << ", sendbuff";
    }
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kUntouched{0xa5};

  bool is_root() const { return rank_ == call_.root; }
  bool is_sender() const {
    const bool from_root = call_.collective == Collective::broadcast || call_.collective == Collective::scatter;
    return call_.collective != Collective::barrier && (!from_root || is_root());
  }
  bool is_receiver() const {
    const bool to_root = call_.collective == Collective::reduce || call_.collective == Collective::gather;
    return call_.collective != Collective::barrier && (!to_root || is_root());
  }
  int own_source() const {
    return call_.collective == Collective::reduce_scatter || call_.collective == Collective::scatter ? call_.root
                                                                                                     : rank_;
  }
  int own_sink() const { return rank_; }

  // Blocks of both buffers: by rank where they have one for each, else one.
  void set_counts() {
    const bool many_sent = call_.collective == Collective::reduce_scatter || call_.collective == Collective::scatter ||
                           call_.collective == Collective::all_to_all;
    const bool many_received = call_.collective == Collective::all_gather || call_.collective == Collective::gather ||
                               call_.collective == Collective::all_to_all;
    for (int k = 0; k < (many_sent ? call_.n_ranks : 1); ++k)
      send_counts_.push_back(many_sent ? call_.block(rank_, k) : call_.block(rank_, rank_));
    for (int k = 0; k < (many_received ? call_.n_ranks : 1); ++k)
      recv_counts_.push_back(many_received ? call_.block(k, rank_) : call_.block(rank_, rank_));
    if (!call_.vector_form) {
      for (std::size_t& count : send_counts_) count = call_.count;
      for (std::size_t& count : recv_counts_) count = call_.count;
    }
    send_displs_ = displacements(send_counts_);
    recv_displs_ = displacements(recv_counts_);
  }
  std::vector<std::size_t> displacements(const std::vector<std::size_t>& counts) const {
    std::vector<std::size_t> displs(counts.size());
    for (std::size_t k = 1; k < counts.size(); ++k) displs[k] = displs[k - 1] + counts[k - 1] + call_.gap();
    return displs;
  }
  std::size_t extent(const std::vector<std::size_t>& counts) const {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0}) + (counts.size() - 1) * call_.gap();
  }
  static BlockMap listed(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& displs) {
    BlockMap map;
    map.form = BlockMap::Form::listed;
    map.counts = counts.data();
    map.displs = displs.data();
    return map;
  }

  // In place: the smaller buffer is its block of the larger one, on ranks that have both.
  void place_buffers() {
    input_ = send_memory_.data() + kGuard;
    output_ = recv_memory_.data() + kGuard;
    shared_ = call_.in_place && is_sender() && is_receiver() && call_.collective != Collective::all_to_all;
    if (!shared_) return;
    if (send_counts_.size() > recv_counts_.size()) {
      recv_memory_.assign(send_memory_.size(), kUntouched);
      input_ = recv_memory_.data() + kGuard;
      output_ = input_ + send_displs_[static_cast<std::size_t>(rank_)] * size_;
    } else if (recv_counts_.size() > send_counts_.size()) {
      input_ = output_ + recv_displs_[static_cast<std::size_t>(rank_)] * size_;
    } else {
      input_ = output_;
    }
  }

  // Numbers the elements of the send buffer without its gaps.
  std::size_t send_index(std::size_t block, std::size_t i) const { return block * 100000 + i; }

  double result(std::size_t block, std::size_t i) const {
    const auto me = static_cast<std::size_t>(rank_);
    switch (call_.collective) {
      case Collective::all_reduce:
      case Collective::reduce: return combined(i);
      case Collective::reduce_scatter: return combined(send_index(me, i));
      case Collective::broadcast: return value_of(call_, call_.root, i);
      case Collective::all_gather:
      case Collective::gather: return value_of(call_, static_cast<int>(block), i);
      case Collective::scatter: return value_of(call_, call_.root, send_index(me, i));
      case Collective::all_to_all: return value_of(call_, static_cast<int>(block), send_index(me, i));
      case Collective::barrier:
      case Collective::send:
      case Collective::recv: break;
    }
    return 0;
  }
  double combined(std::size_t index) const {
    int sum = 0;
    for (int rank = 0; rank < call_.n_ranks; ++rank) sum += stored_value(rank, index);
    if (call_.op != hocketAvg) return sum;
    return call_.type == hocketInt32 ? sum / call_.n_ranks
                                     : static_cast<float>(sum) / static_cast<float>(call_.n_ranks);
  }
  int stored_value(int rank, std::size_t index) const { return value_of(call_, rank, index); }

  static std::string first_difference(const std::vector<std::byte>& is, const std::vector<std::byte>& should,
                                      const std::byte* start) {
    const auto [a, b] = std::mismatch(is.begin(), is.end(), should.begin(), should.end());
    if (a == is.end() && b == should.end()) return "";
    return fmt::format("byte {} from its start is {:#x}, not {:#x}", (is.data() + (a - is.begin())) - start,
                       static_cast<int>(*a), static_cast<int>(*b));
  }

  Call call_;
  int rank_;
  std::size_t size_;
  std::vector<std::size_t> send_counts_, recv_counts_, send_displs_, recv_displs_;
  std::vector<std::byte> send_memory_, recv_memory_, send_before_, expected_;
  std::byte* input_ = nullptr;
  std::byte* output_ = nullptr;
  bool shared_ = false;
};

// What the planner is asked: as the communicator asks it.
inline PlanRequest plan_request(const Call& call, const TransportCaps& caps) {
  PlanRequest request;
  request.collective = call.collective;
  request.n_ranks = call.n_ranks;
  request.root = call.root;
  request.element_bytes = element_bytes(call.type);
  request.partial_bytes = call.reduction() ? accumulator_bytes(call.type) : request.element_bytes;
  request.uneven = call.vector_form;
  request.channels = call.channels;
  request.algorithm = call.algorithm;
  request.mapped_buffers = true;
  request.caps = caps;
  const bool by_rank = call.collective == Collective::all_gather || call.collective == Collective::gather ||
                       call.collective == Collective::reduce_scatter || call.collective == Collective::scatter ||
                       call.collective == Collective::all_to_all;
  std::size_t elements = call.count * (by_rank ? call.ranks() : 1);
  if (call.vector_form) {
    const bool everyone_knows =
        call.collective == Collective::all_gather || call.collective == Collective::reduce_scatter;
    if (!everyone_knows) return request;
    elements = 0;
    for (int k = 0; k < call.n_ranks; ++k) elements += call.block(k, k);
  }
  request.bytes = largest_of_class(size_class(elements * request.element_bytes));
  return request;
}

}  // namespace hocket
