// SPDX-License-Identifier: Apache-2.0
// One call of one size, made again and again by the ranks that this thread drives: how to fill its buffers, how to make
// it, and how many elements came out wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rank.h"
#include "result.h"

namespace hocket::perf {

enum class Placement { out_of_place, in_place };

class Workload {
 public:
  // `ops` has one value per rank.
  Workload(const Case& what, const Setting& setting, Placement placement, const std::vector<Rank>& ranks,
           const std::vector<hocketRedOp_t>& ops);

  Workload(const Workload&) = delete;  // calls point into it
  Workload& operator=(const Workload&) = delete;

  // Inputs, and poison wherever nothing may be written or everything must be.
  void fill(std::uint64_t seed) const;
  // For timing: as fill(), but where results feed back into the next call they would grow without bound, so zeros.
  void fill_for_timing(std::uint64_t seed) const;

  // `times` groups of `aggregate` calls, then waits for the streams.
  void run(std::uint64_t times, int aggregate) const;

  // After fill(seed) and a call: wrong elements and damaged guard bytes of all buffers of these ranks.
  std::uint64_t count_wrong(std::uint64_t seed) const;

 private:
  // A buffer of one rank, what it holds before a call and after.
  struct Area {
    const GuardedBuffer* buffer;
    std::size_t count;
    Content before;
    Content after;
  };
  struct Place {
    const Rank* rank;
    Shape shape;
    Call call;
    std::vector<Area> areas;
  };

  void lay_out_apart(Place& place) const;
  void lay_out_in_place(Place& place) const;
  Inputs inputs(std::uint64_t seed) const;
  void check(hocketResult_t result, const Rank& rank) const;
  void run_plain(std::uint64_t times) const;
  void run_grouped(std::uint64_t times, int aggregate) const;

  Case what_;
  Setting setting_;
  Placement placement_;
  std::vector<Place> places_;
};

}  // namespace hocket::perf
