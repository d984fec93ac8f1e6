// SPDX-License-Identifier: Apache-2.0
// Memory from hocketMemAlloc: backed by a descriptor that peers on the host can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/unique_fd.h"

namespace hocket {

Result<void*> allocate_memory(std::size_t bytes);
Status free_memory(void* pointer);

// Where [pointer, pointer + bytes) lies, when it lies in one allocation of this process.
struct AllocationPlace {
  std::uint64_t allocation = 0;
  std::size_t offset = 0;
};
std::optional<AllocationPlace> find_allocation(const void* pointer, std::size_t bytes);

// The address of a place in a live allocation of this process; null when it is gone.
std::byte* address_in_allocation(std::uint64_t allocation, std::size_t offset);

// Number of allocations freed so far: peers forget what they mapped when it changes.
std::uint64_t freed_allocations();

// A duplicate of the allocation's descriptor, if it lives.
UniqueFd allocation_descriptor(std::uint64_t allocation);

}  // namespace hocket
