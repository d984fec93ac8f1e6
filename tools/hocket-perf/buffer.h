// SPDX-License-Identifier: Apache-2.0
// A page-aligned buffer between two guards that nobody may write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "options.h"

namespace hocket::perf {

class GuardedBuffer {
 public:
  // `bytes` usable bytes, already touched by the calling thread.
  GuardedBuffer(std::size_t bytes, Memory memory, int rank);

  char* data() const { return base_.get() + kGuardBytes; }

  // Guards end at data() and begin at data() + used_bytes.
  void set_guards(std::size_t used_bytes) const;
  // Bytes of the guards that were overwritten.
  std::uint64_t damaged_guard_bytes(std::size_t used_bytes) const;

 private:
  static constexpr std::size_t kGuardBytes = 4096;  // a page: data() stays page-aligned

  struct Free {
    Memory memory;
    void operator()(char* base) const;
  };
  std::unique_ptr<char, Free> base_;
};

}  // namespace hocket::perf
