// SPDX-License-Identifier: Apache-2.0
// Programs that are ready to run, by what the planner looked at. Counts enter as size classes, so that a plan serves many
// counts and every rank picks the same one.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "exec/program.h"
#include "plan/plan_request.h"

namespace hocket {

// Four classes per power of two.
constexpr std::uint32_t size_class(std::size_t bytes) {
  if (bytes < 4) return static_cast<std::uint32_t>(bytes);
  const int top = std::bit_width(bytes) - 1;
  return static_cast<std::uint32_t>(top * 4 + static_cast<int>((bytes >> (top - 2)) & 3));
}
// The largest size of a class: what plans of the class are made for.
constexpr std::size_t largest_of_class(std::uint32_t value) {
  if (value < 4) return value;
  const std::uint32_t top = value / 4;
  const std::size_t unit = std::size_t{1} << (top - 2);
  return (std::size_t{1} << top) + unit * (value % 4 + 1) - 1;
}

struct PlanKey {
  Collective collective = Collective::barrier;
  std::uint8_t element_bytes = 1;
  std::uint8_t partial_bytes = 1;
  bool commutative = true;
  bool premultiplied = false;
  bool mapped = false;
  bool size_known = true;
  bool uneven = false;  // blocks of any size
  std::uint32_t size_class = 0;
  int root = 0;

  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(element_bytes) << 4 |
           static_cast<std::uint64_t>(partial_bytes) << 8 | static_cast<std::uint64_t>(commutative) << 12 |
           static_cast<std::uint64_t>(premultiplied) << 13 | static_cast<std::uint64_t>(mapped) << 14 |
           static_cast<std::uint64_t>(size_known) << 15 | static_cast<std::uint64_t>(size_class) << 16 |
           static_cast<std::uint64_t>(uneven) << 28 |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32;
  }
};

class PlanCache {
 public:
  // `common`: what is the same for every request of the communicator.
  PlanCache(const PlanRequest& common, int rank, Transport* transport)
      : common_(common), rank_(rank), transport_(transport) {}

  Result<const Program*> find(const PlanKey& key) {
    const std::uint64_t packed = key.packed();
    Recent& recent = recent_[(packed ^ packed >> 16 ^ packed >> 32) % kRecent];
    if (recent.program != nullptr && recent.key == packed) [[likely]]
      return recent.program;
    const auto found = find_slowly(key);
    if (found) recent = {packed, *found};
    return found;
  }

  std::vector<const Program*> all() const;

 private:
  Result<const Program*> find_slowly(const PlanKey& key);

  struct Recent {
    std::uint64_t key = 0;
    const Program* program = nullptr;
  };
  static constexpr std::size_t kRecent = 64;

  PlanRequest common_;
  int rank_;
  Transport* transport_;  // null for a communicator of one rank
  std::array<Recent, kRecent> recent_{};
  std::unordered_map<std::uint64_t, std::unique_ptr<Program>> programs_;
};

}  // namespace hocket
