// SPDX-License-Identifier: Apache-2.0
#include "control/auth.h"

#include <sodium.h>

#include <cstdlib>

namespace hocket::control {
namespace {

// Thread-safe and idempotent; it fails only where the system has no source of random bytes at all.
void init_sodium() {
  static const bool ready = sodium_init() >= 0;
  if (!ready) std::abort();
}

void add(crypto_generichash_state& state, std::string_view text) {
  const std::uint64_t bytes = text.size();
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(&bytes), sizeof(bytes));
  crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
}

template <std::size_t N>
void add(crypto_generichash_state& state, const std::array<std::uint8_t, N>& bytes) {
  crypto_generichash_update(&state, bytes.data(), bytes.size());
}

}  // namespace

void fill_random(std::span<std::uint8_t> bytes) {
  init_sodium();
  randombytes_buf(bytes.data(), bytes.size());
}

Nonce make_nonce() {
  Nonce nonce;
  fill_random(nonce);
  return nonce;
}

Proof prove(Role role, const Secret& secret, const MeetingId& meeting, const Nonce& newcomer, const Nonce& door) {
  init_sodium();
  Proof proof;
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), proof.size());
  add(state, role == Role::door ? "hocket door" : "hocket newcomer");
  add(state, meeting);
  add(state, newcomer);
  add(state, door);
  crypto_generichash_final(&state, proof.data(), proof.size());
  return proof;
}

bool proves(const Proof& proof, Role role, const Secret& secret, const MeetingId& meeting, const Nonce& newcomer,
            const Nonce& door) {
  const Proof expected = prove(role, secret, meeting, newcomer, door);
  return sodium_memcmp(proof.data(), expected.data(), expected.size()) == 0;
}

void derive(std::span<std::uint8_t> out, std::string_view purpose, const std::vector<std::string>& parts) {
  init_sodium();
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, out.size());
  add(state, purpose);
  for (const std::string& part : parts) add(state, part);
  crypto_generichash_final(&state, out.data(), out.size());
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace hocket::control
