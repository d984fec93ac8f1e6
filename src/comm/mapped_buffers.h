// SPDX-License-Identifier: Apache-2.0
// Buffers that every rank can reach: memory of hocketMemAlloc, which peers map, and any memory when all ranks live in one
// process. Before a large call the ranks tell each other where their buffers are; when all are reachable, the call runs on
// them directly (docs/concepts/memory.md).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/doorbell.h"
#include "base/mapping.h"
#include "comm/memory.h"
#include "control/control.h"
#include "exec/prologue.h"
#include "transport.h"

namespace hocket {

// What a rank tells its peers of its buffers: one line of a slot.
struct BufferOffer {
  std::uint64_t process = 0;  // random number of the process
  std::uint64_t input = 0;    // offset in the allocation, or the address
  std::uint64_t output = 0;
  std::uint32_t input_allocation = 0;  // 0: ordinary memory
  std::uint32_t output_allocation = 0;
  std::uint32_t freed = 0;      // how many allocations the process has freed: a change voids what is mapped
  std::uint32_t confirmed = 0;  // 1: every peer is known to have both mapped
};
static_assert(sizeof(BufferOffer) <= kLinePayload);

// One communicator's view of its peers' memory.
class MappedBuffers {
 public:
  MappedBuffers(int rank, int n_ranks, ControlLink& link) : rank_(rank), n_ranks_(n_ranks), link_(link) {}

  BufferOffer make_offer(const void* input, const void* output, std::size_t input_bytes, std::size_t output_bytes);
  // True when all offers can be used by all ranks, once mapped: the same answer on every rank.
  static bool usable(const std::vector<BufferOffer>& offers);
  static bool all_confirmed(const std::vector<BufferOffer>& offers);
  // Maps what is missing; false when something cannot be mapped.
  bool map_all(const std::vector<BufferOffer>& offers);
  // Every rank said that it has mapped everything, or that it could not.
  void conclude(const BufferOffer& mine, bool all_mapped);
  // Addresses of the offered buffers in this process, by rank. Valid until the next call.
  void resolve(const std::vector<BufferOffer>& offers, const std::byte* input, std::byte* output);
  const std::byte* const* inputs() const { return inputs_.data(); }
  std::byte* const* outputs() const { return outputs_.data(); }

 private:
  std::byte* find(int rank, std::uint32_t allocation, std::uint64_t place) const;
  bool map_one(int rank, std::uint32_t allocation);
  void forget_stale(const std::vector<BufferOffer>& offers);

  int rank_;
  int n_ranks_;
  ControlLink& link_;
  std::map<std::pair<int, std::uint32_t>, Mapping> mappings_;  // by rank and allocation
  std::map<int, std::uint32_t> freed_;                         // by rank, as last told
  std::set<std::uint32_t> confirmed_;                          // own allocations that every peer has mapped
  std::uint64_t own_freed_ = 0;
  bool refused_ = false;  // mapping failed once: offer nothing more
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

// The exchange before one call. `decide(mapped)` starts the execution of the plan that fits.
class BufferAgreement final : public Prologue {
 public:
  struct Ports {
    SendRing* everyone = nullptr;
    std::vector<RecvRing*> peers;  // by rank; null for this one
  };

  void start(MappedBuffers& buffers, const Ports& ports, const BufferOffer& mine, std::uint32_t fingerprint, Doorbells& bells);

  bool advance() override;
  bool done() const override { return phase_ == Phase::done; }
  bool could_advance() const override;
  void add_awaited(std::vector<int>& ranks) const override;
  int mismatched_peer() const override;

  bool mapped() const { return mapped_; }
  const std::vector<BufferOffer>& offers() const { return offers_; }

 private:
  enum class Phase : std::uint8_t { offer, collect_offers, answer, collect_answers, done };
  // Each phase's transfers are told apart from the other's and from the plan's.
  std::uint32_t offer_print() const { return fingerprint_ ^ 0x155555; }
  std::uint32_t answer_print() const { return fingerprint_ ^ 0x2aaaaa; }
  std::uint32_t awaited_print() const { return phase_ == Phase::collect_answers ? answer_print() : offer_print(); }
  template <class Take>
  bool collect(Take&& take);
  void send(const void* payload, std::size_t bytes, std::uint32_t fingerprint);

  MappedBuffers* buffers_ = nullptr;
  Ports ports_;
  Doorbells* bells_ = nullptr;
  std::uint32_t fingerprint_ = 0;
  Phase phase_ = Phase::done;
  std::size_t next_peer_ = 0;  // those before it have been heard in this phase
  std::vector<BufferOffer> offers_;
  bool ok_ = true;
  bool mapped_ = false;
};

}  // namespace hocket
