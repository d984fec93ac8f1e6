// SPDX-License-Identifier: Apache-2.0
// Messages over one connected, non-blocking stream socket. Keeps what could not be sent yet and what has arrived in part.
// Until trust() it takes only short messages and no descriptors.
#pragma once

#include <deque>
#include <optional>

#include "base/unique_fd.h"
#include "control/message.h"

namespace hocket::control {

class MessageStream {
 public:
  // open: more may come. ended: the other side closed or broke. malformed: it sent what is no message.
  enum class State { open, ended, malformed };

  struct Incoming {
    Message message;
    UniqueFd descriptor;  // empty although Fetched or Welcome promised one: this process had no room for it
  };

  explicit MessageStream(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  void trust() { trusted_ = true; }

  // Takes in what has arrived; then next() until it gives nothing; then look at state().
  void receive();
  std::optional<Incoming> next();
  State state() const { return state_; }
  std::size_t received_bytes() const { return received_bytes_; }

  // `descriptor` (if >= 0) stays the caller's; a message that has to wait keeps a duplicate.
  void send(const Message& message, int descriptor = -1);
  void flush();
  bool has_unsent() const { return !outbox_.empty(); }

 private:
  struct Outgoing {
    Bytes bytes;
    std::size_t sent = 0;
    UniqueFd descriptor;
  };
  std::size_t send_now(Outgoing& outgoing, int descriptor);

  UniqueFd socket_;
  State state_ = State::open;
  bool trusted_ = false;
  std::size_t received_bytes_ = 0;
  Bytes inbox_;
  std::size_t parsed_ = 0;                // bytes of inbox_ that next() has given out
  std::deque<UniqueFd> descriptors_;      // arrived, in the order of the messages that they belong to
  std::deque<Outgoing> outbox_;
};

}  // namespace hocket::control
