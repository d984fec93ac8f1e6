// SPDX-License-Identifier: Apache-2.0
// Where everything lies in the memory that the ranks of a communicator share. A pure function of the number of ranks and the
// settings, so that every rank computes the same.
//
//   sleeper count | bells | CPU sets | rings of rank 0 | rings of rank 1 | ...
//
// The rings of a rank are the ones it receives on from each peer (pair_a, pair_b, p2p, per channel) and the one it sends to
// everyone on (multicast, per channel). They start on pages of their own, so that first touch places them near their owner.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/doorbell.h"
#include "base/params.h"
#include "base/ring.h"
#include "plan/plan.h"

namespace hocket {

inline constexpr int kMaxCpus = 1024;

// The CPUs that a rank may run on; written by it before the first barrier of the communicator, constant after.
struct alignas(kCacheLine) CpuSet {
  std::atomic<std::uint64_t> bits[kMaxCpus / 64];
};

class ShmLayout {
 public:
  ShmLayout(int n_ranks, const Settings& settings);

  std::size_t total_bytes() const { return total_bytes_; }
  int n_channels() const { return n_channels_; }
  std::uint32_t depth() const { return depth_; }
  std::size_t slot_bytes() const { return pair_slot_bytes_; }
  std::size_t multicast_slot_bytes() const { return multicast_slot_bytes_; }
  std::size_t ll_bytes() const { return lines_per_slot_ * kLinePayload; }

  SleeperCount* sleepers(std::byte* base) const { return reinterpret_cast<SleeperCount*>(base); }
  BellLine* bells(std::byte* base) const { return reinterpret_cast<BellLine*>(base + sizeof(SleeperCount)); }
  CpuSet* cpu_sets(std::byte* base) const { return reinterpret_cast<CpuSet*>(bells(base) + n_ranks_); }
  // The ring from `src` to `dst`. Multicast: the ring of `src`, dst ignored.
  RingMemory ring(std::byte* base, int src, int dst, Port port, int channel) const;

 private:
  std::size_t pair_ring_bytes() const;
  std::size_t multicast_ring_bytes() const;
  std::size_t channel_bytes() const;

  int n_ranks_;
  int n_channels_;
  std::uint32_t depth_;
  std::uint32_t lines_per_slot_;
  std::size_t pair_slot_bytes_;
  std::size_t multicast_slot_bytes_;
  std::size_t header_bytes_;
  std::size_t rank_bytes_;
  std::size_t total_bytes_;
};

}  // namespace hocket
