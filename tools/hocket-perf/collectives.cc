// SPDX-License-Identifier: Apache-2.0
#include "collectives.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace hocket::perf {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

std::size_t ranks(const Setting& s) { return static_cast<std::size_t>(s.n_ranks); }

// The start of each block when blocks lie one after another.
Counts starts(const Counts& counts) {
  Counts out(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), out.begin(), std::size_t{0});
  return out;
}

Part from_rank(std::size_t at, std::size_t count, int rank, std::size_t first) {
  return {at, count, Origin::input, rank, first};
}

Part reduced(std::size_t count, std::size_t first) { return {0, count, Origin::reduction, 0, first}; }

// Rank k's block at displs[k], for every k.
std::vector<Part> gathered(const Counts& counts, const Counts& displs) {
  std::vector<Part> out;
  for (std::size_t k = 0; k < counts.size(); ++k)
    out.push_back(from_rank(displs[k], counts[k], static_cast<int>(k), 0));
  return out;
}

// ---- Shapes ----

Shape all_reduce_shape(const Setting& s, int) {
  return {.send_count = s.count, .recv_count = s.count, .results = {reduced(s.count, 0)}};
}

Shape broadcast_shape(const Setting& s, int) {
  return {.send_count = s.count, .recv_count = s.count, .results = {from_rank(0, s.count, s.root, 0)}};
}

Shape reduce_shape(const Setting& s, int rank) {
  Shape shape = all_reduce_shape(s, rank);
  if (rank != s.root) shape.results.clear();
  return shape;
}

Shape all_gather_shape(const Setting& s, int rank) {
  const Counts counts(ranks(s), s.count);
  return {.send_count = s.count,
          .recv_count = ranks(s) * s.count,
          .results = gathered(counts, starts(counts)),
          .send_at = index(rank) * s.count};
}

Shape reduce_scatter_shape(const Setting& s, int rank) {
  const std::size_t at = index(rank) * s.count;
  return {.send_count = ranks(s) * s.count, .recv_count = s.count, .results = {reduced(s.count, at)}, .recv_at = at};
}

Shape all_to_all_shape(const Setting& s, int rank) {
  Shape shape{.send_count = ranks(s) * s.count, .recv_count = ranks(s) * s.count};
  for (int k = 0; k < s.n_ranks; ++k) {
    shape.results.push_back(from_rank(index(k) * s.count, s.count, k, index(rank) * s.count));
  }
  return shape;
}

Shape gather_shape(const Setting& s, int rank) {
  if (rank == s.root) return all_gather_shape(s, rank);
  return {.send_count = s.count};
}

Shape scatter_shape(const Setting& s, int rank) {
  Shape shape{.recv_count = s.count, .results = {from_rank(0, s.count, s.root, index(rank) * s.count)}};
  if (rank == s.root) {
    shape.send_count = ranks(s) * s.count;
    shape.recv_at = index(rank) * s.count;
  }
  return shape;
}

Shape send_recv_shape(const Setting& s, int rank) {
  const int prev = (rank + s.n_ranks - 1) % s.n_ranks;
  return {.send_count = s.count, .recv_count = s.count, .results = {from_rank(0, s.count, prev, 0)}};
}

Shape barrier_shape(const Setting&, int) { return {}; }

Shape all_gather_v_shape(const Setting& s, int rank) {
  const Counts displs = starts(s.counts);
  return {.send_count = s.counts[index(rank)],
          .recv_count = s.count,
          .results = gathered(s.counts, displs),
          .send_at = displs[index(rank)],
          .recv_counts = s.counts,
          .recv_displs = displs};
}

Shape reduce_scatter_v_shape(const Setting& s, int rank) {
  const std::size_t at = starts(s.counts)[index(rank)];
  const std::size_t count = s.counts[index(rank)];
  return {.send_count = s.count,
          .recv_count = count,
          .results = {reduced(count, at)},
          .recv_at = at,
          .recv_counts = s.counts};
}

// Rank r sends counts[(k - r) mod n] elements to rank k: uneven, and every rank sends and receives s.count in all.
std::size_t all_to_all_v_count(const Setting& s, int from, int to) {
  return s.counts[index((to - from + s.n_ranks) % s.n_ranks)];
}

Counts all_to_all_v_row(const Setting& s, int from) {
  Counts row;
  for (int to = 0; to < s.n_ranks; ++to) row.push_back(all_to_all_v_count(s, from, to));
  return row;
}

Shape all_to_all_v_shape(const Setting& s, int rank) {
  Shape shape{.send_count = s.count, .recv_count = s.count};
  shape.send_counts = all_to_all_v_row(s, rank);
  for (int k = 0; k < s.n_ranks; ++k) shape.recv_counts.push_back(all_to_all_v_count(s, k, rank));
  shape.send_displs = starts(shape.send_counts);
  shape.recv_displs = starts(shape.recv_counts);
  for (int k = 0; k < s.n_ranks; ++k) {
    const std::size_t first = starts(all_to_all_v_row(s, k))[index(rank)];
    shape.results.push_back(from_rank(shape.recv_displs[index(k)], shape.recv_counts[index(k)], k, first));
  }
  return shape;
}

Shape gather_v_shape(const Setting& s, int rank) {
  if (rank == s.root) return all_gather_v_shape(s, rank);
  return {.send_count = s.counts[index(rank)]};
}

Shape scatter_v_shape(const Setting& s, int rank) {
  const Counts displs = starts(s.counts);
  const std::size_t count = s.counts[index(rank)];
  Shape shape{.recv_count = count, .results = {from_rank(0, count, s.root, displs[index(rank)])}};
  if (rank == s.root) {
    shape.send_count = s.count;
    shape.recv_at = displs[index(rank)];
    shape.send_counts = s.counts;
    shape.send_displs = displs;
  }
  return shape;
}

// ---- Calls ----

const std::size_t* pointer(const Counts& counts) { return counts.empty() ? nullptr : counts.data(); }

hocketResult_t all_reduce(const Call& c) {
  return hocketAllReduce(c.send, c.recv, c.setting->count, c.type, c.op, c.comm, c.stream);
}
hocketResult_t broadcast(const Call& c) {
  return hocketBroadcast(c.send, c.recv, c.setting->count, c.type, c.setting->root, c.comm, c.stream);
}
hocketResult_t reduce(const Call& c) {
  return hocketReduce(c.send, c.recv, c.setting->count, c.type, c.op, c.setting->root, c.comm, c.stream);
}
hocketResult_t all_gather(const Call& c) {
  return hocketAllGather(c.send, c.recv, c.setting->count, c.type, c.comm, c.stream);
}
hocketResult_t reduce_scatter(const Call& c) {
  return hocketReduceScatter(c.send, c.recv, c.setting->count, c.type, c.op, c.comm, c.stream);
}
hocketResult_t all_to_all(const Call& c) {
  return hocketAlltoAll(c.send, c.recv, c.setting->count, c.type, c.comm, c.stream);
}
hocketResult_t gather(const Call& c) {
  return hocketGather(c.send, c.recv, c.setting->count, c.type, c.setting->root, c.comm, c.stream);
}
hocketResult_t scatter(const Call& c) {
  return hocketScatter(c.send, c.recv, c.setting->count, c.type, c.setting->root, c.comm, c.stream);
}
hocketResult_t send_recv(const Call& c) {  // to the next rank, from the previous one
  const int n = c.setting->n_ranks;
  const auto sent = hocketSend(c.send, c.setting->count, c.type, (c.rank + 1) % n, c.comm, c.stream);
  if (sent != hocketSuccess) return sent;
  return hocketRecv(c.recv, c.setting->count, c.type, (c.rank + n - 1) % n, c.comm, c.stream);
}
hocketResult_t barrier(const Call& c) { return hocketBarrier(c.comm, c.stream); }
hocketResult_t all_gather_v(const Call& c) {
  return hocketAllGatherV(c.send, c.shape->send_count, c.recv, pointer(c.shape->recv_counts),
                          pointer(c.shape->recv_displs), c.type, c.comm, c.stream);
}
hocketResult_t reduce_scatter_v(const Call& c) {
  return hocketReduceScatterV(c.send, c.recv, pointer(c.shape->recv_counts), c.type, c.op, c.comm, c.stream);
}
hocketResult_t all_to_all_v(const Call& c) {
  return hocketAlltoAllV(c.send, pointer(c.shape->send_counts), pointer(c.shape->send_displs), c.recv,
                         pointer(c.shape->recv_counts), pointer(c.shape->recv_displs), c.type, c.comm, c.stream);
}
hocketResult_t gather_v(const Call& c) {
  return hocketGatherV(c.send, c.shape->send_count, c.recv, pointer(c.shape->recv_counts),
                       pointer(c.shape->recv_displs), c.type, c.setting->root, c.comm, c.stream);
}
hocketResult_t scatter_v(const Call& c) {
  return hocketScatterV(c.send, pointer(c.shape->send_counts), pointer(c.shape->send_displs), c.recv,
                        c.shape->recv_count, c.type, c.setting->root, c.comm, c.stream);
}

// ---- Bus bandwidth: what each rank's link carries, so that figures compare with its speed (nccl-tests' factors) ----

double one(int) { return 1; }
double shared_out(int n) { return static_cast<double>(n - 1) / n; }
double there_and_back(int n) { return 2 * shared_out(n); }

constexpr Collective kCollectives[] = {
    {"all_reduce", "hocketAllReduce", Sizing::whole, true, false, true, false, there_and_back, all_reduce_shape,
     all_reduce},
    {"broadcast", "hocketBroadcast", Sizing::whole, false, true, true, false, one, broadcast_shape, broadcast},
    {"reduce", "hocketReduce", Sizing::whole, true, true, true, false, one, reduce_shape, reduce},
    {"all_gather", "hocketAllGather", Sizing::per_rank, false, false, true, false, shared_out, all_gather_shape,
     all_gather},
    {"reduce_scatter", "hocketReduceScatter", Sizing::per_rank, true, false, true, false, shared_out,
     reduce_scatter_shape, reduce_scatter},
    {"all_to_all", "hocketAlltoAll", Sizing::per_rank, false, false, false, false, shared_out, all_to_all_shape,
     all_to_all},
    {"gather", "hocketGather", Sizing::per_rank, false, true, true, false, shared_out, gather_shape, gather},
    {"scatter", "hocketScatter", Sizing::per_rank, false, true, true, false, shared_out, scatter_shape, scatter},
    {"send_recv", "hocketSend/hocketRecv", Sizing::whole, false, false, false, true, one, send_recv_shape, send_recv},
    {"barrier", "hocketBarrier", Sizing::nothing, false, false, false, false, one, barrier_shape, barrier},
    {"all_gather_v", "hocketAllGatherV", Sizing::vectors, false, false, true, false, shared_out, all_gather_v_shape,
     all_gather_v},
    {"reduce_scatter_v", "hocketReduceScatterV", Sizing::vectors, true, false, true, false, shared_out,
     reduce_scatter_v_shape, reduce_scatter_v},
    {"all_to_all_v", "hocketAlltoAllV", Sizing::vectors, false, false, false, false, shared_out, all_to_all_v_shape,
     all_to_all_v},
    {"gather_v", "hocketGatherV", Sizing::vectors, false, true, true, false, shared_out, gather_v_shape, gather_v},
    {"scatter_v", "hocketScatterV", Sizing::vectors, false, true, true, false, shared_out, scatter_v_shape, scatter_v},
};

// `total` elements over n ranks: about 30 % of the ranks get none, the others random shares.
Counts random_counts(std::size_t total, int n_ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed ^
                         (total * 0x9e3779b97f4a7c15ull));  // its output is the same everywhere, unlike distributions'
  std::vector<std::uint64_t> weights(index(n_ranks));
  for (auto& weight : weights) {
    const bool none = random() % 10 < 3;
    weight = none ? 0 : 1 + random() % 1024;
  }
  const std::size_t lucky = random() % weights.size();  // takes what division leaves over
  weights[lucky] = std::max<std::uint64_t>(weights[lucky], 1);
  const auto sum = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  Counts counts(weights.size());
  std::size_t given = 0;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    counts[k] = total * weights[k] / sum;
    given += counts[k];
  }
  counts[lucky] += total - given;
  return counts;
}

}  // namespace

std::span<const Collective> all_collectives() { return kCollectives; }

const Collective* find_collective(std::string_view name) {
  for (const Collective& collective : kCollectives) {
    if (collective.name == name) return &collective;
  }
  return nullptr;
}

Setting make_setting(const Collective& collective, std::size_t bytes, std::size_t element_bytes, int n_ranks, int root,
                     std::uint64_t seed) {
  Setting setting{n_ranks, collective.rooted ? root : -1, bytes / element_bytes, {}};
  switch (collective.sizing) {
    case Sizing::whole: break;
    case Sizing::per_rank: setting.count /= static_cast<std::size_t>(n_ranks); break;
    case Sizing::vectors: setting.counts = random_counts(setting.count, n_ranks, seed); break;
    case Sizing::nothing: setting.count = 0; break;
  }
  return setting;
}

std::size_t total_count(const Collective& collective, const Setting& setting) {
  return collective.sizing == Sizing::per_rank ? setting.count * static_cast<std::size_t>(setting.n_ranks)
                                               : setting.count;
}

}  // namespace hocket::perf
