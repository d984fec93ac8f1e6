// SPDX-License-Identifier: Apache-2.0
// The centre of the star: every rank of a communicator has one connection to it. Lives on the control thread of one process.
//
//   gathering ──▶ preparing ──▶ readying ──▶ running ──▶ ended
//       │         (rank 0's      (Welcome is   (Go is
//       │          thread makes   out, Ready    out)
//       │          the memory)    comes in)
//       └──▶ redirecting ──▶ ended       rank 0 is in another process: everyone is sent there
//
// Until Go is out, whatever goes wrong for one rank fails the init of all (fail_init). Afterwards a rank that dies fails the
// communicator, and one that says good-bye does not.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/inquiry_desk.h"
#include "control/meeting_place.h"
#include "control/message_stream.h"
#include "control/service.h"
#include "control/unix_socket.h"

namespace hocket::control {

class Door;

class Centre final : private InquiryDesk::Floor {
 public:
  Centre(ServiceUse use, MeetingPlace place, std::shared_ptr<Door> door);
  ~Centre() override;

  const MeetingPlace& place() const { return place_; }
  bool gathers_at(const Door& door) const { return door_.get() == &door; }

  bool is_here(int rank) const { return seat_of(rank) != nullptr; }
  bool is_empty() const { return lowest_rank_here() < 0 && !is_hosted(); }

  // Rank 0 joins in this process. `make_memory` is called when everyone is here and memory is wanted; memory_made()
  // answers it later, because reserving it takes too long for this thread. `failed` is called when init fails: rank 0
  // may not have got in yet.
  bool is_hosted() const { return make_memory_ != nullptr; }
  void host(std::function<void()> make_memory, std::function<void(const Error&)> failed) {
    make_memory_ = std::move(make_memory);
    host_failed_ = std::move(failed);
  }
  void memory_made(const Result<UniqueFd>& memory);

  void admit(MessageStream stream, const Hello& hello, const Credentials& peer);
  void fail_init(const Error& error);
  // Rank 0 destroyed its communicator, or its init failed.
  void host_leaves();

 private:
  enum class Stage { gathering, redirecting, preparing, readying, running, ended };

  struct Seat {
    Seat(MessageStream s, Hello h) : stream(std::move(s)), hello(std::move(h)) {}
    MessageStream stream;
    Hello hello;
    UniqueFd process;  // pidfd
    bool ready = false;
    Watch stream_watch;
    Watch process_watch;
    Timer deadline;
  };
  struct PendingFetch {
    int requester = 0;
    std::uint32_t number = 0;
    int owner = 0;
  };

  // Gathering.
  std::optional<Error> objection(const Hello& hello) const;
  Status seat(MessageStream stream, const Hello& hello, const Credentials& peer);
  void redirect(MessageStream stream, const Hello& hello);
  void redirect_everyone(const Hello& rank_0);
  void time_out(int rank);
  void everyone_is_here();
  void welcome(int memory);
  void go();

  // Running.
  void hear(int rank);
  void handle(int rank, MessageStream::Incoming& incoming);
  void handle_joining(int rank, const Message& message);
  void fetch(int rank, const Fetch& request);
  void fetched(int rank, const Fetched& reply, const UniqueFd& descriptor);
  void lose(int rank);
  void depart(int rank, Presence how);
  void fail_others(int rank, const Error& error);

  // InquiryDesk::Floor
  void ask(int rank, const Query& query) override { send(rank, query); }
  void fail_everyone(const Error& error) override { fail_others(-1, error); }
  void explain(int rank, const Explained& explained) override { send(rank, explained); }

  Seat* seat_of(int rank) const;
  int lowest_rank_here() const;
  std::string rank_text(int rank) const;
  void send(int rank, const Message& message, int descriptor = -1);
  void send_everyone(const Message& message, int descriptor = -1);
  void close_seat(int rank);
  void end();

  ServiceUse use_;
  const MeetingPlace place_;
  std::shared_ptr<Door> door_;  // while newcomers are expected; Meetings and other meetings share it
  Stage stage_ = Stage::gathering;
  std::function<void()> make_memory_;
  std::function<void(const Error&)> host_failed_;
  std::vector<std::unique_ptr<Seat>> seats_;  // by rank; sized by the first Hello
  std::vector<Member> members_;               // by rank, from Welcome on
  std::string rank_0_address_;                // redirecting
  std::vector<bool> redirected_;
  Timer redirect_deadline_;
  std::optional<InquiryDesk> desk_;  // running
  std::optional<Error> failure_;     // the first of the communicator
  std::map<std::uint32_t, PendingFetch> fetches_;
  std::uint32_t next_fetch_ = 1;
};

}  // namespace hocket::control
