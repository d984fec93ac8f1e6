// SPDX-License-Identifier: Apache-2.0
// The last collective calls of a communicator, written by the thread that calls and read by the control thread when a peer
// asks "what are you doing?". Writing is a few plain stores; a reader that meets a write in progress finds nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "control/control.h"

namespace hocket {

class CallHistory {
 public:
  void add(const CallRecord& record) {
    Entry& entry = entries_[record.sequence % kRemembered];
    // Marks the entry as being written before its fields change. Pairs with: the second look in find().
    entry.sequence.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.kind.store(static_cast<std::uint64_t>(record.collective) | static_cast<std::uint64_t>(record.vector_form) << 8 |
                         static_cast<std::uint64_t>(record.datatype) << 16 |
                         static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.root)) << 32,
                     std::memory_order_relaxed);
    entry.op.store(record.op, std::memory_order_relaxed);
    entry.count.store(record.count, std::memory_order_relaxed);
    // Publishes the fields. Pairs with: the acquire in find().
    entry.sequence.store(record.sequence, std::memory_order_release);
    current_.store(record.sequence, std::memory_order_relaxed);  // a hint for messages; orders nothing
  }

  std::uint64_t current() const { return current_.load(std::memory_order_relaxed); }

  std::optional<CallRecord> find(std::uint64_t sequence) const {
    const Entry& entry = entries_[sequence % kRemembered];
    if (sequence == 0 || entry.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
    CallRecord record;
    record.sequence = sequence;
    const std::uint64_t kind = entry.kind.load(std::memory_order_relaxed);
    record.collective = static_cast<std::uint8_t>(kind);
    record.vector_form = static_cast<std::uint8_t>(kind >> 8);
    record.datatype = static_cast<std::uint8_t>(kind >> 16);
    record.root = static_cast<std::int32_t>(kind >> 32);
    record.op = entry.op.load(std::memory_order_relaxed);
    record.count = entry.count.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (entry.sequence.load(std::memory_order_relaxed) != sequence) return std::nullopt;
    return record;
  }

 private:
  static constexpr std::size_t kRemembered = 64;
  struct Entry {
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> kind{0};
    std::atomic<std::int32_t> op{0};
    std::atomic<std::uint64_t> count{0};
  };
  std::array<Entry, kRemembered> entries_;
  std::atomic<std::uint64_t> current_{0};
};

}  // namespace hocket
