// SPDX-License-Identifier: Apache-2.0
// The v-forms with many empty blocks, and zero counts everywhere (E1).
#include "collectives/call.h"

namespace hocket::test {
namespace {

constexpr Kind kVectorForms[] = {Kind::all_gather_v, Kind::reduce_scatter_v, Kind::all_to_all_v, Kind::gather_v,
                                 Kind::scatter_v};

class Counts : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(VectorForms, Counts, ::testing::Values(2, 3, 5, 8));

TEST_P(Counts, MostlyZero) {
  const int n = GetParam();
  const std::uint64_t seed = draw_seed();
  const LocalRanks ranks(n);
  std::vector<Call> calls;
  for (std::uint64_t i = 0; i < 200; ++i)
    for (const Kind kind : kVectorForms) {
      const std::uint64_t bits = hash(seed + i, static_cast<int>(kind), 0);
      Call call{.kind = kind, .seed = bits};
      call.type = kAllTypes[bits % std::size(kAllTypes)];
      call.root = static_cast<int>((bits >> 10) % static_cast<std::uint64_t>(n));
      call.in_place = has_in_place(kind) && (bits >> 20) % 2 == 0;
      call.gaps = (bits >> 21) % 2 == 0;
      call.counts = random_counts(kind, n, i % 10 == 0 ? 5000 : 40, 60, bits);
      calls.push_back(std::move(call));
    }
  run_calls(ranks, calls);
}

// Whole rows and columns of the matrix are empty: ranks that only send, only receive, or do neither.
TEST_P(Counts, EmptyRowsAndColumns) {
  const int n = GetParam();
  const auto ranks_size = static_cast<std::size_t>(n);
  const std::uint64_t seed = draw_seed();
  const LocalRanks ranks(n);
  std::vector<Call> calls;
  for (std::size_t row = 0; row <= ranks_size; ++row)
    for (std::size_t column = 0; column <= ranks_size; ++column) {
      Call call{.kind = Kind::all_to_all_v, .type = hocketInt16, .seed = seed + row * 16 + column};
      call.counts = random_counts(call.kind, n, 100, 0, call.seed);
      for (std::size_t i = 0; i < ranks_size; ++i) {
        if (row < ranks_size) call.counts[row * ranks_size + i] = 0;
        if (column < ranks_size) call.counts[i * ranks_size + column] = 0;
      }
      calls.push_back(call);
    }
  run_calls(ranks, calls);
}

TEST_P(Counts, NothingButZeros) {
  const int n = GetParam();
  const LocalRanks ranks(n);
  std::vector<Call> calls;
  for (const std::size_t count : {0, 1, 0, 0, 2, 0})
    for (int k = 0; k < kKindCount; ++k)
      for (int root = 0; root < (rooted(kind_at(k)) ? n : 1); ++root) {
        Call call{.kind = kind_at(k), .root = root, .count = count, .seed = static_cast<std::uint64_t>(k)};
        if (vector_form(call.kind))
          call.counts.assign(
              call.kind == Kind::all_to_all_v ? static_cast<std::size_t>(n * n) : static_cast<std::size_t>(n), count);
        calls.push_back(std::move(call));
      }
  run_calls(ranks, calls);
}

TEST_P(Counts, NullPointersWithZeroElements) {
  const int n = GetParam();
  const LocalRanks ranks(n);
  const std::vector<std::size_t> zeros(static_cast<std::size_t>(n), 0);
  const std::size_t* const z = zeros.data();
  ranks.run([&](int rank, hocketComm_t comm) {
    for (int root = 0; root < n; ++root) {
      ok(hocketBroadcast(nullptr, nullptr, 0, hocketInt8, root, comm, nullptr));
      ok(hocketBcast(nullptr, 0, hocketInt8, root, comm, nullptr));
      ok(hocketReduce(nullptr, nullptr, 0, hocketFloat16, hocketAvg, root, comm, nullptr));
      ok(hocketGather(nullptr, nullptr, 0, hocketInt8, root, comm, nullptr));
      ok(hocketScatter(nullptr, nullptr, 0, hocketInt8, root, comm, nullptr));
      ok(hocketGatherV(nullptr, 0, nullptr, rank == root ? z : nullptr, rank == root ? z : nullptr, hocketInt8, root,
                       comm, nullptr));
      ok(hocketScatterV(nullptr, rank == root ? z : nullptr, rank == root ? z : nullptr, nullptr, 0, hocketInt8, root,
                        comm, nullptr));
    }
    ok(hocketAllReduce(nullptr, nullptr, 0, hocketFloat64, hocketSum, comm, nullptr));
    ok(hocketAllGather(nullptr, nullptr, 0, hocketInt8, comm, nullptr));
    ok(hocketReduceScatter(nullptr, nullptr, 0, hocketInt8, hocketMax, comm, nullptr));
    ok(hocketAlltoAll(nullptr, nullptr, 0, hocketInt8, comm, nullptr));
    ok(hocketAllGatherV(nullptr, 0, nullptr, z, z, hocketInt8, comm, nullptr));
    ok(hocketReduceScatterV(nullptr, nullptr, z, hocketInt8, hocketSum, comm, nullptr));
    ok(hocketAlltoAllV(nullptr, z, z, nullptr, z, z, hocketInt8, comm, nullptr));
    hocketGroupStart();
    ok(hocketSend(nullptr, 0, hocketInt8, (rank + 1) % n, comm, nullptr));
    ok(hocketRecv(nullptr, 0, hocketInt8, (rank + n - 1) % n, comm, nullptr));
    ok(hocketGroupEnd());
    // And everything still works.
    std::int32_t mine = rank + 1, sum = 0;
    ok(hocketAllReduce(&mine, &sum, 1, hocketInt32, hocketSum, comm, nullptr));
    EXPECT_EQ(sum, n * (n + 1) / 2);
  });
}

}  // namespace
}  // namespace hocket::test
