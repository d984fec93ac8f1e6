// SPDX-License-Identifier: Apache-2.0
// What a call costs before its first byte moves: looking its plan up, making it, making it ready to run, starting it.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/datatype.h"
#include "comm/hot_calls.h"
#include "comm/plan_cache.h"
#include "exec/cpu_executor.h"
#include "exec/small_program.h"
#include "plan/planner.h"
#include "shm/shm_transport.h"

namespace hocket {
namespace {

PlanRequest request_of(Collective collective, int n_ranks, std::size_t bytes, const std::string& algorithm = "") {
  PlanRequest request;
  request.collective = collective;
  request.n_ranks = n_ranks;
  request.bytes = bytes;
  request.algorithm = algorithm;
  return request;
}

PlanKey key_of(Collective collective, std::size_t bytes) {
  PlanKey key;
  key.collective = collective;
  key.element_bytes = key.partial_bytes = 4;
  key.size_class = size_class(bytes);
  return key;
}

// Rank 0 of n, over memory that nobody else uses.
std::unique_ptr<ShmTransport> lone_rank(int n_ranks) {
  const ShmLayout layout(n_ranks, Settings{});
  return std::make_unique<ShmTransport>(
      0, n_ranks, layout, std::make_shared<Mapping>(std::move(*Mapping::anonymous(layout.total_bytes()))));
}

CallData data_of(const Plan& plan, std::size_t count, std::vector<float>& memory) {
  memory.assign(2 * count, 1.0f);
  CallData data;
  data.input = reinterpret_cast<const std::byte*>(memory.data());
  data.output = reinterpret_cast<std::byte*>(memory.data() + count);
  data.input_blocks.count = data.output_blocks.count = count;
  data.input_blocks.n_blocks = data.output_blocks.n_blocks = static_cast<std::size_t>(plan.n_blocks);
  data.input_blocks.granule = data.output_blocks.granule = kCacheLine / sizeof(float);
  data.element_bytes = data.partial_bytes = sizeof(float);
  data.move = move_function(hocketFloat32, hocketSum);
  return data;
}

void make_plan_of(benchmark::State& state) {
  const PlanRequest request =
      request_of(Collective::all_reduce, static_cast<int>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  for (auto _ : state) benchmark::DoNotOptimize(make_plan(request, 1));
  state.SetLabel(make_plan(request, 1)->algorithm);
}
BENCHMARK(make_plan_of)
    ->Name("make_plan")
    ->ArgNames({"ranks", "bytes"})
    ->ArgsProduct({{2, 8, 300}, {8, 64 << 10, 64 << 20}});

void make_program_of(benchmark::State& state) {
  const auto n_ranks = static_cast<int>(state.range(0));
  const auto transport = lone_rank(n_ranks);
  const Plan plan = *make_plan(request_of(Collective::all_reduce, n_ranks, 64 << 10), 0);
  for (auto _ : state) benchmark::DoNotOptimize(make_program(plan, *transport));
  state.SetLabel(plan.algorithm);
}
BENCHMARK(make_program_of)->Name("make_program")->ArgName("ranks")->Arg(2)->Arg(8)->Arg(64);

// The same call again.
void cache_hit(benchmark::State& state) {
  const auto transport = lone_rank(8);
  PlanCache cache(request_of(Collective::barrier, 8, 0), 0, transport.get());
  const PlanKey key = key_of(Collective::all_reduce, 4096);
  for (auto _ : state) benchmark::DoNotOptimize(cache.find(key));
}
BENCHMARK(cache_hit)->Name("plan_cache/same");

// Calls of many sizes in turn: some share a place among the recent ones.
void cache_hits(benchmark::State& state) {
  const auto transport = lone_rank(8);
  PlanCache cache(request_of(Collective::barrier, 8, 0), 0, transport.get());
  std::vector<PlanKey> keys;
  for (const Collective kind :
       {Collective::all_reduce, Collective::broadcast, Collective::all_gather, Collective::reduce_scatter})
    for (std::size_t bytes = 4; bytes <= (1 << 26); bytes *= 2) keys.push_back(key_of(kind, bytes));
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(cache.find(keys[i]));
    i = i + 1 == keys.size() ? 0 : i + 1;
  }
}
BENCHMARK(cache_hits)->Name("plan_cache/in_turn");

Request all_reduce_of(std::size_t count) {
  Request request;
  request.collective = Collective::all_reduce;
  request.datatype = hocketFloat32;
  request.count = count;
  return request;
}

// `n` calls of different counts in turn.
void hot_call(benchmark::State& state) {
  HotCalls calls;
  std::vector<Request> requests;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    requests.push_back(all_reduce_of(static_cast<std::size_t>(i) + 1));
    HotCall call;
    call.shape_key = requests.back().shape_key();
    call.count = requests.back().count;
    calls.put(std::move(call));
  }
  std::size_t i = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(calls.find(requests[i]));
    i = i + 1 == requests.size() ? 0 : i + 1;
  }
}
BENCHMARK(hot_call)->Name("hot_calls/find")->ArgName("calls")->Arg(1)->Arg(8);

void start_execution(benchmark::State& state, const std::string& algorithm, int n_ranks, std::size_t count) {
  const auto transport = lone_rank(n_ranks);
  const Program program =
      *make_program(*make_plan(request_of(Collective::all_reduce, n_ranks, 4 * count, algorithm), 0), *transport);
  std::vector<float> memory;
  const CallData data = data_of(program.plan, count, memory);
  Doorbells none;
  Execution execution;
  for (auto _ : state) {
    execution.start(program, data, none);
    benchmark::DoNotOptimize(&execution);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::to_string(program.steps.size()) + " steps");
}
BENCHMARK_CAPTURE(start_execution, one_shot_2_ranks, std::string("one_shot"), 2, 2)->Name("start/one_shot/2 ranks");
BENCHMARK_CAPTURE(start_execution, two_shot_2_ranks, std::string("two_shot"), 2, 1 << 18)
    ->Name("start/two_shot/2 ranks");
BENCHMARK_CAPTURE(start_execution, two_shot_8_ranks, std::string("two_shot"), 8, 1 << 18)
    ->Name("start/two_shot/8 ranks");
BENCHMARK_CAPTURE(start_execution, ring_8_ranks, std::string("ring"), 8, 1 << 18)->Name("start/ring/8 ranks");

void make_small(benchmark::State& state) {
  const auto transport = lone_rank(2);
  const Program program =
      *make_program(*make_plan(request_of(Collective::all_reduce, 2, 8, "one_shot"), 0), *transport);
  std::vector<float> memory;
  const CallData data = data_of(program.plan, 2, memory);
  for (auto _ : state) benchmark::DoNotOptimize(SmallProgram::make(program, data));
}
BENCHMARK(make_small)->Name("make_small_program/one_shot");

}  // namespace
}  // namespace hocket
