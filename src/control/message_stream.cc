// SPDX-License-Identifier: Apache-2.0
#include "control/message_stream.h"

#include <fcntl.h>

#include <array>

#include "control/unix_socket.h"

namespace hocket::control {

void MessageStream::receive() {
  // Bounded, so that one talkative peer does not hold up the thread: what is left makes the socket readable again.
  constexpr int kMaxReads = 16;
  std::array<std::uint8_t, 16384> chunk;
  for (int i = 0; i < kMaxReads && state_ == State::open; ++i) {
    UniqueFd descriptor;
    const Transfer got = receive_some(fd(), chunk, trusted_ ? Accept::descriptors : Accept::bytes, descriptor);
    if (got.bytes == 0 && !got.end && got.error == 0) return;
    if (got.end || got.error != 0) {
      state_ = State::ended;
      return;
    }
    received_bytes_ += got.bytes;
    inbox_.insert(inbox_.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(got.bytes));
    if (descriptor || got.descriptor_lost) descriptors_.push_back(std::move(descriptor));
    // Strangers get no buffer space beyond one read.
    if (!trusted_) return;
  }
}

std::optional<MessageStream::Incoming> MessageStream::next() {
  if (state_ == State::malformed) return std::nullopt;
  const std::span<const std::uint8_t> rest = std::span(inbox_).subspan(parsed_);
  if (rest.size() < kFrameHeaderBytes) {
    inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(parsed_));
    parsed_ = 0;
    return std::nullopt;
  }
  const auto header = parse_header(rest, trusted_ ? kMaxBodyBytes : kMaxStrangerBytes);
  if (!header || (header->descriptor == Descriptor::attached && !trusted_)) {
    state_ = State::malformed;
    return std::nullopt;
  }
  if (rest.size() < kFrameHeaderBytes + header->body_bytes) return std::nullopt;
  auto message = parse(header->kind, rest.subspan(kFrameHeaderBytes, header->body_bytes));
  if (!message) {
    state_ = State::malformed;
    return std::nullopt;
  }
  parsed_ += kFrameHeaderBytes + header->body_bytes;
  Incoming incoming{std::move(*message), UniqueFd()};
  if (header->descriptor == Descriptor::attached && !descriptors_.empty()) {
    incoming.descriptor = std::move(descriptors_.front());
    descriptors_.pop_front();
  }
  return incoming;
}

std::size_t MessageStream::send_now(Outgoing& outgoing, int descriptor) {
  const auto rest = std::span<const std::uint8_t>(outgoing.bytes).subspan(outgoing.sent);
  const Transfer done = send_some(fd(), rest, outgoing.sent == 0 ? descriptor : -1);
  if (done.error != 0) {
    // The reading side sees the end too, after what the peer said last; nothing more needs sending.
    outgoing.sent = outgoing.bytes.size();
    return rest.size();
  }
  outgoing.sent += done.bytes;
  return done.bytes;
}

void MessageStream::send(const Message& message, int descriptor) {
  Outgoing outgoing{encode(message, descriptor >= 0 ? Descriptor::attached : Descriptor::none), 0, UniqueFd()};
  if (outbox_.empty()) {
    while (outgoing.sent < outgoing.bytes.size() && send_now(outgoing, descriptor) > 0) {
    }
    if (outgoing.sent == outgoing.bytes.size()) return;
  }
  if (descriptor >= 0 && outgoing.sent == 0) outgoing.descriptor = UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  outbox_.push_back(std::move(outgoing));
}

void MessageStream::flush() {
  while (!outbox_.empty()) {
    Outgoing& first = outbox_.front();
    if (send_now(first, first.descriptor.get()) == 0) return;
    if (first.sent == first.bytes.size()) outbox_.pop_front();
  }
}

}  // namespace hocket::control
