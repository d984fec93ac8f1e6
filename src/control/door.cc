// SPDX-License-Identifier: Apache-2.0
#include "control/door.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "control/auth.h"
#include "control/meetings.h"

namespace hocket::control {
namespace {

constexpr std::chrono::milliseconds kPatience{5000};
constexpr std::size_t kMaxNewcomers = 1024;
constexpr int kMaxAcceptsPerRound = 64;

}  // namespace

Result<std::shared_ptr<Door>> Door::open(Service& service, std::string name) {
  auto listener = listen_at(name);
  if (!listener) return tl::make_unexpected(std::move(listener).error());
  std::shared_ptr<Door> door(new Door(service, std::move(name), std::move(*listener)));
  auto watch = service.watch(door->listener_.get(), EPOLLIN, [raw = door.get()](std::uint32_t) { raw->knock(); });
  if (!watch) return tl::make_unexpected(std::move(watch).error());
  door->watch_ = std::move(*watch);
  return door;
}

void Door::knock() {
  for (int i = 0; i < kMaxAcceptsPerRound && watch_; ++i) {
    auto socket = accept_from(listener_.get());
    if (!socket) {
      if (make_room(Room::if_stale)) continue;
      return run_out_of_descriptors(socket.error());
    }
    if (!*socket) return;
    if (newcomers_.size() >= kMaxNewcomers) make_room(Room::urgent);
    add(std::move(**socket));
  }
}

// Init fails for those who can be told why. Newcomers that are about to say who they are get the time to; where nobody has come
// yet, the next one will be told.
void Door::run_out_of_descriptors(const Error& error) {
  if (!newcomers_.empty()) return pause(std::chrono::milliseconds(10));
  if (!std::exchange(has_complained_, true)) log_warn("control: {}", error.text);
  pause(std::chrono::milliseconds(100));
  service_.meetings().fail_all_at(*this, descriptor_limit_error("init, for each rank that connects,", 2));
}

// The connection stays queued, so the listener would wake the thread again and again.
void Door::pause(std::chrono::milliseconds length) {
  watch_.listen_to(0);
  pause_ = service_.after(length, [this] { watch_.listen_to(EPOLLIN); });
}

// Drops the one that waits longest. A rank needs milliseconds to say who it is: who waits longer than a second is none.
bool Door::make_room(Room how) {
  if (newcomers_.empty()) return false;
  if (how == Room::if_stale && Clock::now() - newcomers_.begin()->second->since < std::chrono::seconds(1)) return false;
  drop(newcomers_.begin()->first, "too many others knock");
  return true;
}

void Door::add(UniqueFd socket) {
  const std::uint64_t number = next_number_++;
  auto newcomer = std::make_unique<Newcomer>(std::move(socket));
  auto watch = service_.watch(newcomer->stream.fd(), EPOLLIN, [this, number](std::uint32_t) { hear(number); });
  if (!watch) {
    log_warn("control: {}", watch.error().text);
    return;
  }
  newcomer->watch = std::move(*watch);
  newcomer->deadline = service_.after(kPatience, [this, number] {
    const auto found = newcomers_.find(number);
    if (found == newcomers_.end()) return;
    drop(number, fmt::format("it sent {} bytes and no proof of the secret within {} s", found->second->stream.received_bytes(),
                             kPatience.count() / 1000));
  });
  newcomers_.emplace(number, std::move(newcomer));
}

void Door::drop(std::uint64_t number, const std::string& reason) {
  const auto found = newcomers_.find(number);
  if (found == newcomers_.end()) return;
  const Credentials peer = found->second->peer;
  log_warn("control: dropped a connection to {} from pid {} (uid {}): {}", address_text(name_), peer.pid,
           static_cast<std::int64_t>(peer.uid), reason);
  service_.bury(std::move(found->second));
  newcomers_.erase(found);
}

void Door::hear(std::uint64_t number) {
  const auto found = newcomers_.find(number);
  if (found == newcomers_.end()) return;
  Newcomer& newcomer = *found->second;
  newcomer.stream.receive();
  while (const auto incoming = newcomer.stream.next()) {
    if (!step(newcomer, incoming->message, number)) return;
  }
  switch (newcomer.stream.state()) {
    case MessageStream::State::open:
      return;
    case MessageStream::State::ended:
      return drop(number, fmt::format("it closed after {} bytes", newcomer.stream.received_bytes()));
    case MessageStream::State::malformed:
      return drop(number, "it sent what is no message of Hocket");
  }
}

// One step of the handshake (auth.h); false when the newcomer is no longer here.
bool Door::step(Newcomer& newcomer, const Message& message, std::uint64_t number) {
  if (newcomer.stage == Stage::greeting && std::holds_alternative<Greeting>(message)) {
    newcomer.greeting = std::get<Greeting>(message);
  }
  Centre* const centre = service_.meetings().find(newcomer.greeting.meeting);
  const auto refuse = [&](const std::string& reason) {
    drop(number, reason);
    return false;
  };
  if (newcomer.greeting.magic != Greeting::kMagic) return refuse("it greeted in a form that is not known here");
  if (centre == nullptr || !centre->gathers_at(*this)) return refuse("it asked for a meeting that is not (or no longer) held here");
  const MeetingPlace& place = centre->place();
  if (place.origin == MeetingPlace::Origin::derived && newcomer.peer.uid != ::geteuid()) {
    return refuse("it belongs to another user");
  }

  switch (newcomer.stage) {
    case Stage::greeting:
      if (!std::holds_alternative<Greeting>(message)) return refuse("it did not greet");
      newcomer.nonce = make_nonce();
      newcomer.stream.send(DoorProof{
          newcomer.nonce, prove(Role::door, place.secret, place.meeting, newcomer.greeting.nonce, newcomer.nonce)});
      newcomer.stage = Stage::proof;
      return true;
    case Stage::proof: {
      const auto* proof = std::get_if<NewcomerProof>(&message);
      if (proof == nullptr || !proves(proof->proof, Role::newcomer, place.secret, place.meeting, newcomer.greeting.nonce,
                                      newcomer.nonce)) {
        return refuse("it does not know the secret of the meeting");
      }
      newcomer.stream.trust();
      newcomer.stage = Stage::hello;
      return true;
    }
    case Stage::hello: {
      const auto* hello = std::get_if<Hello>(&message);
      if (hello == nullptr) return refuse("it proved the secret but did not say hello");
      newcomer.watch.reset();
      newcomer.deadline.reset();
      auto known = newcomers_.extract(number);
      centre->admit(std::move(known.mapped()->stream), *hello, known.mapped()->peer);
      service_.bury(std::move(known.mapped()));
      return false;
    }
  }
  return false;
}

}  // namespace hocket::control
