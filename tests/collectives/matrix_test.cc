// SPDX-License-Identifier: Apache-2.0
// Every collective: types x operations x in place, counts x roots x in place, and the same under every forced algorithm,
// number of channels and slot size. Where the product is too large, the rest of a case is drawn with a printed seed.
#include <nlohmann/json.hpp>
#include <set>

#include "collectives/call.h"
#include "plan/algorithm.h"
#include "plan/planner.h"

namespace hocket::test {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return hash(state_++); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(next() % n); }
  template <class List>
  auto one_of(const List& list) {
    return std::data(list)[below(std::size(list))];
  }
  hocketRedOp_t op_for(hocketDataType_t type) {
    for (;;)
      if (const hocketRedOp_t op = one_of(kAllOps); supports(op, type)) return op;
  }

 private:
  std::uint64_t state_;
};

std::vector<std::size_t> counts_for(int n, std::size_t slot, hocketDataType_t type) {
  const auto ranks = static_cast<std::size_t>(n);
  return {0, 1, 2, 3, 7, 17, ranks - 1, ranks, 64, 1000, 4097, slot / element_bytes(type) + 1};
}

// Fills in what depends on the kind: one count for all, or one per rank around it.
void set_count(Call& call, int n, std::size_t count) {
  call.count = count;
  if (vector_form(call.kind)) {
    call.counts = random_counts(call.kind, n, count, 15, call.seed);
    call.gaps = call.seed % 2 == 0;
    call.counts[0] = count;
  }
}

class OfRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Matrix, OfRanks, ::testing::Values(1, 2, 3, 4, 5, 7, 8));

TEST_P(OfRanks, EveryTypeAndOperation) {
  const int n = GetParam();
  Draw draw(draw_seed());
  const LocalRanks ranks(n);
  const std::size_t slot = slot_bytes(ranks[0]);
  std::vector<Call> calls;
  const auto add = [&](Kind kind, hocketDataType_t type, hocketRedOp_t op) {
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place(kind)) continue;
      Call call{.kind = kind, .type = type, .op = op, .in_place = in_place, .seed = draw.next()};
      call.root = static_cast<int>(draw.below(static_cast<std::size_t>(n)));
      // The largest two are rare here: they take most of the time.
      const auto counts = counts_for(n, slot, type);
      set_count(call, n, counts[draw.below(draw.below(8) == 0 ? counts.size() : counts.size() - 2)]);
      calls.push_back(std::move(call));
    }
  };
  for (int k = 0; k < kKindCount; ++k)
    for (const hocketDataType_t type : kAllTypes) {
      if (!reduces(kind_at(k))) add(kind_at(k), type, hocketSum);
      for (const hocketRedOp_t op : kAllOps)
        if (reduces(kind_at(k)) && supports(op, type)) add(kind_at(k), type, op);
    }
  run_calls(ranks, calls);
}

TEST_P(OfRanks, EveryCountAndRoot) {
  const int n = GetParam();
  Draw draw(draw_seed());
  const LocalRanks ranks(n);
  const std::size_t slot = slot_bytes(ranks[0]);
  std::vector<Call> calls;
  for (int k = 0; k < kKindCount; ++k)
    for (std::size_t index = 0; index < 12; ++index)
      for (int root = 0; root < (rooted(kind_at(k)) ? n : 1); ++root)
        for (const bool in_place : {false, true}) {
          const Kind kind = kind_at(k);
          if (in_place && !has_in_place(kind)) continue;
          Call call{
              .kind = kind, .type = draw.one_of(kAllTypes), .root = root, .in_place = in_place, .seed = draw.next()};
          call.op = draw.op_for(call.type);
          set_count(call, n, counts_for(n, slot, call.type)[index]);
          calls.push_back(std::move(call));
        }
  run_calls(ranks, calls);
}

// Memory from hocketMemAlloc, on all ranks or on some: another way for the bytes, the same result.
TEST_P(OfRanks, SharedMemory) {
  const int n = GetParam();
  Draw draw(draw_seed());
  const LocalRanks ranks(n);
  std::vector<Call> calls;
  for (int k = 0; k < kKindCount; ++k)
    for (const Memory memory : {Memory::shared, Memory::shared_on_odd_ranks})
      for (const std::size_t count : {std::size_t{1}, std::size_t{17}, std::size_t{4097}, std::size_t{20000}})
        for (const bool in_place : {false, true}) {
          const Kind kind = kind_at(k);
          if (in_place && !has_in_place(kind)) continue;
          Call call{.kind = kind,
                    .type = draw.one_of(kAllTypes),
                    .in_place = in_place,
                    .memory = memory,
                    .seed = draw.next()};
          call.root = static_cast<int>(draw.below(static_cast<std::size_t>(n)));
          call.op = draw.op_for(call.type);
          set_count(call, n, count);
          calls.push_back(std::move(call));
        }
  run_calls(ranks, calls);
}

// ---- Forced algorithms ----

Collective collective_of(Kind kind) {
  switch (kind) {
    case Kind::all_reduce: return Collective::all_reduce;
    case Kind::broadcast:
    case Kind::bcast: return Collective::broadcast;
    case Kind::reduce: return Collective::reduce;
    case Kind::all_gather:
    case Kind::all_gather_v: return Collective::all_gather;
    case Kind::reduce_scatter:
    case Kind::reduce_scatter_v: return Collective::reduce_scatter;
    case Kind::all_to_all:
    case Kind::all_to_all_v: return Collective::all_to_all;
    case Kind::gather:
    case Kind::gather_v: return Collective::gather;
    case Kind::scatter:
    case Kind::scatter_v: return Collective::scatter;
    case Kind::ring_shift: return Collective::send;
  }
  return Collective::barrier;
}

bool serves(const Algorithm& algorithm, Kind kind, int n) {
  PlanRequest request;
  request.collective = collective_of(kind);
  request.n_ranks = n;
  request.bytes = 1024;
  if (kind == Kind::ring_shift && n == 1) return false;  // messages to oneself need no plan
  return algorithm.unsupported(request).empty();
}

std::set<std::string> algorithms_in_use(hocketComm_t comm) {
  std::set<std::string> names;
  const auto json = nlohmann::json::parse(describe(comm));
  for (const auto& plan : json["plans"]) names.insert(plan["algorithm"]);
  return names;
}

class Forced : public ::testing::TestWithParam<const Algorithm*> {};
INSTANTIATE_TEST_SUITE_P(Matrix, Forced, ::testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         [](const auto& param) { return std::string(param.param->name); });

TEST_P(Forced, ChannelsAndSlots) {
  const Algorithm& algorithm = *GetParam();
  const std::string name(algorithm.name);
  Draw draw(draw_seed());
  for (const int n : {1, 2, 3, 5, 8})
    for (const int channels : {1, 2, 3})
      for (const int slot : {256, 4096, HOCKET_CONFIG_UNDEF_INT}) {
        std::vector<Call> calls;
        for (int k = 0; k < kKindCount; ++k) {
          const Kind kind = kind_at(k);
          if (!serves(algorithm, kind, n)) continue;
          for (const std::size_t count :
               {std::size_t{1}, std::size_t{3}, std::size_t{65}, std::size_t{1000}, std::size_t{4097}}) {
            Call call{.kind = kind, .type = draw.one_of(kAllTypes), .seed = draw.next()};
            call.root = static_cast<int>(draw.below(static_cast<std::size_t>(n)));
            call.op = draw.op_for(call.type);
            call.in_place = has_in_place(kind) && draw.below(2) == 0;
            set_count(call, n, count);
            calls.push_back(std::move(call));
          }
        }
        if (calls.empty()) continue;
        SCOPED_TRACE(testing::Message() << name << ", " << n << " ranks, " << channels << " channels, slots of "
                                        << slot);
        hocketConfig_t settings = config();
        settings.algorithm = name.c_str();
        settings.channels = channels;
        settings.slotBytes = slot;
        const LocalRanks ranks(n, settings);
        run_calls(ranks, calls);
        EXPECT_TRUE(algorithms_in_use(ranks[0]).contains(name)) << "the algorithm was not used";
        if (HasFailure()) return;
      }
}

TEST(Matrix, ForcedAlgorithmThatCannotServeIsSetAside) {
  hocketConfig_t settings = config();
  settings.algorithm = "pairwise";  // does all-to-all only
  const LocalRanks ranks(3, settings);
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 10}, {.kind = Kind::all_to_all, .count = 10}});
  const auto names = algorithms_in_use(ranks[0]);
  EXPECT_TRUE(names.contains("pairwise"));
  EXPECT_GE(names.size(), 2u) << "the all-reduce went another way";
}

TEST(Matrix, BarrierWaitsForEveryRank) {
  for (const int n : {1, 2, 3, 5, 8}) {
    const LocalRanks ranks(n);
    std::atomic<int> arrived{0};
    ranks.run([&](int, hocketComm_t comm) {
      for (int round = 1; round <= 20; ++round) {
        ++arrived;
        ok(hocketBarrier(comm, nullptr));
        EXPECT_GE(arrived.load(), round * n);
        ok(hocketBarrier(comm, nullptr));
      }
    });
  }
}

// E14, on one host: uneven numbers of ranks, and communicators of the odd and of the even ranks with reversed order.
TEST(Matrix, OddAndEvenCommunicators) {
  const LocalRanks odd(3), even(4);
  Draw draw(draw_seed());
  std::vector<Call> odd_calls, even_calls;
  for (int k = 0; k < kKindCount; ++k)
    for (const bool in_place : {false, true}) {
      if (in_place && !has_in_place(kind_at(k))) continue;
      for (auto* calls : {&odd_calls, &even_calls}) {
        const int n = calls == &odd_calls ? odd.n() : even.n();
        Call call{.kind = kind_at(k), .type = draw.one_of(kAllTypes), .in_place = in_place, .seed = draw.next()};
        call.op = draw.op_for(call.type);
        call.root = static_cast<int>(draw.below(static_cast<std::size_t>(n)));
        set_count(call, n, 1 + draw.below(500));
        calls->push_back(call);
      }
    }
  std::thread other([&] { run_calls(odd, odd_calls); });
  run_calls(even, even_calls);
  other.join();
}

}  // namespace
}  // namespace hocket::test
