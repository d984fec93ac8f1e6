// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "errors.h"

namespace hocket::perf {

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    end_with_error(fmt::format("cannot map {} bytes of shared memory: {} ({})", bytes, std::strerror(errno), errno));
  }
  data_ = static_cast<char*>(data);
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

}  // namespace hocket::perf
