// SPDX-License-Identifier: Apache-2.0
#include "collectives/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

namespace hocket::test {
namespace {

// What no call writes by chance, and what differs from place to place.
void fill_pattern(std::byte* to, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(0xa5 ^ (i * 29 + seed));
}

// Starts of the blocks; with `gaps`, the blocks lie in a rotated order with up to 3 elements between them.
std::vector<std::size_t> displacements(const std::vector<std::size_t>& counts, bool gaps, std::uint64_t seed) {
  const std::size_t n = counts.size();
  std::vector<std::size_t> displs(n);
  std::size_t at = gaps ? hash(seed) % 4 : 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t k = gaps ? (n - 1 - i + hash(seed + 1) % n) % n : i;
    displs[k] = at;
    at += counts[k] + (gaps ? hash(seed + 2 + k) % 4 : 0);
  }
  return displs;
}

std::size_t extent(const std::vector<std::size_t>& counts, const std::vector<std::size_t>& displs) {
  std::size_t end = 0;
  for (std::size_t k = 0; k < counts.size(); ++k)
    if (counts[k] != 0) end = std::max(end, displs[k] + counts[k]);
  return end;
}

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

std::string to_string(Kind kind) {
  static constexpr const char* kNames[] = {"all_reduce",       "broadcast",    "bcast",    "reduce",    "all_gather",
                                           "reduce_scatter",   "all_to_all",   "gather",   "scatter",   "all_gather_v",
                                           "reduce_scatter_v", "all_to_all_v", "gather_v", "scatter_v", "ring_shift"};
  static_assert(std::size(kNames) == kKindCount);
  return kNames[static_cast<int>(kind)];
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter ||
         kind == Kind::reduce_scatter_v;
}
bool rooted(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::bcast || kind == Kind::reduce || kind == Kind::gather ||
         kind == Kind::scatter || kind == Kind::gather_v || kind == Kind::scatter_v;
}
bool vector_form(Kind kind) { return kind >= Kind::all_gather_v && kind <= Kind::scatter_v; }
bool has_in_place(Kind kind) {
  return kind != Kind::all_to_all && kind != Kind::all_to_all_v && kind != Kind::ring_shift && kind != Kind::bcast;
}

std::string Call::text() const {
  std::string listed;
  for (const std::size_t c : counts) listed += fmt::format("{}{}", listed.empty() ? "" : ",", c);
  return fmt::format("{} {} op {} root {} count {}{} {}, shifts {}/{}, memory {}, seed {}", to_string(kind),
                     datatype_name(type), reduces(kind) ? builtin_op_name(op) : "-", root, count,
                     listed.empty() ? "" : fmt::format(" counts [{}]{}", listed, gaps ? " with gaps" : ""),
                     in_place ? "in place" : "out of place", send_shift, recv_shift, static_cast<int>(memory), seed);
}

// ---- Area ----

Area::Area(std::size_t bytes, std::size_t shift, bool shared) : shift_(shift), total_(2 * kGuard + shift + bytes) {
  if (shared) {
    void* memory = nullptr;
    if (!ok(hocketMemAlloc(&memory, total_))) std::abort();
    storage_ = {static_cast<std::byte*>(memory), [](std::byte* p) { ok(hocketMemFree(p)); }};
  } else {
    storage_ = {static_cast<std::byte*>(std::aligned_alloc(64, (total_ + 63) / 64 * 64)),
                [](std::byte* p) { std::free(p); }};
  }
  fill_pattern(storage_.get(), total_, shift + bytes);
}

void Area::expect_unchanged() { expected_.assign(storage_.get(), storage_.get() + total_); }

std::ptrdiff_t Area::first_wrong_byte() const {
  if (!exists() || std::memcmp(storage_.get(), expected_.data(), total_) == 0) return kRight;
  const auto [is, should] = std::mismatch(storage_.get(), storage_.get() + total_, expected_.begin());
  return is - data();
}

// ---- PreparedCall ----

PreparedCall::PreparedCall(Call call, int n_ranks)
    : call_(std::move(call)), n_(n_ranks), size_(element_bytes(call_.type)), sides_(static_cast<std::size_t>(n_ranks)) {
  for (int rank = 0; rank < n_; ++rank) {
    lay_out(rank);
    place(rank);
    fill(rank);
  }
  expect();
}

// How much each buffer holds and where the blocks lie.
void PreparedCall::lay_out(int rank) {
  Side& side = sides_[static_cast<std::size_t>(rank)];
  const auto n = static_cast<std::size_t>(n_);
  const auto me = static_cast<std::size_t>(rank);
  const bool is_root = rank == call_.root;
  const std::size_t count = call_.count;
  side.send_elements = side.recv_elements = count;
  switch (call_.kind) {
    case Kind::all_reduce:
    case Kind::ring_shift: break;
    case Kind::broadcast: side.send_elements = is_root ? count : 0; break;
    case Kind::bcast: side.send_elements = is_root ? count : 0; break;
    case Kind::reduce: side.recv_elements = is_root ? count : 0; break;
    case Kind::all_gather:
      side.recv_elements = n * count;
      side.send_offset = me * count;
      break;
    case Kind::gather:
      side.recv_elements = is_root ? n * count : 0;
      side.send_offset = is_root ? me * count : 0;
      break;
    case Kind::reduce_scatter:
      side.send_elements = n * count;
      side.recv_offset = me * count;
      break;
    case Kind::scatter:
      side.send_elements = is_root ? n * count : 0;
      side.recv_offset = is_root ? me * count : 0;
      break;
    case Kind::all_to_all: side.send_elements = side.recv_elements = n * count; break;
    case Kind::all_gather_v:
    case Kind::gather_v:
      side.send_elements = call_.counts[me];
      side.recv_elements = 0;
      if (call_.kind == Kind::all_gather_v || is_root) {
        side.recv_counts = call_.counts;
        // The displacements of an all-gather are the same on every rank.
        side.recv_displs = displacements(call_.counts, call_.gaps, call_.seed);
        side.recv_elements = extent(side.recv_counts, side.recv_displs);
        side.send_offset = side.recv_displs[me];
      }
      break;
    case Kind::scatter_v:
      side.recv_elements = call_.counts[me];
      side.send_elements = 0;
      if (is_root) {
        side.send_counts = call_.counts;
        side.send_displs = displacements(call_.counts, call_.gaps, call_.seed);
        side.send_elements = extent(side.send_counts, side.send_displs);
        side.recv_offset = side.send_displs[me];
      }
      break;
    case Kind::reduce_scatter_v:
      side.send_counts = call_.counts;
      side.send_displs = displacements(call_.counts, false, 0);
      side.send_elements = sum(call_.counts);
      side.recv_elements = call_.counts[me];
      side.recv_offset = side.send_displs[me];
      break;
    case Kind::all_to_all_v:
      for (std::size_t peer = 0; peer < n; ++peer) {
        side.send_counts.push_back(call_.counts[me * n + peer]);
        side.recv_counts.push_back(call_.counts[peer * n + me]);
      }
      side.send_displs = displacements(side.send_counts, call_.gaps, call_.seed + me);
      side.recv_displs = displacements(side.recv_counts, call_.gaps, call_.seed + n + me);
      side.send_elements = extent(side.send_counts, side.send_displs);
      side.recv_elements = extent(side.recv_counts, side.recv_displs);
      break;
  }
}

// Allocates. Buffers that a rank does not use are NULL, or real memory that must stay as it is; so are those of 0 elements.
void PreparedCall::place(int rank) {
  Side& side = sides_[static_cast<std::size_t>(rank)];
  const bool shared = call_.memory == Memory::shared || (call_.memory == Memory::shared_on_odd_ranks && rank % 2 == 1);
  if (call_.in_place || call_.kind == Kind::bcast) {
    const std::size_t elements = std::max(side.send_offset + side.send_elements, side.recv_offset + side.recv_elements);
    side.first = Area(elements * size_, call_.recv_shift, shared);
    side.send = side.first.data() + side.send_offset * size_;
    side.recv = side.first.data() + side.recv_offset * size_;
    return;
  }
  const bool null_when_unused = hash(call_.seed + static_cast<std::uint64_t>(rank)) % 2 == 0;
  if (side.send_elements != 0 || !null_when_unused) {
    side.first = Area(side.send_elements * size_, call_.send_shift, shared);
    side.send = side.first.data();
  }
  if (side.recv_elements != 0 || !null_when_unused) {
    // A buffer that is not the rank's to receive into has content all the same.
    side.second =
        Area(std::max(side.recv_elements, side.recv_elements == 0 ? call_.count : 0) * size_, call_.recv_shift, shared);
    side.recv = side.second.data();
  }
}

void PreparedCall::fill(int rank) {
  Side& side = sides_[static_cast<std::size_t>(rank)];
  with_type(call_.type, [&]<class T>() {
    for (std::size_t i = 0; i < side.send_elements; ++i) {
      const std::uint64_t bits = hash(call_.seed, rank, i);
      const T value = reduces(call_.kind) ? operand<T>(call_.op, bits) : any_value<T>(bits);
      std::memcpy(side.send + i * size_, &value, size_);
    }
  });
  if (side.send_elements != 0) side.input.assign(side.send, side.send + side.send_elements * size_);
  if (side.first.exists()) side.first.expect_unchanged();
  if (side.second.exists()) side.second.expect_unchanged();
}

void PreparedCall::expect_at(int rank, std::size_t at, const std::byte* from, std::size_t elements) {
  if (elements == 0) return;
  Side& side = sides_[static_cast<std::size_t>(rank)];
  Area& area = side.second.exists() ? side.second : side.first;
  std::memcpy(area.expected() + (side.recv - area.data()) + at * size_, from, elements * size_);
}

std::vector<std::byte> PreparedCall::reduce_all() const {
  std::vector<std::byte> result(sides_[0].input.size());
  with_type(call_.type, [&]<class T>() {
    std::vector<const T*> inputs;
    for (const Side& side : sides_) inputs.push_back(reinterpret_cast<const T*>(side.input.data()));
    for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
      const T value = reduced<T>(call_.op, inputs, i);
      std::memcpy(result.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return result;
}

void PreparedCall::expect() {
  const std::size_t count = call_.count;
  const auto root = static_cast<std::size_t>(call_.root);
  const std::vector<std::byte> result = reduces(call_.kind) ? reduce_all() : std::vector<std::byte>();
  for (int rank = 0; rank < n_; ++rank) {
    const auto me = static_cast<std::size_t>(rank);
    const Side& side = sides_[me];
    const auto input = [&](std::size_t k) { return sides_[k].input.data(); };
    switch (call_.kind) {
      case Kind::all_reduce: expect_at(rank, 0, result.data(), count); break;
      case Kind::reduce:
        if (me == root) expect_at(rank, 0, result.data(), count);
        break;
      case Kind::reduce_scatter: expect_at(rank, 0, result.data() + me * count * size_, count); break;
      case Kind::reduce_scatter_v:
        expect_at(rank, 0, result.data() + side.send_displs[me] * size_, call_.counts[me]);
        break;
      case Kind::broadcast:
      case Kind::bcast: expect_at(rank, 0, input(root), count); break;
      case Kind::ring_shift:
        expect_at(rank, 0, input((me + static_cast<std::size_t>(n_) - 1) % static_cast<std::size_t>(n_)), count);
        break;
      case Kind::scatter: expect_at(rank, 0, input(root) + me * count * size_, count); break;
      case Kind::scatter_v:
        expect_at(rank, 0, input(root) + sides_[root].send_displs[me] * size_, call_.counts[me]);
        break;
      default:  // one block from every rank
        for (std::size_t k = 0; k < sides_.size(); ++k) {
          if (call_.kind == Kind::all_gather || (call_.kind == Kind::gather && me == root))
            expect_at(rank, k * count, input(k), count);
          else if (call_.kind == Kind::all_gather_v || (call_.kind == Kind::gather_v && me == root))
            expect_at(rank, side.recv_displs[k], input(k), call_.counts[k]);
          else if (call_.kind == Kind::all_to_all)
            expect_at(rank, k * count, input(k) + me * count * size_, count);
          else if (call_.kind == Kind::all_to_all_v)
            expect_at(rank, side.recv_displs[k], input(k) + sides_[k].send_displs[me] * size_, side.recv_counts[k]);
        }
    }
  }
}

hocketResult_t PreparedCall::issue(int rank, hocketComm_t comm, hocketStream_t stream) const {
  const Side& side = sides_[static_cast<std::size_t>(rank)];
  const Call& c = call_;
  const auto list = [](const std::vector<std::size_t>& v) { return v.empty() ? nullptr : v.data(); };
  switch (c.kind) {
    case Kind::all_reduce: return hocketAllReduce(side.send, side.recv, c.count, c.type, c.op, comm, stream);
    case Kind::broadcast: return hocketBroadcast(side.send, side.recv, c.count, c.type, c.root, comm, stream);
    case Kind::bcast: return hocketBcast(side.recv, c.count, c.type, c.root, comm, stream);
    case Kind::reduce: return hocketReduce(side.send, side.recv, c.count, c.type, c.op, c.root, comm, stream);
    case Kind::all_gather: return hocketAllGather(side.send, side.recv, c.count, c.type, comm, stream);
    case Kind::reduce_scatter: return hocketReduceScatter(side.send, side.recv, c.count, c.type, c.op, comm, stream);
    case Kind::all_to_all: return hocketAlltoAll(side.send, side.recv, c.count, c.type, comm, stream);
    case Kind::gather: return hocketGather(side.send, side.recv, c.count, c.type, c.root, comm, stream);
    case Kind::scatter: return hocketScatter(side.send, side.recv, c.count, c.type, c.root, comm, stream);
    case Kind::all_gather_v:
      return hocketAllGatherV(side.send, side.send_elements, side.recv, list(side.recv_counts), list(side.recv_displs),
                              c.type, comm, stream);
    case Kind::reduce_scatter_v:
      return hocketReduceScatterV(side.send, side.recv, list(side.send_counts), c.type, c.op, comm, stream);
    case Kind::all_to_all_v:
      return hocketAlltoAllV(side.send, list(side.send_counts), list(side.send_displs), side.recv,
                             list(side.recv_counts), list(side.recv_displs), c.type, comm, stream);
    case Kind::gather_v:
      return hocketGatherV(side.send, side.send_elements, side.recv, list(side.recv_counts), list(side.recv_displs),
                           c.type, c.root, comm, stream);
    case Kind::scatter_v:
      return hocketScatterV(side.send, list(side.send_counts), list(side.send_displs), side.recv, side.recv_elements,
                            c.type, c.root, comm, stream);
    case Kind::ring_shift: break;
  }
  hocketGroupStart();
  const hocketResult_t sent = hocketSend(side.send, c.count, c.type, (rank + 1) % n_, comm, stream);
  const hocketResult_t received = hocketRecv(side.recv, c.count, c.type, (rank + n_ - 1) % n_, comm, stream);
  const hocketResult_t ended = hocketGroupEnd();
  return sent != hocketSuccess ? sent : received != hocketSuccess ? received : ended;
}

std::string PreparedCall::wrong() const {
  std::string text;
  for (int rank = 0; rank < n_ && text.empty(); ++rank) text = wrong_at(rank);
  return text;
}

std::string PreparedCall::wrong_at(int rank) const {
  const Side& side = sides_[static_cast<std::size_t>(rank)];
  for (const Area* area : {&side.first, &side.second}) {
    const std::ptrdiff_t at = area->first_wrong_byte();
    if (at == Area::kRight) continue;
    const char* name = area == &side.second ? "receive buffer" : side.second.exists() ? "send buffer" : "buffer";
    return fmt::format("{} of {} ranks: rank {}'s {} is wrong from byte {} on", call_.text(), n_, rank, name, at);
  }
  return {};
}

std::size_t PreparedCall::bytes() const {
  std::size_t total = 0;
  for (const Side& side : sides_)
    total += 2 * (side.first.total_bytes() + side.second.total_bytes()) + side.input.size();
  return total;
}

// ---- Runs ----

void run_calls(const LocalRanks& ranks, const std::vector<Call>& calls) {
  constexpr std::size_t kBatchBytes = std::size_t{48} << 20;
  int shown = 0;
  for (std::size_t begin = 0; begin < calls.size();) {
    std::vector<std::unique_ptr<PreparedCall>> batch;
    for (std::size_t bytes = 0; begin < calls.size() && bytes < kBatchBytes; ++begin) {
      batch.push_back(std::make_unique<PreparedCall>(calls[begin], ranks.n()));
      bytes += batch.back()->bytes();
    }
    std::atomic<bool> refused{false};
    ranks.run([&](int rank, hocketComm_t comm) {
      for (const auto& call : batch) {
        if (const hocketResult_t result = call->issue(rank, comm); result != hocketSuccess) {
          if (!refused.exchange(true))
            ADD_FAILURE() << call->call().text() << ": rank " << rank << " of " << ranks.n() << ": "
                          << hocketGetErrorString(result) << ": " << hocketGetLastError(nullptr);
          return;
        }
      }
    });
    for (const auto& call : batch) {
      const std::string text = call->wrong();
      if (text.empty() || refused) continue;
      ADD_FAILURE() << text;
      if (++shown == 5) return;
    }
    if (refused) return;
  }
}

std::string describe(hocketComm_t comm) {
  std::size_t length = 0;
  ok(hocketCommDescribe(comm, nullptr, &length));
  std::string text(length, '\0');
  ok(hocketCommDescribe(comm, text.data(), &length));
  text.resize(std::strlen(text.c_str()));
  return text;
}

std::size_t slot_bytes(hocketComm_t comm) {
  const auto json = nlohmann::json::parse(describe(comm));
  if (!json.contains("transports")) return 1024;  // one rank has none
  return std::max(json["transports"][0]["slot_bytes"].get<std::size_t>(),
                  json["transports"][0]["multicast_slot_bytes"].get<std::size_t>());
}

std::vector<std::size_t> random_counts(Kind kind, int n_ranks, std::size_t most, int zero_percent, std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(n_ranks);
  std::vector<std::size_t> counts(kind == Kind::all_to_all_v ? n * n : n);
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::uint64_t bits = hash(seed, 0, i);
    counts[i] = static_cast<int>(bits % 100) < zero_percent || most == 0 ? 0 : (bits >> 8) % most + 1;
  }
  return counts;
}

}  // namespace hocket::test
