// SPDX-License-Identifier: Apache-2.0
// The slot protocol under stress: made for ThreadSanitizer, which sees a missing order whatever the machine does with it.
//
// How a weakened order is found: Protocol below is the ring's protocol once more, in its barest form, with the four memory
// orders as parameters. Under ThreadSanitizer, a run with the orders of base/ring.h is clean and a run with any one of them
// relaxed ends with "data race"; without it, only the right orders are run.
#include "base/ring.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace hocket {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif

constexpr std::uint64_t kTransfers = kThreadSanitizer ? 20000 : 100000;

// Where a ring lies in ordinary memory.
class RingBuffer {
 public:
  RingBuffer(int n_tails, std::uint32_t depth, std::uint32_t lines_per_slot, std::size_t slot_bytes,
             std::size_t bulk_bytes)
      : lines_(new SlotLine[depth * lines_per_slot]()),
        tails_(new TailLine[static_cast<std::size_t>(n_tails)]()),
        bulk_(bulk_bytes) {
    memory_.lines = lines_.get();
    memory_.tails = tails_.get();
    memory_.bulk = bulk_.data();
    memory_.depth = depth;
    memory_.lines_per_slot = lines_per_slot;
    memory_.slot_bytes = slot_bytes;
    memory_.bulk_bytes = bulk_bytes;
  }
  const RingMemory& memory() const { return memory_; }

 private:
  std::unique_ptr<SlotLine[]> lines_;
  std::unique_ptr<TailLine[]> tails_;
  std::vector<std::byte> bulk_;
  RingMemory memory_;
};

// What transfer k is, known to both ends.
struct Transfer {
  std::uint64_t k = 0;
  std::size_t bytes = 0;
  bool ll = false;

  std::uint32_t fingerprint() const { return static_cast<std::uint32_t>(k * 2654435761u >> 7); }
  std::size_t lines() const { return ll ? lines_for(bytes) : 1; }
  std::byte at(std::size_t i) const { return static_cast<std::byte>(k * 31 + i * 7); }
};

enum class Mix { ll, bulk, both };

Transfer transfer(std::uint64_t k, Mix mix, const RingMemory& memory) {
  const std::uint64_t draw = (k + 1) * 0x9e3779b97f4a7c15u;
  Transfer made{k, 0, mix == Mix::ll || (mix == Mix::both && (draw >> 20) % 2 == 0)};
  const std::size_t limit = made.ll ? memory.ll_bytes() : memory.slot_bytes;
  made.bytes = (draw >> 32) % 5 == 0 ? limit : (draw >> 40) % (limit + 1);
  return made;
}

// Lets the other side run: now and then, so that both a full and an empty ring occur.
void stall(std::mt19937& random) {
  const std::uint32_t draw = random() % 256;
  if (draw == 0) ::sched_yield();
  for (std::uint32_t i = 0; i < draw; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Waits for a condition; false when it does not come, or when the other side has given up.
class Patience {
 public:
  template <class Condition>
  bool await(Condition&& condition) {
    if (condition()) return true;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      ::sched_yield();
      if (given_up_.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() > deadline) return give_up();
    }
    return true;
  }
  bool give_up() {
    given_up_.store(true, std::memory_order_relaxed);
    return false;
  }
  bool ended_early() const { return given_up_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> given_up_{false};
};

void produce(SendRing ring, Mix mix, Patience& patience) {
  std::mt19937 random(1);
  std::vector<std::byte> payload(std::max(ring.memory().ll_bytes(), ring.memory().slot_bytes));
  for (std::uint64_t k = 0; k < kTransfers; ++k) {
    const Transfer next = transfer(k, mix, ring.memory());
    for (std::size_t i = 0; i < next.bytes; ++i) payload[i] = next.at(i);
    if (!patience.await([&] { return ring.can_send(); })) return;
    if (next.ll) {
      fill_lines(ring.lines(), payload.data(), next.bytes);
      ring.commit(next.fingerprint(), next.lines());
    } else {
      std::memcpy(ring.bulk(), payload.data(), next.bytes);
      ring.commit_bulk(next.fingerprint(), next.bytes);
    }
    stall(random);
  }
}

// Returns how many transfers were not what was sent.
std::uint64_t consume(RecvRing ring, Mix mix, std::uint32_t seed, Patience& patience) {
  std::mt19937 random(seed);
  std::uint64_t wrong = 0;
  std::vector<std::byte> payload(std::max(ring.memory().ll_bytes(), ring.memory().slot_bytes));
  for (std::uint64_t k = 0; k < kTransfers; ++k) {
    const Transfer next = transfer(k, mix, ring.memory());
    const auto arrived = [&] {
      return ring.ready(next.fingerprint(), next.lines()) || ring.mismatched(next.fingerprint());
    };
    if (!patience.await(arrived)) return wrong;
    if (!ring.ready(next.fingerprint(), next.lines())) return patience.give_up(), wrong + 1;
    if (next.ll)
      drain_lines(ring.lines(), payload.data(), next.bytes);
    else
      std::memcpy(payload.data(), ring.bulk(), next.bytes);
    bool right = true;
    for (std::size_t i = 0; i < next.bytes; ++i) right &= payload[i] == next.at(i);
    wrong += right ? 0 : 1;
    if (next.ll)
      ring.release();
    else
      ring.release_bulk(next.bytes);
    stall(random);
  }
  return wrong;
}

// One producer; tail `skip` belongs to nobody.
void stress(int n_tails, int skip, Mix mix, std::size_t bulk_slots) {
  const RingBuffer buffer(n_tails, 8, 5, 320, bulk_slots * 320);
  Patience patience;
  std::vector<std::thread> threads;
  std::vector<std::uint64_t> wrong(static_cast<std::size_t>(n_tails));
  for (int tail = 0; tail < n_tails; ++tail)
    if (tail != skip)
      threads.emplace_back([&, tail] {
        wrong[static_cast<std::size_t>(tail)] =
            consume(RecvRing(buffer.memory(), tail), mix, static_cast<std::uint32_t>(tail) + 9, patience);
      });
  produce(SendRing(buffer.memory(), n_tails, skip), mix, patience);
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t n : wrong) EXPECT_EQ(n, 0u);
  EXPECT_FALSE(patience.ended_early()) << "a wait did not end";
}

TEST(RingStress, OneConsumerLines) { stress(1, -1, Mix::ll, 4); }
TEST(RingStress, OneConsumerBulk) { stress(1, -1, Mix::bulk, 4); }
TEST(RingStress, OneConsumerBoth) { stress(1, -1, Mix::both, 4); }
TEST(RingStress, BulkAreaOfOneTransfer) { stress(1, -1, Mix::both, 1); }
TEST(RingStress, BulkAreaLargerThanAllSlots) { stress(1, -1, Mix::both, 9); }
TEST(RingStress, ThreeConsumersLines) { stress(4, 2, Mix::ll, 3); }
TEST(RingStress, ThreeConsumersBulk) { stress(4, 0, Mix::bulk, 3); }
TEST(RingStress, ThreeConsumersBoth) { stress(4, 3, Mix::both, 3); }

// ---- The bulk area, by itself ----

// No transfer is written over one that a consumer still reads, for any order of sizes and releases.
TEST(Ring, BulkTransfersNeverOverlap) {
  for (const std::size_t bulk_slots : {1, 2, 3, 8}) {
    const RingBuffer buffer(1, 8, 1, 320, bulk_slots * 320);
    SendRing send(buffer.memory(), 1, -1);
    RecvRing recv(buffer.memory(), 0);
    struct Piece {
      const std::byte* begin;
      std::size_t bytes;
    };
    std::vector<Piece> in_flight;
    std::mt19937 random(3);
    for (int turn = 0; turn < 20000; ++turn) {
      if (random() % 2 == 0 && send.can_send()) {
        const std::size_t bytes = random() % 321;
        const Piece piece{send.bulk(), bytes};
        ASSERT_GE(piece.begin, buffer.memory().bulk);
        ASSERT_LE(piece.begin + 320, buffer.memory().bulk + buffer.memory().bulk_bytes)
            << "a largest transfer fits in one piece";
        for (const Piece& other : in_flight)
          ASSERT_TRUE(piece.begin + piece.bytes <= other.begin || other.begin + other.bytes <= piece.begin);
        in_flight.push_back(piece);
        send.commit_bulk(1, bytes);
      } else if (!in_flight.empty() && random() % 2 == 0) {
        ASSERT_TRUE(recv.ready(1, 1));
        ASSERT_EQ(recv.bulk(), in_flight.front().begin) << "both ends move the same cursor";
        recv.release_bulk(in_flight.front().bytes);
        in_flight.erase(in_flight.begin());
      }
      ASSERT_LE(in_flight.size(), 8u);
    }
    while (!in_flight.empty()) {
      recv.release_bulk(in_flight.front().bytes);
      in_flight.erase(in_flight.begin());
    }
    EXPECT_TRUE(send.can_send()) << "an empty ring has room";
  }
}

TEST(Ring, SmallTransfersOnlyEverWaitForSlots) {
  const RingBuffer buffer(1, 8, 1, 320, 320);
  SendRing send(buffer.memory(), 1, -1);
  for (int k = 0; k < 8; ++k) {
    ASSERT_TRUE(send.can_send());
    send.commit(1, 1);
  }
  EXPECT_FALSE(send.can_send());
}

// ---- Weakened orders ----

template <std::memory_order kPublish, std::memory_order kObserve, std::memory_order kGiveBack,
          std::memory_order kTakeBack>
class Protocol {
 public:
  bool put(std::uint64_t k) {
    if (k - tail_.load(kTakeBack) >= kDepth) return false;
    Slot& slot = slots_[k % kDepth];
    slot.line = k;
    slot.bulk = ~k;
    slot.stamp.store(k + 1, kPublish);
    return true;
  }
  bool get(std::uint64_t k) {
    Slot& slot = slots_[k % kDepth];
    if (slot.stamp.load(kObserve) != k + 1) return false;
    if (slot.line != k || slot.bulk != ~k) std::abort();
    tail_.store(k + 1, kGiveBack);
    return true;
  }

 private:
  static constexpr std::uint64_t kDepth = 8;
  struct Slot {
    std::uint64_t line = 0;
    std::uint64_t bulk = 0;
    std::atomic<std::uint64_t> stamp{0};
  };
  std::array<Slot, kDepth> slots_;
  std::atomic<std::uint64_t> tail_{0};
};

template <std::memory_order kPublish, std::memory_order kObserve, std::memory_order kGiveBack,
          std::memory_order kTakeBack>
void run_protocol() {
  Protocol<kPublish, kObserve, kGiveBack, kTakeBack> protocol;
  constexpr std::uint64_t kCount = 5000;
  std::thread consumer([&] {
    for (std::uint64_t k = 0; k < kCount;)
      if (protocol.get(k))
        ++k;
      else
        ::sched_yield();
  });
  for (std::uint64_t k = 0; k < kCount;)
    if (protocol.put(k))
      ++k;
    else
      ::sched_yield();
  consumer.join();
}

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;

TEST(RingOrders, AsTheyAre) { run_protocol<kRelease, kAcquire, kRelease, kAcquire>(); }

template <std::memory_order kPublish, std::memory_order kObserve, std::memory_order kGiveBack,
          std::memory_order kTakeBack>
void expect_found() {
  if (!kThreadSanitizer) GTEST_SKIP() << "only ThreadSanitizer sees it on every machine";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT((run_protocol<kPublish, kObserve, kGiveBack, kTakeBack>(), std::exit(0)), testing::ExitedWithCode(66),
              "data race");
}
TEST(RingOrders, RelaxedPublishIsFound) { expect_found<kRelaxed, kAcquire, kRelease, kAcquire>(); }
TEST(RingOrders, RelaxedLookForATransferIsFound) { expect_found<kRelease, kRelaxed, kRelease, kAcquire>(); }
TEST(RingOrders, RelaxedGivingBackIsFound) { expect_found<kRelease, kAcquire, kRelaxed, kAcquire>(); }
TEST(RingOrders, RelaxedLookForCreditIsFound) { expect_found<kRelease, kAcquire, kRelease, kRelaxed>(); }

}  // namespace
}  // namespace hocket
