// SPDX-License-Identifier: Apache-2.0
// Abstract Unix sockets: no file, no network interface, gone with their last descriptor. All are non-blocking and
// close-on-exec.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/unique_fd.h"

namespace hocket::control {

struct Credentials {
  pid_t pid = 0;  // 0: not visible from this pid namespace
  uid_t uid = 0;
};

// "unix:@name", as messages show it.
std::string address_text(std::string_view name);

// The name is taken: an error with the address and EADDRINUSE.
Result<UniqueFd> listen_at(std::string_view name);
// An error is an errno value: callers tell "nobody there" from the rest. EAGAIN: very many knock, try again.
tl::expected<UniqueFd, int> connect_to(std::string_view name);
// Nothing: no connection waits.
Result<std::optional<UniqueFd>> accept_from(int listener);
Credentials peer_of(int socket);

// A descriptor that becomes readable when the process ends. Empty where the kernel or a limit refuses.
UniqueFd watch_process(pid_t pid);

// Sends what fits without waiting, with `fd` (if >= 0) attached to the first byte. 0: nothing fits now. An error is an errno
// value: the other side is gone.
struct Transfer {
  std::size_t bytes = 0;
  int error = 0;
  bool end = false;              // receiving: the other side closed
  bool descriptor_lost = false;  // receiving: a descriptor came and this process had no room for it
};
Transfer send_some(int socket, std::span<const std::uint8_t> bytes, int fd);
// Receives at most bytes.size(), and at most one descriptor into `fd`.
enum class Accept { bytes, descriptors };
Transfer receive_some(int socket, std::span<std::uint8_t> bytes, Accept what, UniqueFd& fd);

// EMFILE and ENFILE as a sentence: what needed how many, the limit, how to raise it.
bool is_descriptor_limit(int error);
Error descriptor_limit_error(std::string_view what, int needed);

}  // namespace hocket::control
