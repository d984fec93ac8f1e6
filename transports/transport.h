// SPDX-License-Identifier: Apache-2.0
// The contract of a transport: rings of slots between the ranks of a communicator. Executors write and read slots through
// SendRing and RecvRing (base/ring.h) and know nothing else; a transport whose peers cannot share memory gives rings of its
// own and moves their contents in pump().
#pragma once

#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/ring.h"
#include "plan/plan_request.h"

namespace hocket {

// One FIFO, seen from one rank. On the multicast port, the peer of a sender is kAllPeers.
struct RingKey {
  int peer = 0;
  Port port = Port::pair_a;
  int channel = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  virtual TransportCaps caps() const = 0;  // read by the planner and printed

  // The ends of this rank's rings; owned by the transport, stable until it dies. Null for a key it does not serve.
  virtual SendRing* sender(const RingKey& key) = 0;
  virtual RecvRing* receiver(const RingKey& key) = 0;

  // Moves what waits between rings, for transports that need it; called by a rank that waits. True when something moved.
  virtual Result<bool> pump() { return false; }
};

}  // namespace hocket
