// SPDX-License-Identifier: Apache-2.0
// Ranks inside namespaces: a process that is confined first and then starts them. Where the machine refuses namespaces the
// test is skipped and says why.
#pragma once

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cerrno>

#include "failure/process_ranks.h"

namespace hocket::test {

// Empty, or why it failed.
using Refusal = std::string;

inline Refusal refusal(const std::string& what) { return what + ": " + std::strerror(errno); }

inline bool write_file(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t written = ::write(file, text.data(), text.size());
  ::close(file);
  return written == static_cast<ssize_t>(text.size());
}

// Puts this process, which has one thread, into new namespaces; with a user namespace where it may not otherwise.
inline Refusal enter_namespaces(int kinds) {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(kinds) != 0) {
    if (::unshare(CLONE_NEWUSER | kinds) != 0) return refusal("unshare");
    write_file("/proc/self/setgroups", "deny");
    if (!write_file("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") ||
        !write_file("/proc/self/gid_map", "0 " + std::to_string(group) + " 1"))
      return refusal("uid_map");
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of credentials has cleared it
  if ((kinds & CLONE_NEWNS) != 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return refusal("mount /");
  return {};
}

// `confine` and then `body` in a process of its own.
inline void confined(const std::function<Refusal()>& confine, const std::function<void()>& body,
                     std::chrono::milliseconds limit = 60s) {
  Ranks host(1);
  host.start(0, [&](Rank& me) {
    const Refusal why = confine();
    if (why.empty()) return body();
    std::snprintf(me.board.outcome[0].text, sizeof me.board.outcome[0].text, "%s", why.c_str());
    me.board.flag[0] = 1;
  });
  host.expect_all_well(limit);
  if (host.board().flag[0] != 0) GTEST_SKIP() << "this machine does not allow it: " << host.outcome(0).text;
}

inline Refusal raise_loopback() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const int result = ::ioctl(socket, SIOCSIFFLAGS, &request);
  ::close(socket);
  return result == 0 ? Refusal() : refusal("lo");
}

}  // namespace hocket::test
