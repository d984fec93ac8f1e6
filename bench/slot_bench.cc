// SPDX-License-Identifier: Apache-2.0
// Handing slots over between two threads on CPUs of their own, over the rings of shared memory as a communicator of two
// ranks has them.
//   ping_pong/ll/N       one transfer there and one back per iteration; `one_way` is half of that
//   stream/ll/N, stream/bulk/N   transfers one behind the other; copied in by the producer, copied out by the consumer
//   line                 the limit: one cache line handed there and back, nothing else
// `best_...` is the fastest stretch of 64 iterations, which a busy machine leaves alone.
#include <benchmark/benchmark.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mapping.h"
#include "base/ring.h"
#include "exec/wait.h"
#include "shm/layout.h"

namespace hocket {
namespace {

constexpr std::uint32_t kFingerprint = 0x5107;

// The two CPUs that the threads run on: the first two that this process may use.
std::optional<std::pair<int, int>> two_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  if (cpus.size() < 2) return std::nullopt;
  return std::pair(cpus[0], cpus[1]);
}

// Pins this thread while it lives.
class Pinned {
 public:
  explicit Pinned(int cpu) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~Pinned() { ::sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_;
};

// Memory of two ranks.
class Memory {
 public:
  Memory() : layout_(2, Settings{}), mapping_(std::move(*Mapping::anonymous(layout_.total_bytes()))) {
    std::memset(mapping_.data(), 0, mapping_.bytes());
  }
  RingMemory ring(int source) const { return layout_.ring(mapping_.data(), source, 1 - source, Port::pair_a, 0); }
  std::size_t ll_bytes() const { return layout_.ll_bytes(); }
  std::size_t slot_bytes() const { return layout_.slot_bytes(); }

 private:
  ShmLayout layout_;
  Mapping mapping_;
};

// Runs `body(stop)` on the other CPU until the object dies.
class Partner {
 public:
  template <class Body>
  Partner(int cpu, Body body)
      : thread_([this, cpu, body] {
          const Pinned pinned(cpu);
          body(stop_);
        }) {}
  ~Partner() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  alignas(kCacheLine) std::atomic<bool> stop_{false};
  alignas(kCacheLine) std::thread thread_;
};

template <class Ready>
bool await(Ready&& ready, const std::atomic<bool>& stop) {
  while (!ready()) {
    cpu_pause();
    if (stop.load(std::memory_order_relaxed)) return false;
  }
  return true;
}
template <class Ready>
void await(Ready&& ready) {
  while (!ready()) cpu_pause();
}

// The fastest of many short stretches: what the hardware does when nobody else runs on these CPUs, where the mean shows what
// else they do.
class Best {
 public:
  void count_one() {
    if (++n_ % kStretch != 0) return;
    const auto now = std::chrono::steady_clock::now();
    best_ = std::min(best_, now - last_);
    last_ = now;
  }
  double seconds() const {
    return n_ < kStretch ? 0 : std::chrono::duration<double>(best_).count() / static_cast<double>(kStretch);
  }

 private:
  static constexpr std::uint64_t kStretch = 64;
  std::uint64_t n_ = 0;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration best_ = std::chrono::steady_clock::duration::max();
};

void count_one_way(benchmark::State& state, const Best& best) {
  state.counters["one_way"] = benchmark::Counter(static_cast<double>(2 * state.iterations()),
                                                 benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["best_one_way_ns"] = best.seconds() / 2 * 1e9;
}

void line(benchmark::State& state) {
  const auto cpus = two_cpus();
  if (!cpus) return state.SkipWithError("needs two CPUs");
  struct alignas(kCacheLine) Line {
    std::atomic<std::uint64_t> value{0};
  };
  Line there, back;
  const Pinned pinned(cpus->first);
  Partner partner(cpus->second, [&](const std::atomic<bool>& stop) {
    for (std::uint64_t k = 1; await([&] { return there.value.load(std::memory_order_acquire) == k; }, stop); ++k)
      back.value.store(k, std::memory_order_release);
  });
  std::uint64_t k = 0;
  Best best;
  for (auto _ : state) {
    there.value.store(++k, std::memory_order_release);
    await([&] { return back.value.load(std::memory_order_acquire) == k; });
    best.count_one();
  }
  count_one_way(state, best);
}

void ping_pong(benchmark::State& state) {
  const auto cpus = two_cpus();
  if (!cpus) return state.SkipWithError("needs two CPUs");
  const Memory memory;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t n_lines = lines_for(bytes);
  const Pinned pinned(cpus->first);
  Partner partner(cpus->second, [&](const std::atomic<bool>& stop) {
    SendRing send(memory.ring(1), 1, -1);
    RecvRing recv(memory.ring(0), 0);
    std::vector<std::byte> buffer(bytes);
    while (await([&] { return recv.ready(kFingerprint, n_lines); }, stop)) {
      drain_lines(recv.lines(), buffer.data(), bytes);
      recv.release();
      await([&] { return send.can_send(); });
      fill_lines(send.lines(), buffer.data(), bytes);
      send.commit(kFingerprint, n_lines);
    }
  });
  SendRing send(memory.ring(0), 1, -1);
  RecvRing recv(memory.ring(1), 0);
  std::vector<std::byte> buffer(bytes);
  Best best;
  for (auto _ : state) {
    await([&] { return send.can_send(); });
    fill_lines(send.lines(), buffer.data(), bytes);
    send.commit(kFingerprint, n_lines);
    await([&] { return recv.ready(kFingerprint, n_lines); });
    drain_lines(recv.lines(), buffer.data(), bytes);
    recv.release();
    best.count_one();
  }
  count_one_way(state, best);
}

// `ll`: through lines; else through the bulk area.
void stream(benchmark::State& state, bool ll) {
  const auto cpus = two_cpus();
  if (!cpus) return state.SkipWithError("needs two CPUs");
  const Memory memory;
  const auto bytes = static_cast<std::size_t>(state.range(0));
  if (bytes > (ll ? memory.ll_bytes() : memory.slot_bytes())) return state.SkipWithError("larger than a slot");
  const std::size_t n_lines = ll ? lines_for(bytes) : 1;
  const Pinned pinned(cpus->first);
  Partner partner(cpus->second, [&](const std::atomic<bool>& stop) {
    RecvRing recv(memory.ring(0), 0);
    std::vector<std::byte> buffer(bytes);
    while (await([&] { return recv.ready(kFingerprint, n_lines); }, stop)) {
      if (ll) {
        drain_lines(recv.lines(), buffer.data(), bytes);
        recv.release();
      } else {
        std::memcpy(buffer.data(), recv.bulk(), bytes);
        recv.release_bulk(bytes);
      }
      benchmark::ClobberMemory();
    }
  });
  SendRing send(memory.ring(0), 1, -1);
  const std::vector<std::byte> buffer(bytes);
  Best best;
  for (auto _ : state) {
    await([&] { return send.can_send(); });
    if (ll) {
      fill_lines(send.lines(), buffer.data(), bytes);
      send.commit(kFingerprint, n_lines);
    } else {
      std::memcpy(send.bulk(), buffer.data(), bytes);
      send.commit_bulk(kFingerprint, bytes);
    }
    best.count_one();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
  state.counters["best_ns"] = best.seconds() * 1e9;
  state.counters["best_gbyte_s"] = best.seconds() > 0 ? static_cast<double>(bytes) / best.seconds() / 1e9 : 0;
}

BENCHMARK(line)->UseRealTime();
BENCHMARK(ping_pong)
    ->Name("ping_pong/ll")
    ->Arg(8)
    ->Arg(56)
    ->Arg(64)
    ->Arg(112)
    ->Arg(256)
    ->Arg(512)
    ->Arg(1024)
    ->Arg(1792)
    ->UseRealTime();
BENCHMARK_CAPTURE(stream, ll, true)->Arg(8)->Arg(56)->Arg(256)->Arg(512)->Arg(1024)->Arg(1792)->UseRealTime();
BENCHMARK_CAPTURE(stream, bulk, false)->RangeMultiplier(2)->Range(4 << 10, 128 << 10)->UseRealTime();

}  // namespace
}  // namespace hocket
