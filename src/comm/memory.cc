// SPDX-License-Identifier: Apache-2.0
#include "comm/memory.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <mutex>

#include "base/mapping.h"
#include "control/control.h"
#include "control/shared_memory.h"
#include "control/shared_memory.h"

namespace hocket {
namespace {

struct Allocation {
  std::uint64_t number = 0;
  UniqueFd fd;
  Mapping mapping;
};

class Registry {
 public:
  Registry() { set_allocation_lookup(&allocation_descriptor); }

  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> by_address;
  std::uint64_t next_number = 1;
  std::uint64_t freed = 0;
};

Registry& registry() {
  static Registry* const instance = new Registry;  // never destroyed: the control thread may still ask
  return *instance;
}

}  // namespace

Result<void*> allocate_memory(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  if (bytes == 0 || bytes > PTRDIFF_MAX - kPage)
    return fail(hocketInvalidArgument, "hocketMemAlloc: size {} is not a size that can be allocated", bytes);
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
  // Reserved at once, and refused beforehand when it is more than there is: running out later would be a signal, not an error.
  auto fd = control::reserve_shared_memory(size, nullptr);
  if (!fd) return tl::make_unexpected(std::move(fd).error().with_context("hocketMemAlloc"));
  auto mapping = Mapping::shared(fd->get(), size);
  if (!mapping) return tl::make_unexpected(std::move(mapping).error().with_context("hocketMemAlloc"));
  void* const data = mapping->data();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.by_address.emplace(reinterpret_cast<std::uintptr_t>(data), Allocation{all.next_number++, std::move(*fd), std::move(*mapping)});
  return data;
}

Status free_memory(void* pointer) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_address.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == all.by_address.end())
    return fail(hocketInvalidArgument, "hocketMemFree: {} is not the start of a live allocation of hocketMemAlloc",
                fmt::ptr(pointer));
  // Gives the pages back now, although a peer may keep its mapping until it next looks.
  ::fallocate(found->second.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>(found->second.mapping.bytes()));
  all.by_address.erase(found);
  ++all.freed;
  return {};
}

std::optional<AllocationPlace> find_allocation(const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  auto after = all.by_address.upper_bound(address);
  if (after == all.by_address.begin()) return std::nullopt;
  const auto& [begin, allocation] = *--after;
  const std::size_t offset = address - begin;
  if (offset > allocation.mapping.bytes() || bytes > allocation.mapping.bytes() - offset) return std::nullopt;
  return AllocationPlace{allocation.number, offset};
}

std::byte* address_in_allocation(std::uint64_t allocation, std::size_t offset) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [address, entry] : all.by_address)
    if (entry.number == allocation) return entry.mapping.data() + offset;
  return nullptr;
}

std::uint64_t freed_allocations() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.freed;
}

UniqueFd allocation_descriptor(std::uint64_t allocation) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [address, entry] : all.by_address)
    if (entry.number == allocation) return UniqueFd(::fcntl(entry.fd.get(), F_DUPFD_CLOEXEC, 0));
  return {};
}

}  // namespace hocket
