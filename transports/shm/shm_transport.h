// SPDX-License-Identifier: Apache-2.0
// Ranks that share memory: processes of one host over a memfd, threads of one process over plain memory. The same code
// serves both.
#pragma once

#include <memory>
#include <vector>

#include "base/mapping.h"
#include "shm/layout.h"
#include "transport.h"

namespace hocket {

class ShmTransport final : public Transport {
 public:
  // `memory`: layout.total_bytes(), zeroed, mapped by all ranks.
  ShmTransport(int rank, int n_ranks, const ShmLayout& layout, std::shared_ptr<Mapping> memory);

  std::string_view name() const override { return "shm"; }
  TransportCaps caps() const override;
  SendRing* sender(const RingKey& key) override;
  RecvRing* receiver(const RingKey& key) override;

  std::byte* base() const { return memory_->data(); }
  const ShmLayout& layout() const { return layout_; }

 private:
  bool serves(const RingKey& key) const;
  std::size_t index(const RingKey& key) const;

  int rank_;
  int n_ranks_;
  ShmLayout layout_;
  std::shared_ptr<Mapping> memory_;  // shared by the ranks that live in one process
  std::vector<SendRing> senders_;    // by channel, port, peer; multicast in place of peer 0
  std::vector<RecvRing> receivers_;
};

}  // namespace hocket
