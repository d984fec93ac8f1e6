// SPDX-License-Identifier: Apache-2.0
#include "plan/cost.h"

#include <algorithm>
#include <cmath>

namespace hocket {

namespace {

double load_us(const TransportCaps& caps, const Load& load, double rounds) {
  return load.ends * rounds * caps.step_us + load.bytes / caps.copy_rate;
}

// One hand-over. When ranks share a core, all of them take a turn before everyone has passed on.
double hop_us(const TransportCaps& caps) {
  const double turns = caps.cores_per_rank < 1 ? 1 / caps.cores_per_rank : 0;
  return caps.handover_us + caps.step_us + turns * caps.switch_us;
}

}  // namespace

Work even_work(const PlanRequest& request, double hops, double hop_bytes, Load each) {
  const double n = request.n_ranks;
  return {hops, hop_bytes, 0, each, {each.ends * n, each.bytes * n}};
}

Work pipeline_work(const PlanRequest& request, double hops, double hop_bytes, Load each) {
  Work work = even_work(request, hops, hop_bytes, each);
  work.fills = hops - 1;
  return work;
}

double time_us(const PlanRequest& request, const Work& work) {
  const TransportCaps& caps = request.caps;
  const double slot_bytes = static_cast<double>(std::max<std::size_t>(caps.slot_bytes, 1));
  const double rounds = std::max(1.0, std::ceil(work.hop_bytes / slot_bytes));
  const double fill_us = work.fills * std::min(work.hop_bytes, slot_bytes) / caps.copy_rate;
  const double cores = request.n_ranks * std::min(1.0, caps.cores_per_rank);
  const double work_us = std::max(load_us(caps, work.busiest, rounds), load_us(caps, work.all, rounds) / cores);
  return work.hops * hop_us(caps) + fill_us + work_us;
}

double call_bytes(const PlanRequest& request) {
  constexpr std::size_t kGuess = 64 * 1024;
  return static_cast<double>(request.bytes.value_or(kGuess));
}

double widening(const PlanRequest& request) {
  return static_cast<double>(request.partial_bytes) / static_cast<double>(std::max<std::size_t>(request.element_bytes, 1));
}

double multicast_ends(const PlanRequest& request) { return request.caps.multicast ? 1 : request.n_ranks - 1; }

int ceil_log2(int n) {
  int bits = 0;
  while ((1 << bits) < n) ++bits;
  return bits;
}

}  // namespace hocket
