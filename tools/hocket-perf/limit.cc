// SPDX-License-Identifier: Apache-2.0
#include "limit.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "cpus.h"
#include "ideal_kernels.h"
#include "stats.h"

namespace hocket::perf {
namespace {

constexpr std::size_t kMinWorkBytes = 4096;
constexpr std::size_t kLine = 64;
constexpr int kMaxSamples = 50;
constexpr double kRoundUs = 10'000;  // of one kind of work in one round
constexpr double kSampleUs = 20;     // below this the clock and the meeting would show

struct alignas(kLine) Line {
  std::atomic<std::uint64_t> value{0};
};

// Spins, but lets others run when that takes long: the two sides may have to share a core.
template <class Ready>
void spin_until(Ready ready) {
  for (int i = 1; !ready(); ++i) {
    if (i % 4096 == 0) sched_yield();
  }
}

double gbyte_s(std::size_t bytes, const std::vector<double>& samples_us) {
  return static_cast<double>(bytes) * 1e-3 / median(samples_us);
}

}  // namespace

struct LimitMeter::Control {
  Line arrived[2];  // meetings that each side has come to; each side writes its own
  Line ball;        // ping-pong: side 0 makes it odd, side 1 even
  alignas(kLine) std::uint64_t batch;
  std::uint64_t n_samples;
  double times_us[2][kMaxSamples];
};

// One pass of a side over its part.
struct LimitMeter::Work {
  AddToBoth add = nullptr;  // or memcpy, by side 0 alone
  char* a = nullptr;
  char* b = nullptr;
  std::size_t bytes = 0;

  void run() const {
    if (bytes == 0) return;
    if (add != nullptr) {
      add(reinterpret_cast<float*>(a), reinterpret_cast<float*>(b), bytes / sizeof(float));
    } else {
      std::memcpy(b, a, bytes);
    }
  }
};

Limit LimitSamples::summary(std::size_t bytes) const {
  Limit limit{median(hand_over_ns), {}, {}, {}};
  if (plain_us.empty()) return limit;
  limit.plain_gbyte_s = gbyte_s(bytes, plain_us);
  limit.streaming_gbyte_s = gbyte_s(bytes, streaming_us);
  limit.memcpy_gbyte_s = gbyte_s(bytes, memcpy_us);
  return limit;
}

LimitMeter::LimitMeter(std::size_t max_bytes, std::vector<int> cpus)
    : max_bytes_((max_bytes + kLine - 1) / kLine * kLine),
      cpus_(std::move(cpus)),
      memory_(sizeof(Control) + kLine + 2 * max_bytes_) {
  new (memory_.data()) Control{};
  static_assert(sizeof(Control) % kLine == 0, "the buffers after it keep their alignment");
  std::memset(memory_.data() + sizeof(Control), 0, 2 * max_bytes_);
}

LimitMeter::Control& LimitMeter::control() const { return *std::launder(reinterpret_cast<Control*>(memory_.data())); }

void LimitMeter::meet(int side) const {
  std::atomic<std::uint64_t>& mine = control().arrived[side].value;
  const std::atomic<std::uint64_t>& other = control().arrived[1 - side].value;
  // Own counter, written by this side only: relaxed load. The release publishes what this side wrote before the meeting
  // (batch, times); pairs with the acquire below on the other side.
  const std::uint64_t turn = mine.load(std::memory_order_relaxed) + 1;
  mine.store(turn, std::memory_order_release);
  spin_until([&] { return other.load(std::memory_order_acquire) >= turn; });
}

void LimitMeter::measure_hand_over(int side, LimitSamples& samples) const {
  constexpr int kBatches = 10;
  constexpr std::uint64_t kTurns = 500;
  // One line that both write: it changes hands once a turn. A line per writer takes half as long again.
  std::atomic<std::uint64_t>& ball = control().ball.value;
  std::uint64_t turn = ball.load(std::memory_order_relaxed);  // nobody writes it before both have met
  meet(side);
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < kTurns; ++i) {
      turn += 2;
      // Release and acquire, as payload in the same line would need them; on x86 both are plain moves.
      if (side == 0) ball.store(turn - 1, std::memory_order_release);
      const std::uint64_t awaited = side == 0 ? turn : turn - 1;
      spin_until([&] { return ball.load(std::memory_order_acquire) >= awaited; });
      if (side == 1) ball.store(turn, std::memory_order_release);
    }
    samples.hand_over_ns.push_back(elapsed_us(start, Clock::now()) * 1e3 / (2 * kTurns));
  }
}

void LimitMeter::measure_work(int side, Work work, std::vector<double>& samples_us) const {
  Control& shared = control();
  meet(side);
  work.run();  // maps the pages into this process and warms up
  meet(side);
  if (side == 0) {
    const auto start = Clock::now();
    work.run();
    const double once_us = std::max(elapsed_us(start, Clock::now()), 0.01);
    shared.batch = static_cast<std::uint64_t>(std::max(1.0, kSampleUs / once_us));
    const double sample_us = once_us * static_cast<double>(shared.batch);
    shared.n_samples = static_cast<std::uint64_t>(std::clamp(kRoundUs / sample_us, 3.0, double{kMaxSamples}));
  } else {
    work.run();
  }
  meet(side);
  const std::uint64_t batch = shared.batch;
  const std::uint64_t n_samples = shared.n_samples;
  for (std::uint64_t i = 0; i < n_samples; ++i) {
    meet(side);
    const auto start = Clock::now();
    for (std::uint64_t k = 0; k < batch; ++k) work.run();
    shared.times_us[side][i] = elapsed_us(start, Clock::now()) / static_cast<double>(batch);
  }
  meet(side);
  if (side == 0) {
    for (std::uint64_t i = 0; i < n_samples; ++i) {
      samples_us.push_back(std::max(shared.times_us[0][i], shared.times_us[1][i]));
    }
  }
  meet(side);  // the next measurement overwrites the times
}

void LimitMeter::measure(int side, std::size_t bytes, LimitSamples& samples) const {
  const ScopedPin pin(cpus_, side);
  measure_hand_over(side, samples);
  if (bytes < kMinWorkBytes) return;
  char* a = memory_.data() + sizeof(Control);
  char* b = a + max_bytes_;
  const std::size_t half = bytes / 2 / kLine * kLine;
  const std::size_t at = side == 0 ? 0 : half;
  const std::size_t mine = side == 0 ? half : bytes - half;
  measure_work(side, {add_to_both(Stores::plain), a + at, b + at, mine}, samples.plain_us);
  measure_work(side, {add_to_both(Stores::streaming), a + at, b + at, mine}, samples.streaming_us);
  measure_work(side, {nullptr, a, b, side == 0 ? bytes : 0}, samples.memcpy_us);
}

std::vector<Limit> measure_limits(const std::vector<std::size_t>& sizes, const std::vector<int>& cpus) {
  constexpr int kRounds = 4;
  const LimitMeter meter(sizes.empty() ? 0 : sizes.back(), cpus);
  const auto run_side = [&](int side) {
    std::vector<Limit> out;
    for (std::size_t bytes : sizes) {
      LimitSamples samples;
      for (int round = 0; round < kRounds; ++round) meter.measure(side, bytes, samples);
      out.push_back(samples.summary(bytes));
    }
    return out;
  };
  std::vector<Limit> limits;
  std::thread side_0([&] { limits = run_side(0); });
  std::thread side_1([&] { run_side(1); });
  side_0.join();
  side_1.join();
  return limits;
}

}  // namespace hocket::perf
