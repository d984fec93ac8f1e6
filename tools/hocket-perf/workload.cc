// SPDX-License-Identifier: Apache-2.0
#include "workload.h"

#include <algorithm>
#include <cstring>

#include "errors.h"

namespace hocket::perf {

Workload::Workload(const Case& what, const Setting& setting, Placement placement, const std::vector<Rank>& ranks,
                   const std::vector<hocketRedOp_t>& ops)
    : what_(what), setting_(setting), placement_(placement) {
  places_.reserve(ranks.size());  // calls point at the settings and shapes: places do not move
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const Rank& rank = ranks[i];
    Place& place = places_.emplace_back(Place{&rank, what.collective->shape(setting_, rank.rank()), {}, {}});
    place.call = {nullptr, nullptr,     &setting_,   &place.shape, what.type->type,
                  ops[i],  rank.rank(), rank.comm(), rank.stream()};
    if (placement == Placement::in_place) {
      lay_out_in_place(place);
    } else {
      lay_out_apart(place);
    }
  }
}

void Workload::lay_out_apart(Place& place) const {
  const Shape& shape = place.shape;
  const Rank& rank = *place.rank;
  const Content sent = overlay(shape.send_count, {{0, shape.send_count, Origin::input, rank.rank(), 0}}, {});
  place.areas.push_back({&rank.send(), shape.send_count, sent, sent});
  place.areas.push_back({&rank.recv(), shape.recv_count, overlay(shape.recv_count, {}, {}),
                         overlay(shape.recv_count, {}, shape.results)});
  // A rank that has no such buffer passes one all the same: its guards show whether it is left alone.
  place.call.send = rank.send().data();
  place.call.recv = rank.recv().data();
}

void Workload::lay_out_in_place(Place& place) const {
  const Shape& shape = place.shape;
  const Rank& rank = *place.rank;
  const std::size_t count = std::max(shape.send_at + shape.send_count, shape.recv_at + shape.recv_count);
  const std::vector<Part> sent = {{shape.send_at, shape.send_count, Origin::input, rank.rank(), 0}};
  std::vector<Part> results = shape.results;
  for (Part& part : results) part.at += shape.recv_at;
  place.areas.push_back({&rank.recv(), count, overlay(count, sent, {}), overlay(count, sent, results)});
  // A rank that has no such buffer passes NULL, which out of place it does not.
  char* data = rank.recv().data();
  const std::size_t bytes = what_.type->bytes;
  const bool uneven = what_.collective->rooted && rank.rank() != setting_.root;
  place.call.send = uneven && shape.send_count == 0 ? nullptr : data + shape.send_at * bytes;
  place.call.recv = uneven && shape.recv_count == 0 ? nullptr : data + shape.recv_at * bytes;
}

Inputs Workload::inputs(std::uint64_t seed) const {
  return {what_.type->type, what_.collective->reduces ? what_.op : Op::none, setting_.n_ranks, seed};
}

void Workload::fill(std::uint64_t seed) const {
  for (const Place& place : places_) {
    for (const Area& area : place.areas) {
      perf::fill(area.before, inputs(seed), what_.type->bytes, area.buffer->data());
      area.buffer->set_guards(area.count * what_.type->bytes);
    }
  }
}

void Workload::fill_for_timing(std::uint64_t seed) const {
  fill(seed);
  if (placement_ == Placement::out_of_place || !what_.collective->reduces) return;
  for (const Place& place : places_) {
    for (const Area& area : place.areas) std::memset(area.buffer->data(), 0, area.count * what_.type->bytes);
  }
}

void Workload::check(hocketResult_t result, const Rank& rank) const {
  if (result != hocketSuccess) must(result, what_.collective->function, rank.rank(), rank.comm());
}

void Workload::run_plain(std::uint64_t times) const {
  const Place& place = places_.front();
  const auto call = what_.collective->call;
  for (std::uint64_t i = 0; i < times; ++i) check(call(place.call), *place.rank);
}

void Workload::run_grouped(std::uint64_t times, int aggregate) const {
  const Rank& first = *places_.front().rank;
  for (std::uint64_t i = 0; i < times; ++i) {
    must(hocketGroupStart(), "hocketGroupStart", first.rank());
    for (int k = 0; k < aggregate; ++k) {
      for (const Place& place : places_) check(what_.collective->call(place.call), *place.rank);
    }
    must(hocketGroupEnd(), "hocketGroupEnd", first.rank());
  }
}

void Workload::run(std::uint64_t times, int aggregate) const {
  if (places_.size() == 1 && aggregate == 1 && !what_.collective->grouped) {
    run_plain(times);
  } else {
    run_grouped(times, aggregate);
  }
  for (const Place& place : places_) {
    if (place.rank->stream() == nullptr) continue;
    must(hocketStreamSynchronize(place.rank->stream()), "hocketStreamSynchronize", place.rank->rank(),
         place.rank->comm());
  }
}

std::uint64_t Workload::count_wrong(std::uint64_t seed) const {
  std::uint64_t wrong = 0;
  for (const Place& place : places_) {
    for (const Area& area : place.areas) {
      wrong += perf::count_wrong(area.after, inputs(seed), what_.type->bytes, area.buffer->data());
      wrong += area.buffer->damaged_guard_bytes(area.count * what_.type->bytes);
    }
  }
  return wrong;
}

}  // namespace hocket::perf
