// SPDX-License-Identifier: Apache-2.0
#include "control/allocations.h"

#include <atomic>

#include "control/control.h"

namespace hocket {
namespace {

std::atomic<AllocationLookup> allocation_lookup{nullptr};

}  // namespace

void set_allocation_lookup(AllocationLookup lookup) {
  // Publishes what the owner set up before. Pairs with: the acquire in look_up_allocation().
  allocation_lookup.store(lookup, std::memory_order_release);
}

namespace control {

UniqueFd look_up_allocation(std::uint64_t allocation) {
  // Pairs with: the release in set_allocation_lookup().
  const AllocationLookup lookup = allocation_lookup.load(std::memory_order_acquire);
  return lookup == nullptr ? UniqueFd() : lookup(allocation);
}

}  // namespace control
}  // namespace hocket
