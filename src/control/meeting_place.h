// SPDX-License-Identifier: Apache-2.0
// Where ranks meet and what they prove to each other: the content of a hocketUniqueId.
#pragma once

#include <string>

#include "control/message.h"

namespace hocket::control {

inline constexpr std::size_t kMaxPlaceNameBytes = 63;

struct MeetingPlace {
  // created: a process listens there from before the id existed until the meeting is over.
  // derived: every rank computed it from the job's identity; rank 0 opens it when it comes, and both sides must belong to
  //          the same user, because what it was derived from can be guessed.
  enum class Origin : std::uint8_t { created = 0, derived = 1 };
  Origin origin = Origin::created;
  MeetingId meeting{};
  Secret secret{};
  std::string name;  // abstract Unix socket

  friend bool operator==(const MeetingPlace&, const MeetingPlace&) = default;
};

hocketUniqueId encode(const MeetingPlace& place);
Result<MeetingPlace> decode(const hocketUniqueId& id);

}  // namespace hocket::control
