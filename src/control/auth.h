// SPDX-License-Identifier: Apache-2.0
// Both sides of a new connection prove that they know the meeting's secret, without sending it:
//
//   newcomer                                   door
//     Greeting{meeting, nonce a}  ──────────▶
//                                 ◀──────────  DoorProof{nonce b, MAC(secret, "door"     | meeting | a | b)}
//     NewcomerProof{MAC(secret, "newcomer" | meeting | a | b)}  ──────────▶
//
// Fresh nonces on both sides make a recorded exchange worthless; the role in the MAC keeps a proof from being sent back.
#pragma once

#include <string_view>

#include "control/message.h"

namespace hocket::control {

enum class Role { door, newcomer };

void fill_random(std::span<std::uint8_t> bytes);
Nonce make_nonce();
Proof prove(Role role, const Secret& secret, const MeetingId& meeting, const Nonce& newcomer, const Nonce& door);
// In constant time.
bool proves(const Proof& proof, Role role, const Secret& secret, const MeetingId& meeting, const Nonce& newcomer,
            const Nonce& door);

// Fills `out` (16 to 64 bytes) with a hash of the parts; their borders count ("ab","c" differs from "a","bc").
void derive(std::span<std::uint8_t> out, std::string_view purpose, const std::vector<std::string>& parts);

std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace hocket::control
