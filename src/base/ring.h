// SPDX-License-Identifier: Apache-2.0
// The slot protocol: a FIFO of fixed-size slots in memory that the producer and every consumer map. The page
// docs/concepts/slot-protocol.md has the two-thread diagram and the reason for each memory order.
//
// A slot is a row of 64-byte lines, each with 56 bytes of payload and a stamp. A small transfer (ll) puts payload and stamp
// of each line together: one hand-over of a cache line carries both. A large one (simple) writes its payload to the ring's
// bulk area, then stamps line 0 of its slot. Bulk payloads follow one another around the area, whatever their size: a line
// is written again as late as can be, when it has left the reader's own cache, which makes the write several times cheaper.
//
// Invariants: 0 <= head - tail <= depth for every consumer; the producer owns head, each consumer its own tail. Counters are
// 64-bit, start at 0 and only grow; transfer k uses slot k % depth. The stamp of transfer k is made of k + 1, so a slot's
// stale stamp never equals the awaited one. Both ends move the same cursor around the bulk area, from the same sizes; at the
// cursor there are always slot_bytes in one piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hocket {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::size_t kLinePayload = 56;
inline constexpr std::uint32_t kMaxDepth = 16;

struct alignas(kCacheLine) SlotLine {
  std::byte data[kLinePayload];
  std::atomic<std::uint64_t> stamp;
};
static_assert(sizeof(SlotLine) == kCacheLine);

struct alignas(kCacheLine) TailLine {
  std::atomic<std::uint64_t> released;  // transfers that this consumer has passed on
};
static_assert(sizeof(TailLine) == kCacheLine);

// Fingerprints say what call a transfer belongs to: both ends compute it from their own arguments, so data of a different
// call are never taken for the awaited ones.
inline constexpr int kFingerprintBits = 24;
inline constexpr std::uint64_t kFingerprintMask = (std::uint64_t{1} << kFingerprintBits) - 1;

constexpr std::uint64_t make_stamp(std::uint64_t transfer, std::uint32_t fingerprint) {
  return ((transfer + 1) << kFingerprintBits) | (fingerprint & kFingerprintMask);
}

constexpr std::size_t lines_for(std::size_t bytes) {
  return bytes <= kLinePayload ? 1 : (bytes + kLinePayload - 1) / kLinePayload;
}

// Where the parts of one ring lie. All of it is shared; plain addresses because every rank maps it on its own.
struct RingMemory {
  SlotLine* lines = nullptr;   // depth rows of lines_per_slot
  std::byte* bulk = nullptr;   // bulk_bytes
  TailLine* tails = nullptr;   // one per consumer
  std::uint32_t depth = 0;     // a power of two, at most kMaxDepth
  std::uint32_t lines_per_slot = 0;
  std::size_t slot_bytes = 0;  // the largest transfer
  std::size_t bulk_bytes = 0;  // several times that

  SlotLine* row(std::uint64_t transfer) const { return lines + (transfer & (depth - 1)) * lines_per_slot; }
  // The cursor after a transfer of `bytes` at `cursor`. Cursors only grow; their place in the area is cursor % bulk_bytes.
  std::uint64_t next_cursor(std::uint64_t cursor, std::size_t bytes) const {
    cursor += (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
    const std::size_t at = cursor % bulk_bytes;
    return at + slot_bytes <= bulk_bytes ? cursor : cursor + (bulk_bytes - at);
  }
  std::size_t ll_bytes() const { return lines_per_slot * kLinePayload; }
};

// Copies `bytes` of contiguous payload into or out of lines.
inline void fill_lines(SlotLine* lines, const void* from, std::size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  for (; bytes > kLinePayload; bytes -= kLinePayload, source += kLinePayload, ++lines)
    std::memcpy(lines->data, source, kLinePayload);
  std::memcpy(lines->data, source, bytes);
}
inline void drain_lines(const SlotLine* lines, void* to, std::size_t bytes) {
  auto* sink = static_cast<std::byte*>(to);
  for (; bytes > kLinePayload; bytes -= kLinePayload, sink += kLinePayload, ++lines)
    std::memcpy(sink, lines->data, kLinePayload);
  std::memcpy(sink, lines->data, bytes);
}

// The producer's end. One thread at a time.
class SendRing {
 public:
  SendRing() = default;
  // The consumers' tails are memory.tails[tail_index(0..n_consumers-1)]; `skip` (or -1) is an index that is not a consumer.
  SendRing(const RingMemory& memory, int n_tails, int skip) : memory_(memory), n_tails_(n_tails), skip_(skip) {
    writable_until_ = memory.depth;
    bulk_until_ = memory.bulk_bytes;
  }

  // A slot is free for the next transfer.
  bool can_send() { return head_ < writable_until_ || refresh_credit(); }

  std::uint64_t transfer() const { return head_; }
  SlotLine* lines() const { return memory_.row(head_); }
  std::byte* bulk() const { return memory_.bulk + cursor_ % memory_.bulk_bytes; }
  const RingMemory& memory() const { return memory_; }

  // Publishes the next transfer, which has been written at bulk().
  void commit_bulk(std::uint32_t fingerprint, std::size_t bytes) {
    const std::uint64_t next = memory_.next_cursor(cursor_, bytes);
    commit(fingerprint, 1);
    cursor_ = next;
    await_room();
  }

  // Publishes the next transfer, whose first `n_lines` lines have been written.
  void commit(std::uint32_t fingerprint, std::size_t n_lines) {
    const std::uint64_t stamp = make_stamp(head_, fingerprint);
    SlotLine* line = lines();
    // Publishes the payload of the line, and for line 0 of a simple transfer the bulk area. Pairs with: the acquire in
    // RecvRing::ready(). Not seq_cst: one writer, and the reader orders nothing against another variable.
    for (std::size_t i = 0; i < n_lines; ++i) line[i].stamp.store(stamp, std::memory_order_release);
    starts_[head_ & (memory_.depth - 1)] = cursor_;
    ++head_;
  }

 private:
  bool refresh_credit() {
    std::uint64_t released = ~std::uint64_t{0};
    for (int i = 0; i < n_tails_; ++i) {
      if (i == skip_) continue;
      // The consumer has read the slot before we write it again. Pairs with: the release in RecvRing::release().
      const std::uint64_t tail = memory_.tails[i].released.load(std::memory_order_acquire);
      released = tail < released ? tail : released;
    }
    writable_until_ = released + memory_.depth;
    bulk_until_ = (released == head_ ? cursor_ : starts_[released & (memory_.depth - 1)]) + memory_.bulk_bytes;
    await_room();
    return head_ < writable_until_;
  }

  // Without room for a largest transfer at the cursor no slot is writable: can_send() then has one comparison to make.
  void await_room() {
    if (cursor_ + memory_.slot_bytes > bulk_until_) writable_until_ = head_;
  }

  RingMemory memory_;
  int n_tails_ = 0;
  int skip_ = -1;
  std::uint64_t head_ = 0;
  std::uint64_t writable_until_ = 0;  // as of the last look at the tails
  std::uint64_t cursor_ = 0;
  std::uint64_t bulk_until_ = 0;      // likewise
  std::uint64_t starts_[kMaxDepth] = {};  // cursor of each transfer in flight
};

// A consumer's end. One thread at a time.
class RecvRing {
 public:
  RecvRing() = default;
  RecvRing(const RingMemory& memory, int tail_index) : memory_(memory), tail_(&memory.tails[tail_index]) {}

  // The next transfer, of `n_lines` stamped lines, is here.
  bool ready(std::uint32_t fingerprint, std::size_t n_lines) const {
    const std::uint64_t stamp = make_stamp(next_, fingerprint);
    const SlotLine* line = lines();
    // The last line first: the producer writes it last. Pairs with: the release in SendRing::commit().
    for (std::size_t i = n_lines; i-- > 0;)
      if (line[i].stamp.load(std::memory_order_acquire) != stamp) return false;
    return true;
  }

  // The next transfer is here but belongs to another call than the awaited one. For the slow path of a wait.
  bool mismatched(std::uint32_t fingerprint) const {
    const std::uint64_t stamp = lines()->stamp.load(std::memory_order_acquire);
    return (stamp >> kFingerprintBits) == next_ + 1 && (stamp & kFingerprintMask) != (fingerprint & kFingerprintMask);
  }

  const SlotLine* lines() const { return memory_.row(next_); }
  const std::byte* bulk() const { return memory_.bulk + cursor_ % memory_.bulk_bytes; }
  const RingMemory& memory() const { return memory_; }
  std::uint64_t transfer() const { return next_; }

  // Gives back a transfer of `bytes` that was read at bulk().
  void release_bulk(std::size_t bytes) {
    cursor_ = memory_.next_cursor(cursor_, bytes);
    release();
  }

  // Gives the slot back.
  void release() {
    ++next_;
    // Our reads of the slot come before the producer's next writes. Pairs with: the acquire in SendRing::refresh_credit().
    tail_->released.store(next_, std::memory_order_release);
  }

 private:
  RingMemory memory_;
  TailLine* tail_ = nullptr;
  std::uint64_t next_ = 0;
  std::uint64_t cursor_ = 0;
};

}  // namespace hocket
