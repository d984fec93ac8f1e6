// SPDX-License-Identifier: Apache-2.0
#include "control/message.h"

#include <gtest/gtest.h>

#include <random>

#include "control/auth.h"
#include "control/meeting_place.h"

namespace hocket::control {
namespace {

std::vector<Message> one_of_each() {
  Hello hello;
  hello.member.info = {3, 4711, "a"};
  hello.n_ranks = 4;
  hello.settings = "a=1\nb=2\n";
  hello.address = "x";
  const CallRecord record{.sequence = 7, .collective = 3, .datatype = 7, .op = 1, .root = -1, .count = 1ull << 40};
  return {Greeting{},
          DoorProof{},
          NewcomerProof{},
          hello,
          Refused{{hocketErrorTimeout, "late"}},
          Redirect{"there"},
          Withdraw{"why"},
          Welcome{{hello.member, hello.member}},
          Ready{},
          Go{},
          Goodbye{},
          Left{2},
          CentreLeaves{},
          Failure{{hocketRemoteError, "rank 1 died"}},
          Stall{7, 1000, {1, 2, 3}},
          Mismatch{7, {hocketErrorMismatch, "odd"}},
          Query{1, 7},
          Answer{1, {{7, true, false, record}, record}},
          Explained{7, "late"},
          Fetch{1, 2, 3},
          Fetched{1, ""}};
}

std::optional<Message> parse_frame(const Bytes& frame) {
  const auto header = parse_header(frame, kMaxBodyBytes);
  if (!header || frame.size() != kFrameHeaderBytes + header->body_bytes) return std::nullopt;
  return parse(header->kind, std::span(frame).subspan(kFrameHeaderBytes));
}

TEST(Message, EachKindSurvivesTheWire) {
  const auto messages = one_of_each();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (std::size_t kind = 0; kind < messages.size(); ++kind) {
    ASSERT_EQ(messages[kind].index(), kind);
    const Bytes frame = encode(messages[kind]);
    const auto parsed = parse_frame(frame);
    ASSERT_TRUE(parsed) << "kind " << kind;
    EXPECT_EQ(encode(*parsed), frame) << "kind " << kind;
  }
  const auto answer = std::get<Answer>(*parse_frame(encode(messages[17])));
  EXPECT_EQ(answer.statement.report.record->count, 1ull << 40);
  EXPECT_EQ(answer.statement.report.record->root, -1);
}

TEST(Message, CutOrLongerBodiesAreRefused) {
  for (const Message& message : one_of_each()) {
    const Bytes frame = encode(message);
    const auto body = std::span(frame).subspan(kFrameHeaderBytes);
    for (std::size_t bytes = 0; bytes < body.size(); ++bytes) {
      EXPECT_FALSE(parse(static_cast<std::uint8_t>(message.index()), body.first(bytes))) << message.index() << " cut to " << bytes;
    }
    Bytes longer(body.begin(), body.end());
    longer.push_back(0);
    EXPECT_FALSE(parse(static_cast<std::uint8_t>(message.index()), longer)) << message.index();
  }
}

TEST(Message, HelloOfAnotherVersionShowsItsVersionAndRank) {
  Hello hello;
  hello.version = HOCKET_VERSION_CODE + 1;
  hello.member.info.rank = 5;
  Bytes frame = encode(hello);
  frame.insert(frame.end(), {1, 2, 3, 4});  // what only that version knows
  const auto parsed = parse(frame[4], std::span(frame).subspan(kFrameHeaderBytes));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(std::get<Hello>(*parsed).version, HOCKET_VERSION_CODE + 1u);
  EXPECT_EQ(std::get<Hello>(*parsed).member.info.rank, 5);
}

TEST(Message, HeadersThatPromiseTooMuchAreRefused) {
  Bytes frame = encode(Ready{});
  EXPECT_TRUE(parse_header(frame, 0));
  frame[0] = 1;
  EXPECT_FALSE(parse_header(frame, 0));
  frame = encode(Ready{});
  frame[4] = 200;
  EXPECT_FALSE(parse_header(frame, kMaxBodyBytes));
}

TEST(Message, RandomBytesNeverCrash) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Bytes body;
  for (int i = 0; i < 20000; ++i) {
    body.resize(random() % 200);
    for (auto& byte : body) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : 0);
    static_cast<void>(parse(static_cast<std::uint8_t>(random() % 24), body));
  }
}

TEST(Auth, ProofsHoldForTheirRoleSecretAndNoncesOnly) {
  Secret secret{}, other_secret{};
  other_secret[31] = 1;
  const MeetingId meeting{};
  const Nonce a = make_nonce();
  const Nonce b = make_nonce();
  const Proof proof = prove(Role::door, secret, meeting, a, b);
  EXPECT_TRUE(proves(proof, Role::door, secret, meeting, a, b));
  EXPECT_FALSE(proves(proof, Role::newcomer, secret, meeting, a, b));
  EXPECT_FALSE(proves(proof, Role::door, other_secret, meeting, a, b));
  EXPECT_FALSE(proves(proof, Role::door, secret, meeting, b, a));
}

TEST(MeetingPlace, SurvivesTheIdAndRefusesOthers) {
  MeetingPlace place;
  fill_random(place.meeting);
  fill_random(place.secret);
  place.name = "hocket-test";
  hocketUniqueId id = encode(place);
  const auto decoded = decode(id);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, place);
  for (int byte = 0; byte < HOCKET_UNIQUE_ID_BYTES; ++byte) {
    hocketUniqueId damaged = id;
    damaged.internal[byte] = static_cast<char>(damaged.internal[byte] ^ 0x10);
    const auto refused = decode(damaged);
    ASSERT_FALSE(refused) << "byte " << byte;
    EXPECT_EQ(refused.error().code, hocketInvalidArgument);
  }
  EXPECT_FALSE(decode(hocketUniqueId{}));
}

}  // namespace
}  // namespace hocket::control
