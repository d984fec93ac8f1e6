// SPDX-License-Identifier: Apache-2.0
// Where buffers may lie: any alignment of an element (E8), the in-place forms and nothing near them (E9).
#include "collectives/call.h"

namespace hocket::test {
namespace {

// Send and receive buffers start at every element offset within 16 bytes, differently on both sides.
TEST(Placement, OffsetsAndLengths) {
  const std::uint64_t seed = draw_seed();
  constexpr Kind kKinds[] = {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather,
                             Kind::broadcast,  Kind::all_to_all,     Kind::ring_shift};
  for (const int n : {2, 3}) {
    const LocalRanks ranks(n);
    std::vector<Call> calls;
    for (const hocketDataType_t type : kAllTypes) {
      const std::size_t size = element_bytes(type);
      for (std::size_t offset = 0; offset < 16; offset += size)
        for (std::size_t length = 1; length <= 65; ++length) {
          const std::uint64_t bits = hash(seed, n, calls.size());
          Call call{.kind = kKinds[bits % std::size(kKinds)], .type = type, .count = length, .seed = bits};
          if (bits % 3 == 0) call.kind = Kind::all_reduce;
          do call.op = kAllOps[(bits >> 8) % std::size(kAllOps)];
          while (!supports(call.op, type) && (call.op = hocketSum, false));
          call.send_shift = offset;
          call.recv_shift = (offset + (bits >> 16) % 16 / size * size) % 16;
          call.in_place = has_in_place(call.kind) && (bits >> 24) % 4 == 0;
          calls.push_back(std::move(call));
        }
    }
    run_calls(ranks, calls);
    if (HasFailure()) return;
  }
}

TEST(Placement, PointerNotAlignedToItsType) {
  const LocalRanks ranks(2);
  for (const hocketDataType_t type : kAllTypes) {
    const std::size_t size = element_bytes(type);
    alignas(16) std::byte send[256] = {}, recv[256] = {};
    for (std::size_t offset = 1; offset < size; ++offset) {
      refused(hocketAllReduce(send + offset, recv, 4, type, hocketMax, ranks[0], nullptr), hocketInvalidArgument,
              "sendbuff");
      refused(hocketAllReduce(send, recv + offset, 4, type, hocketMax, ranks[0], nullptr), hocketInvalidArgument,
              "recvbuff");
      refused(hocketSend(send + offset, 4, type, 1, ranks[0], nullptr), hocketInvalidArgument, "aligned");
    }
  }
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 5}});
}

// The same after a call of that shape has succeeded: what was checked once is checked again.
TEST(Placement, PointerNotAlignedAfterAGoodCall) {
  const LocalRanks ranks(2);
  alignas(16) std::byte send[2][64] = {}, recv[2][64] = {};
  for (int round = 0; round < 3; ++round) {
    ranks.run([&](int rank, hocketComm_t comm) {
      ok(hocketAllReduce(send[rank], recv[rank], 4, hocketFloat32, hocketSum, comm, nullptr));
    });
    refused(hocketAllReduce(send[0] + 2, recv[0], 4, hocketFloat32, hocketSum, ranks[0], nullptr),
            hocketInvalidArgument, "aligned");
    refused(hocketAllReduce(send[0], nullptr, 4, hocketFloat32, hocketSum, ranks[0], nullptr), hocketInvalidArgument,
            "NULL");
    refused(hocketAllReduce(send[0], send[0] + 4, 4, hocketFloat32, hocketSum, ranks[0], nullptr),
            hocketInvalidArgument, "overlap");
  }
}

// ---- In place ----

struct WrongForm : ::testing::Test {
  static constexpr std::size_t kCount = 8;
  const LocalRanks ranks{3};
  std::int32_t buffer[64] = {};
  std::int32_t other[64] = {};
  const std::size_t counts[3] = {kCount, kCount, kCount};
  const std::size_t displs[3] = {0, kCount, 2 * kCount};

  void TearDown() override {
    // Refused before anything was sent: the communicator works.
    run_calls(ranks, {{.kind = Kind::all_gather, .in_place = true, .count = 5},
                      {.kind = Kind::reduce_scatter, .in_place = true, .count = 5}});
    for (const std::int32_t word : buffer) EXPECT_EQ(word, 0);
  }
};

TEST_F(WrongForm, GatherLikeNamesTheRankOffset) {
  const char* const rule = "recvbuff + rank * sendcount";
  refused(hocketAllGather(buffer, buffer, kCount, hocketInt32, ranks[1], nullptr), hocketInvalidArgument, rule);
  refused(hocketAllGather(buffer + 1, buffer, kCount, hocketInt32, ranks[0], nullptr), hocketInvalidArgument, rule);
  refused(hocketGather(buffer, buffer, kCount, hocketInt32, 2, ranks[2], nullptr), hocketInvalidArgument, rule);
  refused(hocketAllGatherV(buffer, kCount, buffer, counts, displs, hocketInt32, ranks[1], nullptr),
          hocketInvalidArgument, "recvbuff + displs[rank]");
  refused(hocketGatherV(buffer, kCount, buffer, counts, displs, hocketInt32, 1, ranks[1], nullptr),
          hocketInvalidArgument, "recvbuff + displs[rank]");
}

TEST_F(WrongForm, ScatterLikeNamesTheRankOffset) {
  const char* const rule = "sendbuff + rank * recvcount";
  refused(hocketReduceScatter(buffer, buffer, kCount, hocketInt32, hocketSum, ranks[1], nullptr), hocketInvalidArgument,
          rule);
  refused(hocketScatter(buffer, buffer, kCount, hocketInt32, 1, ranks[1], nullptr), hocketInvalidArgument, rule);
  refused(hocketReduceScatterV(buffer, buffer, counts, hocketInt32, hocketSum, ranks[1], nullptr),
          hocketInvalidArgument, "this rank's block in sendbuff");
  refused(hocketScatterV(buffer, counts, displs, buffer, kCount, hocketInt32, 1, ranks[1], nullptr),
          hocketInvalidArgument, "this rank's block in sendbuff");
}

TEST_F(WrongForm, PartialOverlap) {
  refused(hocketAllReduce(buffer, buffer + 1, kCount, hocketInt32, hocketSum, ranks[0], nullptr), hocketInvalidArgument,
          "sendbuff == recvbuff");
  refused(hocketAllReduce(buffer + kCount - 1, buffer, kCount, hocketInt32, hocketSum, ranks[0], nullptr),
          hocketInvalidArgument, "overlap");
  refused(hocketReduce(buffer, buffer + 2, kCount, hocketInt32, hocketSum, 0, ranks[0], nullptr), hocketInvalidArgument,
          "overlap");
  refused(hocketBroadcast(buffer, buffer + 2, kCount, hocketInt32, 0, ranks[0], nullptr), hocketInvalidArgument,
          "overlap");
}

TEST_F(WrongForm, AllToAllHasNone) {
  refused(hocketAlltoAll(buffer, buffer, kCount, hocketInt32, ranks[0], nullptr), hocketInvalidArgument,
          "no in-place form");
  refused(hocketAlltoAllV(buffer, counts, displs, buffer, counts, displs, hocketInt32, ranks[0], nullptr),
          hocketInvalidArgument, "no in-place form");
}

TEST_F(WrongForm, BlocksThatOverlap) {
  const std::size_t crossing[3] = {0, kCount - 1, 2 * kCount};
  refused(hocketAllGatherV(other, kCount, buffer, counts, crossing, hocketInt32, ranks[0], nullptr),
          hocketInvalidArgument, "overlap");
  refused(hocketGatherV(other, kCount, buffer, counts, crossing, hocketInt32, 0, ranks[0], nullptr),
          hocketInvalidArgument, "overlap");
  refused(hocketAlltoAllV(other, counts, displs, buffer, counts, crossing, hocketInt32, ranks[0], nullptr),
          hocketInvalidArgument, "overlap");
}

// Buffers that touch are two buffers.
TEST(Placement, NeighboursDoNotOverlap) {
  const LocalRanks ranks(2);
  std::int32_t data[2][16];
  for (auto& row : data)
    for (int i = 0; i < 16; ++i) row[i] = i;
  ranks.run([&](int rank, hocketComm_t comm) {
    ok(hocketAllReduce(data[rank], data[rank] + 8, 8, hocketInt32, hocketSum, comm, nullptr));
    ok(hocketAllReduce(data[rank] + 8, data[rank], 8, hocketInt32, hocketSum, comm, nullptr));
  });
  for (const auto& row : data)
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(row[i + 8], 2 * i);
      EXPECT_EQ(row[i], 4 * i);
    }
}

}  // namespace
}  // namespace hocket::test
