// SPDX-License-Identifier: Apache-2.0
#include "control/unix_socket.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace hocket::control {
namespace {

struct Address {
  sockaddr_un raw{};
  socklen_t bytes = 0;

  explicit Address(std::string_view name) {
    raw.sun_family = AF_UNIX;
    const std::size_t count = std::min(name.size(), sizeof(raw.sun_path) - 1);
    std::memcpy(raw.sun_path + 1, name.data(), count);  // the leading zero byte makes the name abstract
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&raw); }
};

UniqueFd make_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)); }

}  // namespace

std::string address_text(std::string_view name) { return fmt::format("unix:@{}", name); }

Result<UniqueFd> listen_at(std::string_view name) {
  UniqueFd socket = make_socket();
  if (!socket && is_descriptor_limit(errno)) return tl::make_unexpected(descriptor_limit_error("a meeting place", 1));
  if (!socket) return fail_errno(errno, "cannot make a socket for {}", address_text(name));
  const Address address(name);
  if (::bind(socket.get(), address.get(), address.bytes) != 0) {
    if (errno == EADDRINUSE) {
      return fail_errno(errno,
                        "cannot listen at {}, another process does; end that job, or give this one a name of its own "
                        "(HOCKET_ROOT or HOCKET_JOB)",
                        address_text(name));
    }
    return fail_errno(errno, "cannot listen at {}", address_text(name));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) return fail_errno(errno, "cannot listen at {}", address_text(name));
  return socket;
}

tl::expected<UniqueFd, int> connect_to(std::string_view name) {
  UniqueFd socket = make_socket();
  if (!socket) return tl::make_unexpected(errno);
  const Address address(name);
  int result = 0;
  do {
    result = ::connect(socket.get(), address.get(), address.bytes);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return tl::make_unexpected(errno);
  return socket;
}

Result<std::optional<UniqueFd>> accept_from(int listener) {
  for (;;) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket) return std::optional<UniqueFd>(std::move(socket));
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::optional<UniqueFd>();
    if (is_descriptor_limit(errno)) return tl::make_unexpected(descriptor_limit_error("accepting a control connection", 1));
    return fail_errno(errno, "cannot accept a control connection");
  }
}

Credentials peer_of(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0) return {0, static_cast<uid_t>(-1)};
  return {credentials.pid, credentials.uid};
}

UniqueFd watch_process(pid_t pid) {
  if (pid <= 0) return UniqueFd();
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by itself
}

Transfer send_some(int socket, std::span<const std::uint8_t> bytes, int fd) {
  iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  for (;;) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return {.bytes = static_cast<std::size_t>(sent)};
    if (errno == EINTR) continue;
    // ETOOMANYREFS: this user has as many descriptors in flight as it may have open; receivers will take them out.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS) return {};
    return {.error = errno};
  }
}

Transfer receive_some(int socket, std::span<std::uint8_t> bytes, Accept what, UniqueFd& fd) {
  iovec part{bytes.data(), bytes.size()};
  // Room for one: the kernel never merges the bytes of two messages that both carry descriptors.
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (what == Accept::descriptors) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
  // A peer that closed with unread data of ours in its queue shows as a reset.
  if (got < 0 && errno == ECONNRESET) return {.end = true};
  if (got < 0) return {.error = errno};
  if (got == 0) return {.end = true};
  Transfer transfer{.bytes = static_cast<std::size_t>(got)};
  if (what == Accept::descriptors) {
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header), sizeof(int));
      fd = UniqueFd(received);
    }
    transfer.descriptor_lost = (message.msg_flags & MSG_CTRUNC) != 0 && !fd;
  }
  return transfer;
}

bool is_descriptor_limit(int error) { return error == EMFILE || error == ENFILE; }

Error descriptor_limit_error(std::string_view what, int needed) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return {hocketSystemError,
          fmt::format("{} needs {} descriptor{}, limit {} for all of this process; raise it (ulimit -n)", what, needed,
                      needed == 1 ? "" : "s", limit.rlim_cur)};
}

}  // namespace hocket::control
