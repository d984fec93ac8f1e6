// SPDX-License-Identifier: Apache-2.0
// Zeroed memory that this process shares with the processes it forks.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket::perf {

// Owner of the mapping in this process. Ends the program where there is no memory.
class SharedMemory {
 public:
  SharedMemory() = default;
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  char* data() const { return data_; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hocket::perf
