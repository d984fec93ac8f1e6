// SPDX-License-Identifier: Apache-2.0
#include "shm/shm_transport.h"

namespace hocket {

ShmTransport::ShmTransport(int rank, int n_ranks, const ShmLayout& layout, std::shared_ptr<Mapping> memory)
    : rank_(rank), n_ranks_(n_ranks), layout_(layout), memory_(std::move(memory)) {
  const auto count = static_cast<std::size_t>(layout_.n_channels() * kPortCount * n_ranks_);
  senders_.resize(count);
  receivers_.resize(count);
  for (int channel = 0; channel < layout_.n_channels(); ++channel) {
    for (int peer = 0; peer < n_ranks_; ++peer) {
      if (peer == rank_) continue;
      for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p}) {
        const RingKey key{peer, port, channel};
        senders_[index(key)] = SendRing(layout_.ring(base(), rank_, peer, port, channel), 1, -1);
        receivers_[index(key)] = RecvRing(layout_.ring(base(), peer, rank_, port, channel), 0);
      }
      const RingKey key{peer, Port::multicast, channel};
      receivers_[index(key)] = RecvRing(layout_.ring(base(), peer, 0, Port::multicast, channel), rank_);
    }
    senders_[index({kAllPeers, Port::multicast, channel})] =
        SendRing(layout_.ring(base(), rank_, 0, Port::multicast, channel), n_ranks_, rank_);
  }
}

std::size_t ShmTransport::index(const RingKey& key) const {
  const int peer = key.peer == kAllPeers ? rank_ : key.peer;
  return static_cast<std::size_t>((key.channel * kPortCount + static_cast<int>(key.port)) * n_ranks_ + peer);
}

bool ShmTransport::serves(const RingKey& key) const {
  return key.peer >= kAllPeers && key.peer < n_ranks_ && key.peer != rank_ && key.channel >= 0 &&
         key.channel < layout_.n_channels() && static_cast<int>(key.port) < kPortCount;
}

SendRing* ShmTransport::sender(const RingKey& key) {
  const bool multicast = key.port == Port::multicast;
  return serves(key) && multicast == (key.peer == kAllPeers) ? &senders_[index(key)] : nullptr;
}

RecvRing* ShmTransport::receiver(const RingKey& key) {
  return serves(key) && key.peer != kAllPeers ? &receivers_[index(key)] : nullptr;
}

TransportCaps ShmTransport::caps() const {
  TransportCaps caps;
  caps.slots = static_cast<int>(layout_.depth());
  caps.slot_bytes = layout_.slot_bytes();
  caps.ll_bytes = layout_.ll_bytes();
  return caps;
}

}  // namespace hocket
