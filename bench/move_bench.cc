// SPDX-License-Identifier: Apache-2.0
// The fused move beside memcpy. GB/s count bytes read and written; `count` is in bytes of one operand.
//   move_bench --benchmark_filter='sum/.*float32'
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/datatype.h"
#include "exec/move.h"

namespace hocket {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Bytes = std::unique_ptr<char, Free>;

// Operands start on different pages but not at equal offsets in them, as slots and user buffers do. Contents are small
// values in every type.
Bytes allocate(std::size_t bytes) {
  Bytes p(static_cast<char*>(std::aligned_alloc(4096, (bytes + 8191) / 4096 * 4096)));
  std::memset(p.get(), 0x31, bytes);
  return p;
}

struct Shape {
  hocketDataType_t type = hocketFloat32;
  hocketRedOp_t op = hocketSum;
  int n_sources = 2;
  int n_sinks = 1;
  Store store = Store::cached;
  Format first_source = Format::element;
  int divisor = 1;
  std::size_t misalignment = 0;  // of the sinks, in elements
};

void count_bytes(benchmark::State& state, std::size_t per_iteration) {
  state.SetBytesProcessed(static_cast<std::int64_t>(per_iteration) * state.iterations());
}

void move(benchmark::State& state, const Shape& shape) {
  const std::size_t element = element_bytes(shape.type);
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / element;
  const std::size_t first = shape.first_source == Format::element ? element : accumulator_bytes(shape.type);
  std::vector<Bytes> memory;
  std::vector<MoveSource> sources;
  std::vector<MoveSink> sinks;
  for (int s = 0; s < shape.n_sources; ++s) {
    memory.push_back(allocate(count * (s == 0 ? first : element)));
    sources.push_back({memory.back().get(), s == 0 ? shape.first_source : Format::element, nullptr});
  }
  for (int k = 0; k < shape.n_sinks; ++k) {
    memory.push_back(allocate((count + shape.misalignment) * element));
    sinks.push_back({memory.back().get() + shape.misalignment * element, Format::element, shape.store});
  }
  MoveArgs args;
  args.sources = sources.data();
  args.n_sources = shape.n_sources;
  args.sinks = sinks.data();
  args.n_sinks = shape.n_sinks;
  args.count = count;
  args.divisor = shape.divisor;
  const MoveFn run = move_function(shape.type, shape.op);
  for (auto _ : state) {
    run(args);
    benchmark::ClobberMemory();
  }
  count_bytes(state, count * (first + element * static_cast<std::size_t>(shape.n_sources - 1 + shape.n_sinks)));
}

void copy(benchmark::State& state, int n_sinks, Store store) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Bytes source = allocate(bytes);
  std::vector<Bytes> memory;
  std::vector<MoveSink> sinks;
  for (int k = 0; k < n_sinks; ++k) {
    memory.push_back(allocate(bytes));
    sinks.push_back({memory.back().get(), Format::element, store});
  }
  for (auto _ : state) {
    copy_move(source.get(), sinks.data(), n_sinks, bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes * static_cast<std::size_t>(1 + n_sinks));
}

void memcpy_limit(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Bytes source = allocate(bytes), sink = allocate(bytes);
  for (auto _ : state) {
    std::memcpy(sink.get(), source.get(), bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * bytes);
}

// Operands of 8 KiB fit a first-level cache three at a time, 128 KiB a second-level one, 1 MiB a third-level one; 8 MiB
// may not, 64 MiB do not.
template <class Function, class... Args>
void add(const std::string& name, Function function, Args... args) {
  benchmark::RegisterBenchmark(name.c_str(), function, args...)->Arg(8 << 10)->Arg(128 << 10)->Arg(1 << 20)->Arg(8 << 20)->Arg(64 << 20);
}

void add_small(const std::string& name, const Shape& shape) {
  benchmark::RegisterBenchmark(name.c_str(), move, shape)->Arg(8)->Arg(64)->Arg(252)->Arg(1024);
}

void register_all() {
  add("memcpy", memcpy_limit);
  for (int type = 0; type < kDatatypeCount; ++type) {
    Shape shape;
    shape.type = static_cast<hocketDataType_t>(type);
    add("sum/2/" + std::string(datatype_name(shape.type)), move, shape);
    add_small("small/" + std::string(datatype_name(shape.type)), shape);
    shape.op = hocketMax;
    add("max/2/" + std::string(datatype_name(shape.type)), move, shape);
  }
  for (const hocketDataType_t type : {hocketFloat32, hocketBfloat16, hocketFloat16, hocketFloat8e4m3, hocketInt32}) {
    const std::string name(datatype_name(type));
    for (const int n_sources : {1, 3, 4, 8, 16}) {
      add("sum/" + std::to_string(n_sources) + "/" + name, move, Shape{.type = type, .n_sources = n_sources});
    }
    add("sum/2to2/" + name, move, Shape{.type = type, .n_sinks = 2});
    add("sum_streaming/2/" + name, move, Shape{.type = type, .store = Store::streaming});
    add("sum_streaming/2to2/" + name, move, Shape{.type = type, .n_sinks = 2, .store = Store::streaming});
    add("sum_misaligned/2/" + name, move, Shape{.type = type, .misalignment = 1});
    add("sum_accumulator/2/" + name, move, Shape{.type = type, .first_source = Format::accumulator});
    add("avg/2/" + name, move, Shape{.type = type, .op = hocketAvg, .divisor = 3});
  }
  for (const int n_sinks : {1, 2, 3}) {
    add("copy/" + std::to_string(n_sinks), copy, n_sinks, Store::cached);
    add("copy_streaming/" + std::to_string(n_sinks), copy, n_sinks, Store::streaming);
  }
}

}  // namespace
}  // namespace hocket

int main(int argc, char** argv) {
  hocket::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
