// SPDX-License-Identifier: Apache-2.0
// What control threads say to each other, as values, and their bytes on the wire. Whatever arrives from a socket passes
// parse(): it never reads past its input, never allocates more than its input justifies and refuses trailing bytes.
//
//   frame:  u32 body bytes | u8 kind | u8 carries a descriptor | u16 zero | body      (little-endian)
//
// A message lists its fields once, in fields(); the same list writes and reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/control.h"

namespace hocket::control {

using Bytes = std::vector<std::uint8_t>;
using MeetingId = std::array<std::uint8_t, 16>;
using Secret = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;
using Proof = std::array<std::uint8_t, 32>;

inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kMaxStrangerBytes = 256;      // body of a message before both sides are authenticated
inline constexpr std::size_t kMaxBodyBytes = 4u << 20;
inline constexpr std::size_t kMaxTextBytes = 16u << 10;
inline constexpr std::size_t kMaxSettingsBytes = 64u << 10;
inline constexpr int kMaxRanks = 1 << 16;

// A member as everyone knows it: what messages show, and what tells its process from a later one with the same pid.
struct Member {
  RankInfo info;
  std::uint64_t start_time = 0;     // of its process, in clock ticks since boot; 0: unknown
  std::uint64_t pid_namespace = 0;  // pids compare only within one; 0: unknown

  template <class Io>
  void fields(Io& io) {
    io(info.rank), io(info.pid), io(info.host), io(start_time), io(pid_namespace);
  }
};

// ---- Getting in. These, Hello's first two fields and Refused keep their form in every version, so that ranks of two
// versions can say so to each other. ----

struct Greeting {  // newcomer to door
  static constexpr std::uint32_t kMagic = 0x316b6f68;  // "hok1"
  std::uint32_t magic = kMagic;
  MeetingId meeting{};
  Nonce nonce{};

  template <class Io>
  void fields(Io& io) {
    io(magic), io(meeting), io(nonce);
  }
};

struct DoorProof {  // door to newcomer
  Nonce nonce{};
  Proof proof{};

  template <class Io>
  void fields(Io& io) {
    io(nonce), io(proof);
  }
};

struct NewcomerProof {  // newcomer to door
  Proof proof{};

  template <class Io>
  void fields(Io& io) {
    io(proof);
  }
};

struct Hello {  // newcomer to centre
  std::uint32_t version = HOCKET_VERSION_CODE;
  Member member;
  std::int32_t n_ranks = 0;
  std::int32_t timeout_ms = 0;    // the whole time limit of its init; 0: none
  std::int32_t remaining_ms = 0;  // what is left of it
  std::uint64_t shared_bytes = 0;
  std::string settings;
  std::string address;  // of rank 0: where its process listens

  template <class Io>
  void fields(Io& io) {
    io(version), io(member.info.rank);
    if (version != HOCKET_VERSION_CODE) return io.skip_rest();
    io(member), io(n_ranks), io(timeout_ms), io(remaining_ms), io(shared_bytes), io(settings, kMaxSettingsBytes),
        io(address);
  }
};

struct Refused {  // centre to newcomer: init fails, on every rank
  Error error;

  template <class Io>
  void fields(Io& io) {
    io(error);
  }
};

struct Redirect {  // meeting to newcomer: the centre is elsewhere
  std::string address;

  template <class Io>
  void fields(Io& io) {
    io(address);
  }
};

struct Withdraw {  // newcomer to centre: it gives up
  std::string reason;

  template <class Io>
  void fields(Io& io) {
    io(reason);
  }
};

struct Welcome {  // centre to member, with the shared memory if there is any
  std::vector<Member> members;

  template <class Io>
  void fields(Io& io) {
    io(members);
  }
};

struct Ready {  // member to centre
  template <class Io>
  void fields(Io&) {}
};

struct Go {  // centre to member: everyone is ready
  template <class Io>
  void fields(Io&) {}
};

// ---- Life ----

struct Goodbye {  // member to centre: it destroyed its communicator
  template <class Io>
  void fields(Io&) {}
};

struct Left {  // centre to member
  std::int32_t rank = 0;

  template <class Io>
  void fields(Io& io) {
    io(rank);
  }
};

struct CentreLeaves {  // centre to member: rank 0 left; members go on without a centre
  template <class Io>
  void fields(Io&) {}
};

struct Failure {  // member to centre, centre to member
  Error error;

  template <class Io>
  void fields(Io& io) {
    io(error);
  }
};

// ---- "What are you doing?" ----

struct Stall {  // member to centre
  std::uint64_t sequence = 0;
  std::int32_t waited_ms = 0;
  std::vector<std::int32_t> awaited;

  template <class Io>
  void fields(Io& io) {
    io(sequence), io(waited_ms), io(awaited);
  }
};

struct Mismatch {  // member to centre
  std::uint64_t sequence = 0;
  Error fallback;

  template <class Io>
  void fields(Io& io) {
    io(sequence), io(fallback);
  }
};

struct Query {  // centre to member
  std::uint32_t number = 0;
  std::uint64_t sequence = 0;

  template <class Io>
  void fields(Io& io) {
    io(number), io(sequence);
  }
};

// A CallReport and, from a rank that has not come to the asked call, the call it entered last.
struct Statement {
  CallReport report;
  std::optional<CallRecord> last;

  template <class Io>
  void fields(Io& io) {
    io(report.current_sequence), io(report.in_call), io(report.point_to_point), io(report.record), io(last);
  }
};

struct Answer {  // member to centre
  std::uint32_t number = 0;
  Statement statement;

  template <class Io>
  void fields(Io& io) {
    io(number), io(statement);
  }
};

struct Explained {  // centre to the member that reported a stall
  std::uint64_t sequence = 0;
  std::string text;

  template <class Io>
  void fields(Io& io) {
    io(sequence), io(text);
  }
};

// ---- Descriptors ----

struct Fetch {  // member to centre: the memory of that rank; centre to owner: with the owner's rank
  std::uint32_t number = 0;
  std::int32_t owner = 0;
  std::uint64_t allocation = 0;

  template <class Io>
  void fields(Io& io) {
    io(number), io(owner), io(allocation);
  }
};

struct Fetched {  // the way back; a descriptor comes with it unless `text` says why not
  std::uint32_t number = 0;
  std::string text;

  template <class Io>
  void fields(Io& io) {
    io(number), io(text);
  }
};

// The kind on the wire is the index. Append only.
using Message =
    std::variant<Greeting, DoorProof, NewcomerProof, Hello, Refused, Redirect, Withdraw, Welcome, Ready, Go, Goodbye, Left,
                 CentreLeaves, Failure, Stall, Mismatch, Query, Answer, Explained, Fetch, Fetched>;

enum class Descriptor : std::uint8_t { none, attached };

// The whole frame.
Bytes encode(const Message& message, Descriptor descriptor = Descriptor::none);

struct FrameHeader {
  std::size_t body_bytes = 0;
  std::uint8_t kind = 0;
  Descriptor descriptor = Descriptor::none;
};

// Of the first kFrameHeaderBytes bytes; nothing when they are no header or announce more than `max_body_bytes`.
std::optional<FrameHeader> parse_header(std::span<const std::uint8_t> bytes, std::size_t max_body_bytes);

// Of a whole body; nothing when it is malformed.
std::optional<Message> parse(std::uint8_t kind, std::span<const std::uint8_t> body);

}  // namespace hocket::control
