// SPDX-License-Identifier: Apache-2.0
#include "control/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/log.h"
#include "control/unix_socket.h"

namespace hocket::control {

namespace {

// The number at the start of a file's first line, or after `key` at the start of a line; nothing when it is not there.
std::optional<std::size_t> read_number(const std::string& path, std::string_view key = {}) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    std::size_t number = 0;
    if (rest >> number) return number;
    return std::nullopt;
  }
  return std::nullopt;
}

// Limits of this process's memory cgroup, in version 2 and version 1; "max" is no number.
std::optional<std::size_t> cgroup_limit() {
  std::optional<std::size_t> lowest = read_number("/sys/fs/cgroup/memory.max");
  const auto consider = [&](const std::string& path) {
    if (const auto limit = read_number(path); limit && (!lowest || *limit < *lowest)) lowest = limit;
  };
  consider("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path" or "4:memory:/path"
    const std::size_t path = line.find(":/");
    if (path == std::string::npos) continue;
    if (line.starts_with("0::")) consider("/sys/fs/cgroup" + line.substr(path + 1) + "/memory.max");
    if (line.find(":memory:") != std::string::npos) {
      consider("/sys/fs/cgroup/memory" + line.substr(path + 1) + "/memory.limit_in_bytes");
    }
  }
  return lowest;
}

constexpr std::string_view kAdvice =
    "free memory, raise the memory limit of the container or cgroup, or use fewer channels or smaller slots";

}  // namespace

Status check_memory_is_there(std::size_t bytes) {
  if (const auto limit = cgroup_limit(); limit && bytes > *limit) {
    return fail(hocketSystemError, "cannot reserve {} bytes of shared memory: the memory cgroup of this process allows {}; {}", bytes,
                *limit, kAdvice);
  }
  const auto available_kib = read_number("/proc/meminfo", "MemAvailable:");
  const auto swap_kib = read_number("/proc/meminfo", "SwapFree:");
  if (available_kib && bytes / 1024 > *available_kib + swap_kib.value_or(0)) {
    return fail(hocketSystemError, "cannot reserve {} bytes of shared memory: this machine has {} left; {}", bytes,
                (*available_kib + swap_kib.value_or(0)) * 1024, kAdvice);
  }
  return {};
}

Result<UniqueFd> reserve_shared_memory(std::size_t bytes, const std::atomic<bool>* cancel) {
  constexpr std::size_t kStep = 8u << 20;  // about 25 ms
  HOCKET_TRY(check_memory_is_there(bytes));
  UniqueFd memory(::memfd_create("hocket", MFD_CLOEXEC));
  if (!memory && is_descriptor_limit(errno)) return tl::make_unexpected(descriptor_limit_error("shared memory", 1));
  if (!memory) return fail_errno(errno, "cannot make shared memory");
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    return fail_errno(errno, "cannot make shared memory of {} bytes", bytes);
  }
  for (std::size_t done = 0; done < bytes;) {
    // Relaxed: a flag alone, nothing is published with it.
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return fail(hocketInvalidUsage, "init was aborted");
    const std::size_t step = std::min(kStep, bytes - done);
    if (::fallocate(memory.get(), 0, static_cast<off_t>(done), static_cast<off_t>(step)) == 0) {
      done += step;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
      log_warn("control: this system cannot reserve memory; {} bytes of shared memory are used unreserved", bytes);
      break;
    }
    return fail_errno(errno,
                      "cannot reserve {} bytes of shared memory; {}", bytes, kAdvice);
  }
  return memory;
}

}  // namespace hocket::control
