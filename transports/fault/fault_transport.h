// SPDX-License-Identifier: Apache-2.0
// Wraps any transport and misbehaves on request, for tests: see README.md. Executors get rings of its own; pump() carries
// transfers between these and the rings of the wrapped transport, late, out of step with each other, or never.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/mapping.h"
#include "transport.h"

namespace hocket {

struct FaultOptions {
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  std::uint64_t seed = 1;
  // Each transfer is held back for 0 to this many pumps, drawn anew for each, on its way out and again on its way in.
  std::uint32_t most_delay = 0;
  // Rings are served in a new random order in every pump, so that transfers of different rings overtake each other. Within
  // a ring order is the protocol's and stays.
  bool reorder = false;
  // After this many transfers were sent, the next one gets lost, and all that follow on the same ring.
  std::uint64_t drop_after = kNever;
  // After this many pumps, every pump fails.
  std::uint64_t fail_after = kNever;
};

// Every rank of the communicator wraps its transport. One thread at a time, as for the rings themselves.
class FaultTransport final : public Transport {
 public:
  FaultTransport(std::unique_ptr<Transport> inner, const FaultOptions& options);

  std::string_view name() const override { return "fault"; }
  TransportCaps caps() const override { return inner_->caps(); }
  SendRing* sender(const RingKey& key) override;
  RecvRing* receiver(const RingKey& key) override;
  Result<bool> pump() override;

  Transport& inner() { return *inner_; }

 private:
  // A ring of ours and the wrapped one that it stands for.
  struct Link {
    RingKey key;
    Mapping memory;
    SendRing send;  // the two ends of our ring: one is the executor's, pump() uses the other
    RecvRing recv;
    RecvRing* from = nullptr;  // outgoing: from ours to the wrapped one; incoming: the other way
    SendRing* to = nullptr;
    bool outgoing = false;
    bool silent = false;  // has lost a transfer
    bool holds = false;   // the next transfer was seen, and has this many pumps to wait
    std::uint32_t pumps_left = 0;
  };

  Link* find(const RingKey& key, bool outgoing);
  Link* add(const RingKey& key, bool outgoing, const RingMemory& like);
  bool carry(Link& link);
  static bool has_room(Link& link);
  static void hand_over(Link& link, std::uint32_t fingerprint);
  std::uint32_t draw_delay();

  std::unique_ptr<Transport> inner_;
  FaultOptions options_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Link>> links_;  // stable addresses: executors hold the rings
  std::vector<Link*> order_;                  // in which the next pump serves them
  std::uint64_t sent_ = 0;
  std::uint64_t pumps_ = 0;
};

}  // namespace hocket
