// SPDX-License-Identifier: Apache-2.0
// What every transport promises, asked of each of them: a new one is added to kinds() and nowhere else.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "transport/ranks.h"

namespace hocket {
namespace {

std::vector<Kind> kinds() {
  FaultOptions late;
  late.most_delay = 3;
  late.reorder = true;
  FaultOptions later = late;
  later.seed = 2;
  later.most_delay = 11;
  FaultOptions plain;
  plain.seed = 3;
  return {
      {.name = "shm_threads", .fault = {}},
      {.name = "shm_threads_crowded", .crowded = true, .fault = {}},
      {.name = "shm_processes", .processes = true, .fault = {}},
      {.name = "shm_processes_crowded", .processes = true, .crowded = true, .fault = {}},
      {.name = "fault_threads_plain", .fault = plain},
      {.name = "fault_threads_late", .fault = late},
      {.name = "fault_threads_later", .crowded = true, .fault = later},
      {.name = "fault_processes_late", .processes = true, .fault = late},
  };
}

class TransportSuite : public testing::TestWithParam<Kind> {};

constexpr Port kPairPorts[] = {Port::pair_a, Port::pair_b, Port::p2p};

// ---- Transfers whose contents tell where they come from ----

// One FIFO, named alike by both ends.
struct Stream {
  int source = 0;
  int sink = 0;  // kAllPeers: multicast
  Port port = Port::pair_a;
  int channel = 0;

  std::uint64_t number() const {
    return static_cast<std::uint64_t>(source) | static_cast<std::uint64_t>(sink + 1) << 8 |
           static_cast<std::uint64_t>(port) << 16 | static_cast<std::uint64_t>(channel) << 24;
  }
  RingKey from_source() const { return {sink, port, channel}; }
  RingKey from_sink() const { return {source, port, channel}; }
};

struct Size {
  std::size_t bytes = 0;
  bool ll = false;

  std::size_t lines() const { return ll ? lines_for(bytes) : 1; }
};

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t hash = (a + 1) * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xd6e8feb86659fd93u;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15u;
}
std::uint32_t fingerprint_of(const Stream& stream, std::uint64_t k) {
  return static_cast<std::uint32_t>(mixed(stream.number(), k) >> 40);
}

std::vector<std::byte> contents_of(const Stream& stream, std::uint64_t k, std::size_t bytes) {
  std::vector<std::byte> contents;
  contents.reserve(bytes + 1);  // an address even where there is nothing
  contents.resize(bytes);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 8 == 0) word = mixed(mixed(stream.number(), k), i);
    contents[i] = static_cast<std::byte>(word >> (i % 8 * 8));
  }
  return contents;
}

// The ring has a free slot.
void put(SendRing& ring, const Stream& stream, std::uint64_t k, const Size& size) {
  const std::vector<std::byte> contents = contents_of(stream, k, size.bytes);
  if (size.ll) {
    fill_lines(ring.lines(), contents.data(), size.bytes);
    ring.commit(fingerprint_of(stream, k), size.lines());
  } else {
    if (size.bytes != 0) std::memcpy(ring.bulk(), contents.data(), size.bytes);
    ring.commit_bulk(fingerprint_of(stream, k), size.bytes);
  }
}

// The transfer is here.
void get(RecvRing& ring, const Stream& stream, std::uint64_t k, const Size& size) {
  std::vector<std::byte> contents;
  contents.reserve(size.bytes + 1);
  contents.resize(size.bytes);
  if (size.ll)
    drain_lines(ring.lines(), contents.data(), size.bytes);
  else if (size.bytes != 0)
    std::memcpy(contents.data(), ring.bulk(), size.bytes);
  if (contents != contents_of(stream, k, size.bytes))
    throw std::runtime_error(fmt::format(
        "transfer {} from {} to {} on {}, channel {}: {} bytes ({}) are not what was sent", k, stream.source,
        stream.sink, to_string(stream.port), stream.channel, size.bytes, size.ll ? "ll" : "simple"));
  if (size.ll)
    ring.release();
  else
    ring.release_bulk(size.bytes);
}

void send(Rank& rank, SendRing& ring, const Stream& stream, std::uint64_t k, const Size& size) {
  rank.until("a free slot", [&] { return ring.can_send(); });
  put(ring, stream, k, size);
  rank.bells().ring();
}
void receive(Rank& rank, RecvRing& ring, const Stream& stream, std::uint64_t k, const Size& size) {
  rank.until("a transfer", [&] { return ring.ready(fingerprint_of(stream, k), size.lines()); });
  get(ring, stream, k, size);
  rank.bells().ring();
}

SendRing& sender(Rank& rank, const Stream& stream) {
  SendRing* ring = rank.transport().sender(stream.from_source());
  if (ring == nullptr) throw std::runtime_error("no send ring");
  return *ring;
}
RecvRing& receiver(Rank& rank, const Stream& stream) {
  RecvRing* ring = rank.transport().receiver(stream.from_sink());
  if (ring == nullptr) throw std::runtime_error("no receive ring");
  return *ring;
}

std::vector<Size> every_size(const ShmLayout& layout) {
  std::vector<Size> sizes;
  const std::size_t ll = layout.ll_bytes(), slot = layout.slot_bytes();
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{55},
                            std::size_t{56}, std::size_t{57}, std::size_t{111}, std::size_t{112}, std::size_t{113},
                            std::size_t{500}, ll - 57, ll - 56, ll - 1, ll})
    sizes.push_back({bytes, true});
  for (std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, slot / 2, slot - 1, slot})
    sizes.push_back({bytes, false});
  // Both protocols after each other in one slot: a stale line of one is never taken for a line of the other.
  std::mt19937_64 random(7);
  for (int i = 0; i < 60; ++i) {
    const bool is_ll = random() % 2 == 0;
    sizes.push_back({random() % ((is_ll ? ll : slot) + 1), is_ll});
  }
  return sizes;
}

// Every FIFO that `rank` is the source of, or a sink of.
std::vector<Stream> streams_of(int rank, int n_ranks, int n_channels, bool source) {
  std::vector<Stream> streams;
  for (int channel = 0; channel < n_channels; ++channel) {
    if (source) streams.push_back({rank, kAllPeers, Port::multicast, channel});
    for (int peer = 0; peer < n_ranks; ++peer) {
      if (peer == rank) continue;
      for (const Port port : kPairPorts)
        streams.push_back(source ? Stream{rank, peer, port, channel} : Stream{peer, rank, port, channel});
      if (!source) streams.push_back({peer, kAllPeers, Port::multicast, channel});
    }
  }
  return streams;
}

// Sends until the ring has been full for so long that nothing in between can still move. Returns how many went out.
std::uint64_t fill_up(Rank& rank, SendRing& ring, const Stream& stream, const Size& size) {
  constexpr int kIdlePumps = 2000;
  std::uint64_t sent = 0;
  for (int idle = 0; idle < kIdlePumps;) {
    if (ring.can_send()) {
      put(ring, stream, sent++, size);
      rank.bells().ring();
      idle = 0;
    } else if (!rank.pump()) {
      ++idle;
      if (rank.kind().fault && idle % 64 == 0) ::sched_yield();  // the other end pumps
    }
  }
  return sent;
}

// As many as the slots and the bulk area have room for; wrappers add their own.
void expect_full(const Rank& rank, const RingMemory& memory, const Size& size, std::uint64_t sent) {
  const std::uint64_t slots = memory.depth;
  EXPECT_GE(sent, size.ll ? slots : 2) << "a ring of fused steps needs two slots";
  EXPECT_LE(sent, slots * rank.kind().rings_in_row());
  EXPECT_TRUE(rank.kind().fault || size.ll || sent * size.bytes <= memory.bulk_bytes) << sent;
}

// ---- Keys ----

TEST_P(TransportSuite, RightKeysGiveTheSameRingEachTime) {
  run_ranks(GetParam(), {.n_ranks = 3, .channels = 2}, [](Rank& rank) {
    for (const Stream& stream : streams_of(rank.rank(), 3, 2, true)) {
      SendRing& ring = sender(rank, stream);
      EXPECT_EQ(&ring, rank.transport().sender(stream.from_source()));
      EXPECT_EQ(ring.memory().slot_bytes, rank.transport().caps().slot_bytes);
      EXPECT_EQ(ring.memory().ll_bytes(), rank.transport().caps().ll_bytes);
      EXPECT_EQ(static_cast<int>(ring.memory().depth), rank.transport().caps().slots);
    }
    for (const Stream& stream : streams_of(rank.rank(), 3, 2, false))
      EXPECT_EQ(&receiver(rank, stream), rank.transport().receiver(stream.from_sink()));
  });
}

TEST_P(TransportSuite, WrongKeysGiveNull) {
  run_ranks(GetParam(), {.n_ranks = 3, .channels = 2}, [](Rank& rank) {
    Transport& transport = rank.transport();
    const int self = rank.rank(), other = (self + 1) % 3;
    std::vector<RingKey> wrong;
    for (const int peer : {self, 3, 10, INT_MAX, -2, INT_MIN})
      for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p, Port::multicast}) wrong.push_back({peer, port, 0});
    for (const int channel : {2, 100, INT_MAX, -1, INT_MIN}) wrong.push_back({other, Port::pair_b, channel});
    wrong.push_back({other, static_cast<Port>(kPortCount), 0});
    for (const Port port : kPairPorts) wrong.push_back({kAllPeers, port, 0});
    for (const RingKey& key : wrong) {
      const std::string text =
          fmt::format("rank {}: peer {}, {}, channel {}", self, key.peer, static_cast<int>(key.port), key.channel);
      EXPECT_EQ(transport.sender(key), nullptr) << text;
      EXPECT_EQ(transport.receiver(key), nullptr) << text;
    }
    for (const int channel : {2, -1}) EXPECT_EQ(transport.sender({kAllPeers, Port::multicast, channel}), nullptr);
    EXPECT_EQ(transport.sender({other, Port::multicast, 0}), nullptr) << "a multicast goes to all";
    EXPECT_EQ(transport.receiver({kAllPeers, Port::multicast, 0}), nullptr) << "a multicast comes from one";
  });
}

// ---- Contents ----

TEST_P(TransportSuite, EveryPortCarriesEverySize) {
  for (const int n_ranks : {2, 4}) {
    const Dimensions dimensions{.n_ranks = n_ranks, .channels = 2, .slot_bytes = 768};
    run_ranks(GetParam(), dimensions, [](Rank& rank) {
      const std::vector<Size> sizes = every_size(rank.layout());
      const std::vector<Stream> out = streams_of(rank.rank(), rank.n_ranks(), 2, true);
      const std::vector<Stream> in = streams_of(rank.rank(), rank.n_ranks(), 2, false);
      for (std::uint64_t k = 0; k < sizes.size(); ++k) {
        for (const Stream& stream : out) send(rank, sender(rank, stream), stream, k, sizes[k]);
        for (const Stream& stream : in) receive(rank, receiver(rank, stream), stream, k, sizes[k]);
      }
    });
  }
}

TEST_P(TransportSuite, ManyLapsAtUnevenSpeed) {
  const std::uint64_t count = GetParam().fault ? 400 : 4000;
  run_ranks(GetParam(), {.n_ranks = 3, .slot_bytes = 320}, [count](Rank& rank) {
    // Around a ring of three, on a pair and by multicast; each rank stalls now and then.
    const int n = 3, self = rank.rank(), prev = (self + n - 1) % n, next = (self + 1) % n;
    const Stream streams[] = {{self, next, Port::pair_b, 0}, {self, kAllPeers, Port::multicast, 0}};
    const Stream arriving[] = {
        {prev, self, Port::pair_b, 0}, {prev, kAllPeers, Port::multicast, 0}, {next, kAllPeers, Port::multicast, 0}};
    const auto size_of = [&](std::uint64_t k) {
      const std::uint64_t draw = mixed(k, 99);
      const bool ll = draw % 3 != 0;
      return Size{(draw >> 8) % (ll ? rank.layout().ll_bytes() + 1 : rank.layout().slot_bytes() + 1), ll};
    };
    std::mt19937_64 random(static_cast<std::uint64_t>(self));
    std::uint64_t sent[2] = {}, received[3] = {};
    const auto done = [&] {
      return sent[0] == count && sent[1] == count && received[0] == count && received[1] == count &&
             received[2] == count;
    };
    rank.until("the last lap", [&] {
      for (int burst = static_cast<int>(random() % 20); burst > 0; --burst) {
        for (int i = 0; i < 2; ++i) {
          SendRing& ring = sender(rank, streams[i]);
          if (sent[i] < count && random() % 4 != 0 && ring.can_send())
            put(ring, streams[i], sent[i], size_of(sent[i])), ++sent[i];
        }
        for (int i = 0; i < 3; ++i) {
          RecvRing& ring = receiver(rank, arriving[i]);
          const Size size = size_of(received[i]);
          if (received[i] < count && random() % 4 != 0 &&
              ring.ready(fingerprint_of(arriving[i], received[i]), size.lines()))
            get(ring, arriving[i], received[i], size), ++received[i];
        }
        rank.pump();
      }
      return done();
    });
  });
}

// ---- Credits ----

void expect_stop_and_go(const Kind& kind, Port port, const Size& size) {
  const Stream stream{0, port == Port::multicast ? kAllPeers : 1, port, 0};
  run_ranks(kind, {.n_ranks = 2}, [&](Rank& rank) {
    if (rank.rank() == 0) {
      SendRing& ring = sender(rank, stream);
      std::uint64_t sent = fill_up(rank, ring, stream, size);
      expect_full(rank, ring.memory(), size, sent);
      rank.set_mark(0, sent);
      // A slot comes back: one transfer more, not two.
      rank.until("the slot that was given back", [&] { return ring.can_send(); });
      put(ring, stream, sent++, size);
      EXPECT_TRUE(rank.kind().fault || !size.ll || !ring.can_send());
      rank.set_mark(1, sent);
    } else {
      RecvRing& ring = receiver(rank, stream);
      rank.await_mark(0, 1);
      std::uint64_t k = 0;
      receive(rank, ring, stream, k++, size);
      // Large transfers lie one behind the other: the first may not leave room enough.
      if (!size.ll) receive(rank, ring, stream, k++, size);
      rank.await_mark(1, 1);
      while (k < rank.mark(1)) receive(rank, ring, stream, k++, size);
      EXPECT_FALSE(ring.ready(fingerprint_of(stream, k), 1)) << "nothing more was sent";
    }
  });
}

TEST_P(TransportSuite, ProducerStopsAtDepthAndGoesOn) {
  const std::size_t slot = Dimensions{}.layout().slot_bytes();
  for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p, Port::multicast})
    for (const Size& size :
         {Size{40, true}, Size{300, true}, Size{slot, false}, Size{slot / 2 + 1, false}, Size{8, false}})
      expect_stop_and_go(GetParam(), port, size);
}

TEST_P(TransportSuite, MulticastWaitsForItsSlowestConsumer) {
  for (const int slow : {1, 2, 3}) {
    const Stream stream{0, kAllPeers, Port::multicast, 0};
    const Size size{Dimensions{}.layout().slot_bytes(), false};
    run_ranks(GetParam(), {.n_ranks = 4}, [&](Rank& rank) {
      if (rank.rank() == 0) {
        SendRing& ring = sender(rank, stream);
        std::uint64_t sent = fill_up(rank, ring, stream, size);
        expect_full(rank, ring.memory(), size, sent);
        rank.set_mark(0, sent);
        rank.until("the slow consumer's slot", [&] { return ring.can_send(); });
        put(ring, stream, sent++, size);
        rank.set_mark(1, sent);
      } else if (rank.rank() == slow) {
        RecvRing& ring = receiver(rank, stream);
        rank.await_mark(0, 1);
        std::uint64_t k = 0;
        rank.until("all transfers", [&] {
          if (ring.ready(fingerprint_of(stream, k), 1)) get(ring, stream, k++, size);
          return rank.mark(1) != 0 && k == rank.mark(1);
        });
      } else {
        RecvRing& ring = receiver(rank, stream);
        std::uint64_t k = 0;
        rank.until("all transfers", [&] {
          if (ring.ready(fingerprint_of(stream, k), 1)) get(ring, stream, k++, size);
          return rank.mark(1) != 0 && k == rank.mark(1);
        });
      }
    });
  }
}

TEST_P(TransportSuite, IndependentRingsDoNotDisturbEachOther) {
  const Stream full{0, 1, Port::pair_a, 0};
  const Size size{100, true};
  run_ranks(GetParam(), {.n_ranks = 3, .channels = 2}, [&](Rank& rank) {
    if (rank.rank() == 0) rank.set_mark(0, fill_up(rank, sender(rank, full), full, size));
    rank.await_mark(0, 1);
    const auto others = [&](bool source) {
      std::vector<Stream> streams = streams_of(rank.rank(), 3, 2, source);
      std::erase_if(streams, [&](const Stream& stream) { return stream.number() == full.number(); });
      return streams;
    };
    for (std::uint64_t k = 0; k < 40; ++k) {
      for (const Stream& stream : others(true)) send(rank, sender(rank, stream), stream, k, size);
      for (const Stream& stream : others(false)) receive(rank, receiver(rank, stream), stream, k, size);
    }
    for (std::uint64_t k = 0; rank.rank() == 1 && k < rank.mark(0); ++k)
      receive(rank, receiver(rank, full), full, k, size);
  });
}

// ---- Fingerprints ----

TEST_P(TransportSuite, DataOfAnotherCallAreNotTaken) {
  const Stream stream{0, 1, Port::pair_a, 0};
  run_ranks(GetParam(), {.n_ranks = 2}, [&](Rank& rank) {
    constexpr std::uint32_t kSent = 0xabcdef, kAwaited = 0xabcdee;
    for (std::uint64_t lap = 0; lap < 20; ++lap) {
      const std::size_t n_lines = lap % 3 + 1;
      if (rank.rank() == 0) {
        SendRing& ring = sender(rank, stream);
        rank.await_mark(1, lap + 1);
        ring.commit(kSent, n_lines);
        rank.await_mark(0, lap + 1);
      } else {
        RecvRing& ring = receiver(rank, stream);
        EXPECT_FALSE(ring.ready(kSent, n_lines));
        EXPECT_FALSE(ring.mismatched(kAwaited)) << "nothing is here, or what was here was released";
        EXPECT_FALSE(ring.mismatched(kSent));
        rank.set_mark(1, lap + 1);
        rank.until("the mismatch", [&] { return ring.mismatched(kAwaited); });
        EXPECT_FALSE(ring.ready(kAwaited, 1));
        EXPECT_FALSE(ring.ready(kAwaited, n_lines));
        rank.until("the transfer", [&] { return ring.ready(kSent, n_lines); });
        EXPECT_FALSE(ring.mismatched(kSent));
        EXPECT_TRUE(ring.ready(kSent | 0xff000000u, n_lines)) << "24 bits are compared";
        ring.release();
        rank.set_mark(0, lap + 1);
      }
    }
  });
}

// ---- Sleeping ----

TEST_P(TransportSuite, SleepingConsumerIsWokenByCommit) {
  const Stream stream{0, 1, Port::pair_a, 0};
  const Size size{8, true};
  run_ranks(GetParam(), {.n_ranks = 2}, [&](Rank& rank) {
    for (std::uint64_t k = 0; k < 100; ++k) {
      if (rank.rank() == 0) {
        SendRing& ring = sender(rank, stream);
        rank.until("the consumer to sleep", [&] { return rank.sleepers() == 1 || rank.kind().fault; });
        send(rank, ring, stream, k, size);
        rank.await_mark(0, k + 1);
      } else {
        RecvRing& ring = receiver(rank, stream);
        rank.sleep_until("a transfer", [&] { return ring.ready(fingerprint_of(stream, k), size.lines()); });
        get(ring, stream, k, size);
        rank.set_mark(0, k + 1);
      }
    }
    EXPECT_TRUE(rank.kind().fault || rank.sleepers() <= 1);
  });
}

TEST_P(TransportSuite, SleepingProducerIsWokenByRelease) {
  const Stream stream{0, 1, Port::pair_b, 0};
  const Size size{8, true};
  run_ranks(GetParam(), {.n_ranks = 2}, [&](Rank& rank) {
    constexpr std::uint64_t kMore = 100;
    if (rank.rank() == 0) {
      SendRing& ring = sender(rank, stream);
      std::uint64_t sent = fill_up(rank, ring, stream, size);
      rank.set_mark(0, sent);
      for (std::uint64_t k = 0; k < kMore; ++k) {
        rank.sleep_until("a free slot", [&] { return ring.can_send(); });
        put(ring, stream, sent++, size);
        rank.bells().ring();
        rank.set_mark(1, k + 1);
      }
    } else {
      RecvRing& ring = receiver(rank, stream);
      rank.await_mark(0, 1);
      std::uint64_t k = 0;
      for (; k < kMore; ++k) {
        rank.until("the producer to sleep", [&] { return rank.sleepers() == 1 || rank.kind().fault; });
        receive(rank, ring, stream, k, size);
        if (!rank.kind().fault) rank.await_mark(1, k + 1);
      }
      for (; k < rank.mark(0) + kMore; ++k) receive(rank, ring, stream, k, size);
    }
  });
}

// Two tokens go around three ranks that go to sleep as early as they can: the window between a last look and the sleep is
// hit in many ways.
TEST_P(TransportSuite, NoWakeUpIsLost) {
  const Size size{8, true};
  run_ranks(GetParam(), {.n_ranks = 3}, [&](Rank& rank) {
    constexpr std::uint64_t kTokens = 2;
    const std::uint64_t laps = rank.kind().fault ? 60 : 1000;
    const int self = rank.rank(), next = (self + 1) % 3, prev = (self + 2) % 3;
    const Stream out{self, next, Port::pair_a, 0}, in{prev, self, Port::pair_a, 0};
    std::mt19937_64 random(static_cast<std::uint64_t>(self) + 5);
    std::uint64_t sent = 0;
    if (self == 0)
      while (sent < kTokens) send(rank, sender(rank, out), out, sent++, size);
    for (std::uint64_t k = 0; k < laps; ++k) {
      RecvRing& ring = receiver(rank, in);
      rank.sleep_until("a token", [&] { return ring.ready(fingerprint_of(in, k), size.lines()); });
      get(ring, in, k, size);
      rank.bells().ring();
      for (std::uint64_t i = random() % 300; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
      if (sent < laps) send(rank, sender(rank, out), out, sent++, size);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, TransportSuite, testing::ValuesIn(kinds()),
                         [](const testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace hocket
