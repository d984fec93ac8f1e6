// SPDX-License-Identifier: Apache-2.0
// A member's line to the centre after init: hears what the centre says and turns it into events. Lives on the control thread
// but for the atomics.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/inquiry_desk.h"
#include "control/message_stream.h"
#include "control/service.h"
#include "control/unix_socket.h"

namespace hocket::control {

// What a rank says when it is asked about `sequence`.
Statement state(ControlEvents* events, std::uint64_t sequence);

class Line {
 public:
  using OnFetched = std::function<void(Result<UniqueFd>)>;

  Line(Service& service, int rank, std::vector<Member> members, MessageStream stream, const Credentials& centre);

  // Starts to watch, and takes in what has come already.
  void open();
  void start(ControlEvents* events);
  void report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int waited_ms);
  void report_mismatch(std::uint64_t sequence, const Error& fallback);
  void broadcast_failure(const Error& error) { send(Failure{error}); }
  void fetch(int owner, std::uint64_t allocation, std::uint32_t number, OnFetched on_fetched);
  void forget_fetch(std::uint32_t number) { fetches_.erase(number); }
  // No event is delivered afterwards.
  void leave(bool say_goodbye);

  const std::vector<Member>& members() const { return members_; }
  bool has_left(int rank) const;  // any thread

 private:
  // attached: the centre answers. detached: it left with rank 0, or is dead; this rank is on its own.
  enum class Tie { attached, detached };

  void hear();
  void handle(MessageStream::Incoming& incoming);
  void send(const Message& message, int descriptor = -1);
  void lose_centre();
  void detach();
  void fail(const Error& error);
  void serve_fetch(const Fetch& request);
  void finish_fetch(Fetched& reply, UniqueFd descriptor);
  void inquire_alone(std::uint64_t sequence, const std::vector<int>& awaited);
  void mark_left(int rank);

  Service& service_;
  const int rank_;
  const std::vector<Member> members_;
  MessageStream stream_;
  const pid_t centre_pid_;
  UniqueFd centre_process_;
  Watch stream_watch_;
  Watch process_watch_;
  Tie tie_ = Tie::attached;
  ControlEvents* events_ = nullptr;
  Clock::time_point detached_at_{};
  Timer lone_inquiry_;
  std::optional<Error> failure_;  // the first; kept for start() when it comes earlier
  RepeatLimit limit_;  // of explanations that this rank finds alone
  std::map<std::uint32_t, OnFetched> fetches_;
  // Written by the control thread, read by any. Relaxed: a flag alone, nothing is published with it.
  const std::unique_ptr<std::atomic<bool>[]> left_;
};

}  // namespace hocket::control
