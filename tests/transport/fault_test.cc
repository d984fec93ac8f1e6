// SPDX-License-Identifier: Apache-2.0
// The fault wrapper does what its options say, and what waits above it ends.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "exec/wait.h"
#include "transport/calls.h"
#include "transport/ranks.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSlotBytes = 256;

// Two ranks of one thread.
class Pair {
 public:
  explicit Pair(const FaultOptions& options) {
    const Dimensions dimensions{.n_ranks = 2, .channels = 1, .slot_bytes = kSlotBytes};
    auto mapping = Mapping::anonymous(dimensions.layout().total_bytes() + sizeof(Board));
    const auto memory = std::make_shared<Mapping>(std::move(*mapping));
    const Kind kind{.name = "fault", .fault = options};
    for (int rank = 0; rank < 2; ++rank) ranks_.push_back(std::make_unique<Rank>(kind, dimensions, rank, memory));
  }
  Transport& operator[](std::size_t rank) { return ranks_[rank]->transport(); }
  Rank& rank(std::size_t rank) { return *ranks_[rank]; }

  // Pumps both ranks until one of `n` rings of rank 1 has something new; returns (pumps so far, port) of each arrival.
  std::vector<std::pair<int, Port>> arrivals(int n_pumps) {
    std::vector<std::pair<int, Port>> seen;
    for (int pumps = 1; pumps <= n_pumps; ++pumps) {
      EXPECT_TRUE((*this)[0].pump());
      EXPECT_TRUE((*this)[1].pump());
      for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p}) {
        RecvRing& ring = *(*this)[1].receiver({0, port, 0});
        while (ring.ready(fingerprint(port, ring.transfer()), 1)) {
          EXPECT_EQ(std::memcmp(ring.lines()->data, &port, sizeof port), 0);
          ring.release();
          seen.emplace_back(pumps, port);
        }
      }
    }
    return seen;
  }
  void send(Port port) {
    SendRing& ring = *(*this)[0].sender({1, port, 0});
    ASSERT_TRUE(ring.can_send());
    std::memcpy(ring.lines()->data, &port, sizeof port);
    ring.commit(fingerprint(port, ring.transfer()), 1);
  }

 private:
  static std::uint32_t fingerprint(Port port, std::uint64_t k) {
    return static_cast<std::uint32_t>(port) * 1000 + static_cast<std::uint32_t>(k);
  }
  std::vector<std::unique_ptr<Rank>> ranks_;
};

std::vector<std::pair<int, Port>> arrivals_of_six(const FaultOptions& options) {
  Pair pair(options);
  for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p}) {
    pair[1].receiver({0, port, 0});
    pair.send(port);
    pair.send(port);
  }
  return pair.arrivals(200);
}

TEST(Fault, NothingMovesWithoutPump) {
  Pair pair(FaultOptions{});
  RecvRing& ring = *pair[1].receiver({0, Port::pair_a, 0});
  SendRing& sender = *pair[0].sender({1, Port::pair_a, 0});
  sender.commit(5, 1);
  EXPECT_FALSE(ring.ready(5, 1));
  EXPECT_TRUE(*pair[0].pump());
  EXPECT_FALSE(*pair[0].pump()) << "nothing is left to move";
  EXPECT_FALSE(ring.ready(5, 1));
  EXPECT_TRUE(*pair[1].pump());
  EXPECT_TRUE(ring.ready(5, 1));
}

TEST(Fault, DelaysEachTransferBySomePumps) {
  FaultOptions options;
  EXPECT_EQ(arrivals_of_six(options).back().first, 2) << "no delay: two transfers per ring, one per pump";
  options.most_delay = 20;
  const auto seen = arrivals_of_six(options);
  ASSERT_EQ(seen.size(), 6u) << "late, but all of them";
  EXPECT_GT(seen.back().first, 4);
  EXPECT_LE(seen.back().first, 2 * 2 * 21);
}

TEST(Fault, SameSeedSameFaults) {
  FaultOptions options;
  options.most_delay = 20;
  options.reorder = true;
  EXPECT_EQ(arrivals_of_six(options), arrivals_of_six(options));
  const auto first = arrivals_of_six(options);
  options.seed = 2;
  EXPECT_NE(arrivals_of_six(options), first);
}

TEST(Fault, TransfersOfDifferentRingsOvertakeEachOther) {
  FaultOptions options;
  options.most_delay = 10;
  options.reorder = true;
  int overtaken = 0;
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    const auto seen = arrivals_of_six(options);
    for (std::size_t i = 1; i < seen.size(); ++i) overtaken += seen[i].second < seen[i - 1].second ? 1 : 0;
  }
  EXPECT_GT(overtaken, 20);
}

TEST(Fault, LostTransferSilencesItsRingOnly) {
  FaultOptions options;
  options.drop_after = 1;
  Pair pair(options);
  for (const Port port : {Port::pair_a, Port::pair_b, Port::p2p}) pair[1].receiver({0, port, 0});
  pair.send(Port::pair_a);
  pair.arrivals(3);
  pair.send(Port::pair_b);  // the second one
  EXPECT_TRUE(pair.arrivals(10).empty());
  pair.send(Port::pair_b);
  pair.send(Port::p2p);
  const auto seen = pair.arrivals(10);
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].second, Port::p2p);
}

// A wait as the communicator has it, with a time limit.
class Limit final : public WaitMonitor {
 public:
  Status check(steady_clock::duration waited) override {
    if (waited < milliseconds(100)) return {};
    return fail(hocketErrorTimeout, "waited for 100 ms");
  }
};

// One rank's all_reduce over a faulty transport, pumping while it waits. `awaited`: whom it waited for at the end.
Status walk(Rank& rank, std::vector<int>& awaited) {
  Call call;
  call.count = 20000;
  call.algorithm = "two_shot";
  Part part(call, rank.rank());
  auto plan = make_plan(plan_request(call, rank.transport().caps()), rank.rank());
  HOCKET_TRY(plan);
  auto program = make_program(std::move(*plan), rank.transport());
  HOCKET_TRY(program);
  Execution execution;
  execution.start(*program, part.data(program->plan), rank.bells());
  WaitPolicy policy;
  policy.sleep_after = std::chrono::microseconds(200);
  policy.crowded = true;
  Limit limit;
  Waiter waiter(policy, rank.bells(), limit);
  while (!execution.done()) {
    const auto moved = rank.transport().pump();
    HOCKET_TRY(moved);
    if (execution.advance() || *moved) {
      waiter.progressed();
      continue;
    }
    const Status status = waiter.pause([&] { return execution.could_advance(); });
    if (!status) {
      execution.add_awaited(awaited);
      return status;
    }
  }
  return {};
}

TEST(Fault, WaitForALostTransferEndsByItsTimeLimit) {
  FaultOptions options;
  options.drop_after = 3;
  Pair pair(options);
  Status results[2];
  std::vector<int> awaited[2];
  std::thread peer([&] { results[1] = walk(pair.rank(1), awaited[1]); });
  const auto start = steady_clock::now();
  results[0] = walk(pair.rank(0), awaited[0]);
  peer.join();
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(20));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_FALSE(results[rank]);
    EXPECT_EQ(results[rank].error().code, hocketErrorTimeout);
    EXPECT_EQ(awaited[rank], std::vector<int>{1 - rank});
  }
}

TEST(Fault, FailureOfTheTransportEndsTheWait) {
  FaultOptions options;
  options.fail_after = 5;
  Pair pair(options);
  std::vector<int> awaited;
  const Status status = walk(pair.rank(0), awaited);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, hocketSystemError);
  EXPECT_NE(status.error().text.find("fails after 5 pumps"), std::string::npos) << status.error().text;
}

}  // namespace
}  // namespace hocket
