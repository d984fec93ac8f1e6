// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/unique_fd.h"

namespace hocket {

// Owns a memory mapping.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    if (this != &other) {
      reset();
      data_ = std::exchange(other.data_, nullptr);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }
  ~Mapping() { reset(); }

  // Maps `bytes` of `fd` shared, readable and writable.
  static Result<Mapping> shared(int fd, std::size_t bytes) { return map(fd, bytes, MAP_SHARED); }
  // Maps zeroed memory of this process; pages take memory when they are first touched.
  static Result<Mapping> anonymous(std::size_t bytes) { return map(-1, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t bytes() const { return bytes_; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  static Result<Mapping> map(int fd, std::size_t bytes, int flags) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (data == MAP_FAILED) return fail_errno(errno, "cannot map {} bytes of memory", bytes);
    Mapping mapping;
    mapping.data_ = data;
    mapping.bytes_ = bytes;
    return mapping;
  }
  void reset() {
    if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), std::exchange(bytes_, 0));
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hocket
