// SPDX-License-Identifier: Apache-2.0
#include "shm/layout.h"

#include <algorithm>

namespace hocket {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uint32_t kDepth = kMaxDepth;
constexpr std::size_t kSlotsOfBulk = 8;  // a ring's bulk area, in largest transfers
constexpr std::size_t kPairPorts = 3;
// A ring wants to be larger than a core's own cache: a slot that has left the reader's cache before it is written again
// costs much less than one that has to be taken back from it (measured: 64 KiB ring 7 GB/s, 512 KiB and more 20 GB/s, two
// cores, 1 MiB all-reduce).
constexpr std::size_t kLargestSlot = 128 * 1024;
constexpr std::size_t kSmallestSlot = 2048;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

// Lines, tails and bulk areas of one ring, one after the other.
std::size_t ring_bytes(std::uint32_t depth, std::uint32_t lines_per_slot, std::size_t slot_bytes, int n_tails) {
  return round_up(depth * lines_per_slot * sizeof(SlotLine) + static_cast<std::size_t>(n_tails) * sizeof(TailLine) +
                      kSlotsOfBulk * slot_bytes,
                  kCacheLine);
}

}  // namespace

ShmLayout::ShmLayout(int n_ranks, const Settings& settings)
    : n_ranks_(n_ranks), n_channels_(std::max(1, settings.channels)), depth_(kDepth) {
  const auto peers = static_cast<std::size_t>(std::max(1, n_ranks - 1));
  lines_per_slot_ = n_ranks <= 8 ? 80 : n_ranks <= 32 ? 32 : 4;
  const auto budget = static_cast<std::size_t>(settings.shm_bytes);
  const std::size_t per_ring = budget / static_cast<std::size_t>(n_channels_);
  const auto fit = [&](std::size_t bytes) {
    return std::clamp(bytes / kSlotsOfBulk / kPage * kPage, kSmallestSlot, kLargestSlot);
  };
  pair_slot_bytes_ = fit(per_ring / (kPairPorts + 1) / peers);
  multicast_slot_bytes_ = fit(per_ring / (kPairPorts + 1));
  if (settings.slot_bytes != 0) {
    pair_slot_bytes_ = round_up(static_cast<std::size_t>(settings.slot_bytes), kCacheLine);
    multicast_slot_bytes_ = pair_slot_bytes_;
  }
  header_bytes_ =
      round_up(sizeof(SleeperCount) + static_cast<std::size_t>(n_ranks) * (sizeof(BellLine) + sizeof(CpuSet)), kPage);
  rank_bytes_ = round_up(static_cast<std::size_t>(n_channels_) * channel_bytes(), kPage);
  total_bytes_ = header_bytes_ + static_cast<std::size_t>(n_ranks) * rank_bytes_;
}

std::size_t ShmLayout::pair_ring_bytes() const { return ring_bytes(depth_, lines_per_slot_, pair_slot_bytes_, 1); }
std::size_t ShmLayout::multicast_ring_bytes() const {
  return ring_bytes(depth_, lines_per_slot_, multicast_slot_bytes_, n_ranks_);
}

std::size_t ShmLayout::channel_bytes() const {
  return multicast_ring_bytes() + static_cast<std::size_t>(n_ranks_ - 1) * kPairPorts * pair_ring_bytes();
}

RingMemory ShmLayout::ring(std::byte* base, int src, int dst, Port port, int channel) const {
  const bool multicast = port == Port::multicast;
  const int owner = multicast ? src : dst;
  std::size_t offset = header_bytes_ + static_cast<std::size_t>(owner) * rank_bytes_;
  offset += static_cast<std::size_t>(channel) * channel_bytes();
  if (!multicast) {
    const std::size_t port_index = port == Port::pair_a ? 0 : port == Port::pair_b ? 1 : 2;
    const auto peer_index = static_cast<std::size_t>(src < dst ? src : src - 1);
    offset += multicast_ring_bytes() +
              (port_index * static_cast<std::size_t>(n_ranks_ - 1) + peer_index) * pair_ring_bytes();
  }
  RingMemory memory;
  memory.depth = depth_;
  memory.lines_per_slot = lines_per_slot_;
  memory.slot_bytes = multicast ? multicast_slot_bytes_ : pair_slot_bytes_;
  memory.bulk_bytes = kSlotsOfBulk * memory.slot_bytes;
  memory.lines = reinterpret_cast<SlotLine*>(base + offset);
  offset += depth_ * lines_per_slot_ * sizeof(SlotLine);
  memory.tails = reinterpret_cast<TailLine*>(base + offset);
  offset += static_cast<std::size_t>(multicast ? n_ranks_ : 1) * sizeof(TailLine);
  memory.bulk = base + offset;
  return memory;
}

}  // namespace hocket
