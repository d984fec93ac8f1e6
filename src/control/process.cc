// SPDX-License-Identifier: Apache-2.0
#include "control/process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

namespace hocket::control {
namespace {

struct Stat {
  char state = 0;
  std::uint64_t start_time = 0;
};

// Of /proc/PID/stat: "pid (name) state ... ": field 3 is the state, field 22 the start time. The name may hold anything, so
// fields are counted from the last ')'.
std::optional<Stat> read_stat(pid_t pid) {
  const UniqueFd file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 1024> buffer;
  const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
  if (got <= 0) return std::nullopt;
  std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(name_end + 2);
  Stat stat;
  stat.state = text.front();
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    text.remove_prefix(space + 1);
  }
  std::from_chars(text.data(), text.data() + text.size(), stat.start_time);
  return stat;
}

std::uint64_t pid_namespace() {
  struct stat info {};
  return ::stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 0x20 && c < 0x7f) {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result;
}

Member describe_this_process(int rank) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) std::strcpy(host.data(), "unknown");
  Member member;
  member.info = {rank, ::getpid(), printable(host.data())};
  if (const auto stat = read_stat(member.info.pid)) member.start_time = stat->start_time;
  member.pid_namespace = pid_namespace();
  return member;
}

Alive is_alive(const Member& member) {
  const std::uint64_t here = pid_namespace();
  if (here == 0 || member.pid_namespace != here || member.start_time == 0) return Alive::unknown;
  const auto stat = read_stat(member.info.pid);
  if (!stat) return ::kill(member.info.pid, 0) != 0 && errno == ESRCH ? Alive::no : Alive::unknown;
  const bool ended = stat->state == 'Z' || stat->state == 'X' || stat->start_time != member.start_time;
  return ended ? Alive::no : Alive::yes;
}

}  // namespace hocket::control
