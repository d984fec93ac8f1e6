// SPDX-License-Identifier: Apache-2.0
#include "fault/fault_transport.h"

#include <algorithm>
#include <cstring>

namespace hocket {
namespace {

bool same(const RingKey& a, const RingKey& b) { return a.peer == b.peer && a.port == b.port && a.channel == b.channel; }

std::size_t row_bytes(const RingMemory& ring) { return ring.depth * ring.lines_per_slot * sizeof(SlotLine); }
std::size_t total_bytes(const RingMemory& ring) { return row_bytes(ring) + sizeof(TailLine) + ring.slot_bytes; }

// A ring with one consumer, like `like` but for a bulk area of one transfer: then every bulk transfer starts where the area
// starts, and the sizes of those before it, which only the executors know, do not matter.
RingMemory lay_out(std::byte* base, const RingMemory& like) {
  RingMemory ring = like;
  ring.lines = reinterpret_cast<SlotLine*>(base);
  ring.tails = reinterpret_cast<TailLine*>(base + row_bytes(like));
  ring.bulk = base + row_bytes(like) + sizeof(TailLine);
  ring.bulk_bytes = ring.slot_bytes;
  return ring;
}

// Whole rows and areas are carried: how much of them a transfer uses, only its two ends know, and neither minds more.
void copy_slot(const RecvRing& from, const SendRing& to) {
  for (std::size_t i = 0; i < from.memory().lines_per_slot; ++i)
    std::memcpy(to.lines()[i].data, from.lines()[i].data, kLinePayload);
  std::memcpy(to.bulk(), from.bulk(), from.memory().slot_bytes);
}

}  // namespace

FaultTransport::FaultTransport(std::unique_ptr<Transport> inner, const FaultOptions& options)
    : inner_(std::move(inner)), options_(options), random_(options.seed) {}

FaultTransport::Link* FaultTransport::find(const RingKey& key, bool outgoing) {
  const auto found = std::find_if(links_.begin(), links_.end(),
                                  [&](const auto& link) { return link->outgoing == outgoing && same(link->key, key); });
  return found == links_.end() ? nullptr : found->get();
}

FaultTransport::Link* FaultTransport::add(const RingKey& key, bool outgoing, const RingMemory& like) {
  auto memory = Mapping::anonymous(total_bytes(like));
  if (!memory) return nullptr;
  auto link = std::make_unique<Link>();
  link->key = key;
  link->outgoing = outgoing;
  link->memory = std::move(*memory);
  const RingMemory ring = lay_out(link->memory.data(), like);
  link->send = SendRing(ring, 1, -1);
  link->recv = RecvRing(ring, 0);
  order_.push_back(link.get());
  links_.push_back(std::move(link));
  return links_.back().get();
}

SendRing* FaultTransport::sender(const RingKey& key) {
  if (Link* known = find(key, true)) return &known->send;
  SendRing* wrapped = inner_->sender(key);
  if (wrapped == nullptr) return nullptr;
  Link* link = add(key, true, wrapped->memory());
  if (link == nullptr) return nullptr;
  link->from = &link->recv;
  link->to = wrapped;
  return &link->send;
}

RecvRing* FaultTransport::receiver(const RingKey& key) {
  if (Link* known = find(key, false)) return &known->recv;
  RecvRing* wrapped = inner_->receiver(key);
  if (wrapped == nullptr) return nullptr;
  Link* link = add(key, false, wrapped->memory());
  if (link == nullptr) return nullptr;
  link->from = wrapped;
  link->to = &link->send;
  return &link->recv;
}

std::uint32_t FaultTransport::draw_delay() {
  return options_.most_delay == 0 ? 0 : static_cast<std::uint32_t>(random_() % (options_.most_delay + 1));
}

// The next transfer of one ring, at most.
bool FaultTransport::carry(Link& link) {
  // What the executor or the peer's wrapper has published, whatever its fingerprint. Pairs with: the release in
  // SendRing::commit(). Line 0 is enough: the executor has written all its lines on this very thread, and wrappers stamp
  // line 0 after everything else.
  const std::uint64_t stamp = link.from->lines()->stamp.load(std::memory_order_acquire);
  if (stamp >> kFingerprintBits != link.from->transfer() + 1) return false;
  if (!link.holds) {
    link.holds = true;
    link.pumps_left = draw_delay();
  }
  if (link.pumps_left > 0) {
    --link.pumps_left;
    return false;
  }
  if (!link.silent && !has_room(link)) return false;
  link.holds = false;
  if (link.outgoing && !link.silent) link.silent = sent_++ == options_.drop_after;
  if (link.silent) {
    link.from->release();
    return false;
  }
  hand_over(link, static_cast<std::uint32_t>(stamp & kFingerprintMask));
  return true;
}

// The area of our own ring has room for one transfer: the executor has passed on the last one.
bool FaultTransport::has_room(Link& link) {
  return link.outgoing ? link.to->can_send() : link.send.transfer() == link.recv.transfer();
}

void FaultTransport::hand_over(Link& link, std::uint32_t fingerprint) {
  const RingMemory& memory = link.from->memory();
  copy_slot(*link.from, *link.to);
  if (link.outgoing) {
    link.to->commit_bulk(fingerprint, memory.slot_bytes);
    link.from->release();
  } else {
    link.to->commit(fingerprint, memory.lines_per_slot);
    link.from->release_bulk(memory.slot_bytes);
  }
}

Result<bool> FaultTransport::pump() {
  if (pumps_ >= options_.fail_after)
    return fail(hocketSystemError, "fault: {} between its ranks fails after {} pumps, as FaultOptions::fail_after asks",
                inner_->name(), options_.fail_after);
  ++pumps_;
  if (options_.reorder) std::shuffle(order_.begin(), order_.end(), random_);
  bool moved = false;
  for (Link* link : order_) moved |= carry(*link);
  return moved;
}

}  // namespace hocket
