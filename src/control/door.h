// SPDX-License-Identifier: Apache-2.0
// A listening socket and those who have connected to it but are not yet known. Who proves the secret of a meeting of this
// process and says Hello is handed to that meeting; all others are dropped with one log line: after five seconds, at the
// first wrong byte, or, when very many knock, the longest waiting first. Nobody waits for anybody else here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "control/message_stream.h"
#include "control/service.h"
#include "control/unix_socket.h"

namespace hocket::control {

class Door {
 public:
  static Result<std::shared_ptr<Door>> open(Service& service, std::string name);

  const std::string& name() const { return name_; }

 private:
  enum class Stage { greeting, proof, hello };

  struct Newcomer {
    explicit Newcomer(UniqueFd socket) : stream(std::move(socket)), peer(peer_of(stream.fd())) {}
    MessageStream stream;
    Credentials peer;
    const Clock::time_point since = Clock::now();
    Stage stage = Stage::greeting;
    Greeting greeting;
    Nonce nonce{};
    Watch watch;
    Timer deadline;
  };

  Door(Service& service, std::string name, UniqueFd listener)
      : service_(service), name_(std::move(name)), listener_(std::move(listener)) {}
  void knock();
  void add(UniqueFd socket);
  enum class Room { urgent, if_stale };
  bool make_room(Room how);
  void run_out_of_descriptors(const Error& error);
  void pause(std::chrono::milliseconds length);
  void hear(std::uint64_t number);
  bool step(Newcomer& newcomer, const Message& message, std::uint64_t number);
  void drop(std::uint64_t number, const std::string& reason);

  Service& service_;
  const std::string name_;
  UniqueFd listener_;
  Watch watch_;
  Timer pause_;
  bool has_complained_ = false;
  std::map<std::uint64_t, std::unique_ptr<Newcomer>> newcomers_;  // by order of arrival
  std::uint64_t next_number_ = 0;
};

}  // namespace hocket::control
