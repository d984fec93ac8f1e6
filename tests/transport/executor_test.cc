// SPDX-License-Identifier: Apache-2.0
// The executor over transports: every algorithm, for every collective it serves, stepped in one thread in random order and
// on a thread per rank, with slots so small that many rounds take place, against a naive oracle.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "exec/small_program.h"
#include "plan/algorithm.h"
#include "transport/calls.h"
#include "transport/ranks.h"

namespace hocket {
namespace {

constexpr int kSlotBytes = 256;

struct Case {
  std::string algorithm;
  Collective collective = Collective::all_reduce;
  int n_ranks = 2;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.algorithm << " " << to_string(c.collective) << " " << c.n_ranks;
}

bool serves(const Algorithm& algorithm, const Call& call) {
  return algorithm.unsupported(plan_request(call, TransportCaps{})).empty();
}

const Algorithm& named(const std::string& name) {
  for (const Algorithm* algorithm : algorithms())
    if (algorithm->name == name) return *algorithm;
  throw std::runtime_error("no algorithm " + name);
}

std::vector<Case> all_cases(const std::vector<int>& sizes) {
  std::vector<Case> cases;
  for (const Algorithm* algorithm : algorithms())
    for (int kind = 0; kind < kCollectiveCount; ++kind)
      for (const int n_ranks : sizes) {
        Call call;
        call.collective = static_cast<Collective>(kind);
        call.n_ranks = n_ranks;
        call.count = 1000;
        const bool point_to_point = call.collective == Collective::send || call.collective == Collective::recv;
        if (!point_to_point && serves(*algorithm, call))
          cases.push_back({std::string(algorithm->name), call.collective, n_ranks});
      }
  return cases;
}

bool by_rank(Collective kind) {
  return kind == Collective::all_gather || kind == Collective::gather || kind == Collective::reduce_scatter ||
         kind == Collective::scatter || kind == Collective::all_to_all;
}
bool has_vector_form(Collective kind) { return by_rank(kind); }

// Calls of all shapes, one after the other, as a program might make them. Counts are of the whole data.
std::vector<Call> script_of(const Case& c, std::vector<std::size_t> counts, int channels) {
  constexpr hocketDataType_t kTypes[] = {hocketFloat32, hocketBfloat16, hocketInt32};
  std::vector<Call> calls;
  const int forms = has_vector_form(c.collective) ? 3 : 2;
  for (const std::size_t count : counts)
    for (int form = 0; form < forms; ++form) {
      Call call;
      call.sequence = calls.size() + 1;
      call.collective = c.collective;
      call.n_ranks = c.n_ranks;
      call.root = static_cast<int>(calls.size()) % c.n_ranks;
      call.count = by_rank(c.collective) ? (count + call.ranks() - 1) / call.ranks() : count;
      call.in_place = form == 1 || (form == 2 && calls.size() % 2 == 0);
      call.vector_form = form == 2;
      call.type = kTypes[calls.size() % 3];
      call.op = calls.size() % 5 == 4 ? hocketAvg : hocketSum;
      call.channels = channels;
      call.algorithm = c.algorithm;
      if (c.collective == Collective::barrier) call.count = 0;
      if (serves(named(c.algorithm), call)) calls.push_back(call);
    }
  return calls;
}

// All ranks of a communicator in this process, and a script that each of them runs at its own pace.
class Fleet {
 public:
  Fleet(const Kind& kind, const Dimensions& dimensions, std::vector<Call> script) : calls_(std::move(script)) {
    auto mapping = Mapping::anonymous(dimensions.layout().total_bytes() + sizeof(Board));
    if (!mapping) throw std::runtime_error(mapping.error().text);
    const auto memory = std::make_shared<Mapping>(std::move(*mapping));
    for (int rank = 0; rank < dimensions.n_ranks; ++rank) {
      auto member = std::make_unique<Member>(kind, dimensions, rank, memory);
      for (const Call& call : calls_) member->parts.push_back(std::make_unique<Part>(call, rank));
      members_.push_back(std::move(member));
    }
    for (std::size_t call = 0; call < calls_.size(); ++call) {
      for (const auto& member : members_) {
        inputs_.push_back(member->parts[call]->input());
        outputs_.push_back(member->parts[call]->output());
      }
    }
    for (const auto& member : members_)
      for (std::size_t call = 0; call < calls_.size(); ++call)
        member->programs.push_back(program(*member, calls_[call]));
  }

  // One thread: each turn is a random rank's. No turn of any rank moves anything for long: a deadlock.
  void run_stepped(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::size_t finished = 0;
    const std::uint64_t patience = 4000 * members_.size();
    for (std::uint64_t idle = 0; finished < members_.size(); ++idle) {
      Member& member = *members_[random() % members_.size()];
      bool moved = member.rank.pump();
      if (member.call < calls_.size()) {
        if (!member.started) start(member);
        moved |= member.execution.advance();
        if (member.execution.done()) {
          moved = true;
          member.started = false;
          finished += ++member.call == calls_.size() ? 1 : 0;
        }
      }
      if (moved) idle = 0;
      if (idle > patience) throw std::runtime_error("nothing moves: " + where());
    }
  }

  // A thread per rank. With `mixed`, each rank takes the fast path where it can and a coin says so.
  void run_threads(bool mixed) {
    std::vector<std::thread> threads;
    for (const auto& member : members_)
      threads.emplace_back([this, &member, mixed] {
        member->rank.run([&](Rank& rank) {
          std::mt19937_64 random(static_cast<std::uint64_t>(rank.rank()) + 1);
          for (; member->call < calls_.size(); ++member->call) {
            if (mixed && random() % 2 == 0 && run_small(*member)) continue;
            start(*member);
            rank.until("the end of a call", [&] {
              while (member->execution.advance()) rank.pump();
              return member->execution.done();
            });
          }
        });
      });
    for (std::thread& thread : threads) thread.join();
  }

  void expect_results() {
    for (const auto& member : members_)
      for (const auto& part : member->parts) part->expect_result();
  }
  std::uint64_t small_runs() const { return small_runs_.load(std::memory_order_relaxed); }

 private:
  struct Member {
    Member(const Kind& kind, const Dimensions& dimensions, int number, const std::shared_ptr<Mapping>& memory)
        : rank(kind, dimensions, number, memory) {}
    Rank rank;
    Execution execution;
    std::vector<std::unique_ptr<Part>> parts;  // by call
    std::vector<std::unique_ptr<Program>> programs;
    std::size_t call = 0;
    bool started = false;
  };

  static std::unique_ptr<Program> program(Member& member, const Call& call) {
    auto plan = make_plan(plan_request(call, member.rank.transport().caps()), member.rank.rank());
    if (!plan) throw std::runtime_error(plan.error().text);
    if (plan->algorithm != call.algorithm) throw std::runtime_error("not " + call.text() + " but " + plan->algorithm);
    auto made = make_program(std::move(*plan), member.rank.transport());
    if (!made) throw std::runtime_error(made.error().text);
    return std::make_unique<Program>(std::move(*made));
  }

  CallData data(const Member& member) const {
    CallData data = member.parts[member.call]->data(member.programs[member.call]->plan);
    data.peer_inputs = inputs_.data() + member.call * members_.size();
    data.peer_outputs = outputs_.data() + member.call * members_.size();
    return data;
  }

  void start(Member& member) {
    member.started = true;
    member.execution.start(*member.programs[member.call], data(member), member.rank.bells());
  }

  bool run_small(Member& member) {
    const CallData call = data(member);
    auto small = SmallProgram::make(*member.programs[member.call], call);
    if (!small) return false;
    small_runs_.fetch_add(1, std::memory_order_relaxed);
    const Status status =
        small->run(call.input, call.output, call.fingerprint, member.rank.bells(), [&](auto&& ready) -> Status {
          member.rank.until("a step of a small call", ready);
          return {};
        });
    if (!status) throw std::runtime_error(status.error().text);
    return true;
  }

  std::string where() const {
    std::string text;
    for (const auto& member : members_) {
      std::vector<int> awaited;
      if (member->started) member->execution.add_awaited(awaited);
      text +=
          fmt::format("\n  rank {} is in {} and awaits {}", member->rank.rank(),
                      member->call < calls_.size() ? calls_[member->call].text() : "nothing", fmt::join(awaited, ", "));
    }
    return text;
  }

  std::vector<Call> calls_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<const std::byte*> inputs_;  // by call and rank
  std::vector<std::byte*> outputs_;
  std::atomic<std::uint64_t> small_runs_{0};
};

Kind shm() { return {.name = "shm", .fault = {}}; }
Kind late(std::uint64_t seed, std::uint32_t most_delay) {
  FaultOptions options;
  options.seed = seed;
  options.most_delay = most_delay;
  options.reorder = true;
  return {.name = fmt::format("fault, seed {}", seed), .fault = options};
}

// A run is some twenty times slower under ThreadSanitizer, and what it looks for needs threads, not many ranks and sizes.
#if defined(__SANITIZE_THREAD__)
const std::vector<int> kRanks{2, 3, 5};
const std::vector<std::size_t> kManyCounts{0, 1, 17, 1201, 6007};
#else
const std::vector<int> kRanks{2, 3, 4, 5, 8};
const std::vector<std::size_t> kManyCounts{0, 1, 2, 7, 16, 17, 113, 448, 449, 1201, 3001, 20011};
#endif
const std::vector<std::size_t> kFewCounts{1, 113, 1201, 6007};
const std::vector<std::size_t> kSmallCounts{1, 2, 3, 14, 15, 40, 97, 250, 1, 2, 3, 14, 15, 40, 97, 250};

class EveryPlan : public testing::TestWithParam<Case> {
 protected:
  Dimensions dimensions(int channels) const {
    return {.n_ranks = GetParam().n_ranks, .channels = channels, .slot_bytes = kSlotBytes};
  }
};

TEST_P(EveryPlan, SteppedInRandomOrder) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const int channels = seed == 1 ? 1 : 2;
    Fleet fleet(shm(), dimensions(channels), script_of(GetParam(), kManyCounts, channels));
    ASSERT_NO_THROW(fleet.run_stepped(seed));
    fleet.expect_results();
  }
}

TEST_P(EveryPlan, SteppedOverLateTransfers) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Fleet fleet(late(seed, seed == 1 ? 3 : 20), dimensions(1), script_of(GetParam(), kFewCounts, 1));
    ASSERT_NO_THROW(fleet.run_stepped(seed));
    fleet.expect_results();
  }
}

TEST_P(EveryPlan, OnThreads) {
  Fleet fleet(shm(), dimensions(2), script_of(GetParam(), kManyCounts, 2));
  fleet.run_threads(false);
  fleet.expect_results();
}

TEST_P(EveryPlan, OnThreadsOverLateTransfers) {
  Fleet fleet(late(5, 4), dimensions(1), script_of(GetParam(), kFewCounts, 1));
  fleet.run_threads(false);
  fleet.expect_results();
}

// Ranks choose between the fast path and the general walk by themselves, call by call.
TEST_P(EveryPlan, FastPathAndGeneralWalkMix) {
  for (const bool is_late : {false, true}) {
    Fleet fleet(is_late ? late(6, 2) : shm(), dimensions(1), script_of(GetParam(), kSmallCounts, 1));
    fleet.run_threads(true);
    fleet.expect_results();
    RecordProperty("fast calls", static_cast<int>(fleet.small_runs()));
  }
}

// Slots as the budget gives them: those of the multicast port are larger than those between two ranks.
class PlanOfFewRanks : public EveryPlan {};
TEST_P(PlanOfFewRanks, SlotsFromTheBudget) {
  const Dimensions from_budget{.n_ranks = GetParam().n_ranks, .channels = 1, .slot_bytes = 0};
  Fleet fleet(shm(), from_budget, script_of(GetParam(), {500000, 3}, 1));
  ASSERT_NO_THROW(fleet.run_stepped(3));
  fleet.expect_results();
}

std::string name_of(const testing::TestParamInfo<Case>& c) {
  return fmt::format("{}_{}_{}", c.param.algorithm, to_string(c.param.collective), c.param.n_ranks);
}
INSTANTIATE_TEST_SUITE_P(Executor, EveryPlan, testing::ValuesIn(all_cases(kRanks)), name_of);
INSTANTIATE_TEST_SUITE_P(Executor, PlanOfFewRanks, testing::ValuesIn(all_cases({2, 3})), name_of);

// The fast path serves what it is there for.
TEST(FastPath, TakesTheSmallCallsOfTheSimplePlans) {
  const Case cases[] = {{"one_shot", Collective::all_reduce, 2},
                        {"one_shot", Collective::barrier, 2},
                        {"flat", Collective::broadcast, 3},
                        {"flat", Collective::all_gather, 4},
                        {"pairwise", Collective::all_to_all, 4}};
  for (const Case& c : cases) {
    Fleet fleet(shm(), {.n_ranks = c.n_ranks, .channels = 1, .slot_bytes = kSlotBytes}, script_of(c, kSmallCounts, 1));
    fleet.run_threads(true);
    fleet.expect_results();
    EXPECT_GT(fleet.small_runs(), 10u) << c.algorithm << " " << to_string(c.collective);
  }
}

}  // namespace
}  // namespace hocket
