// SPDX-License-Identifier: Apache-2.0
#include "buffer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "errors.h"
#include "oracle.h"

namespace hocket::perf {
namespace {

constexpr std::size_t kPage = 4096;

char* allocate(std::size_t bytes, Memory memory, int rank) {
  void* base = nullptr;
  if (memory == Memory::hocket) {
    must(hocketMemAlloc(&base, bytes), "hocketMemAlloc", rank);
  } else {
    base = std::aligned_alloc(kPage, bytes);
  }
  if (base == nullptr) end_with_error(fmt::format("rank {}: cannot allocate {} bytes", rank, bytes));
  return static_cast<char*>(base);
}

}  // namespace

void GuardedBuffer::Free::operator()(char* base) const {
  if (memory == Memory::hocket) {
    hocketMemFree(base);
  } else {
    std::free(base);
  }
}

GuardedBuffer::GuardedBuffer(std::size_t bytes, Memory memory, int rank) {
  const std::size_t all = (kGuardBytes + bytes + kGuardBytes + kPage - 1) / kPage * kPage;
  base_ = std::unique_ptr<char, Free>(allocate(all, memory, rank), Free{memory});
  std::memset(base_.get(), 0, all);
}

void GuardedBuffer::set_guards(std::size_t used_bytes) const {
  make_poison(-static_cast<std::int64_t>(kGuardBytes), kGuardBytes, data() - kGuardBytes);
  make_poison(static_cast<std::int64_t>(used_bytes), kGuardBytes, data() + used_bytes);
}

std::uint64_t GuardedBuffer::damaged_guard_bytes(std::size_t used_bytes) const {
  return wrong_poison(-static_cast<std::int64_t>(kGuardBytes), kGuardBytes, 1, data() - kGuardBytes) +
         wrong_poison(static_cast<std::int64_t>(used_bytes), kGuardBytes, 1, data() + used_bytes);
}

}  // namespace hocket::perf
