// SPDX-License-Identifier: Apache-2.0
// A rank's way into a communicator: connect, prove, say hello, follow a redirect, get the welcome, be ready, go. Lives on the
// control thread; the thread that called join() waits on JoinProgress.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/line.h"
#include "control/meeting_place.h"
#include "control/message_stream.h"
#include "control/service.h"

namespace hocket::control {

class Centre;

struct Admission {
  std::unique_ptr<Line> line;
  UniqueFd memory;
};

// Between the control thread and the one that waits.
struct JoinProgress {
  std::mutex mutex;
  std::condition_variable changed;
  bool memory_wanted = false;
  std::optional<Result<Admission>> result;
};

class Joiner {
 public:
  Joiner(ServiceUse use, const JoinOptions& options, MeetingPlace place, std::uint32_t version, JoinProgress& progress);

  void begin();
  void memory_made(const Result<UniqueFd>& memory);
  void cancel();

 private:
  enum class Stage { connecting, proving, waiting, readying, done };

  Status host();
  void connect();
  void connect_later(std::chrono::milliseconds delay);
  void hear();
  void handle(MessageStream::Incoming& incoming);
  void prove_to_door(const DoorProof& proof);
  void follow(const Redirect& redirect);
  void get_ready(Welcome& welcome, UniqueFd memory);
  void go();
  void door_closed();
  void connection_ended();
  void time_out();
  void fail(Error error);
  void finish(Result<Admission> result);
  Centre* hosted_centre();
  int remaining_ms() const;
  std::string who() const;

  ServiceUse use_;
  const JoinOptions options_;
  const MeetingPlace place_;
  const std::uint32_t version_;
  JoinProgress& progress_;
  const Clock::time_point deadline_;

  Stage stage_ = Stage::connecting;
  std::string address_;         // where to connect to
  std::string own_address_;     // of rank 0: its centre's
  bool redirected_ = false;
  Greeting greeting_;
  std::optional<MessageStream> stream_;
  std::vector<Member> members_;
  UniqueFd memory_;
  Watch watch_;
  Timer retry_;
  Timer time_limit_;
};

}  // namespace hocket::control
