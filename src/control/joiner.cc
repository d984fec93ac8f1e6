// SPDX-License-Identifier: Apache-2.0
#include "control/joiner.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "control/auth.h"
#include "control/meetings.h"
#include "control/process.h"

namespace hocket::control {
namespace {

constexpr std::chrono::milliseconds kBusyPause{5};
constexpr std::chrono::milliseconds kAbsentPause{20};
// The centre tells everyone when the first time limit passes, with the names of the missing; this long it is waited for.
constexpr std::chrono::milliseconds kGrace{1000};

}  // namespace

Joiner::Joiner(ServiceUse use, const JoinOptions& options, MeetingPlace place, std::uint32_t version, JoinProgress& progress)
    : use_(std::move(use)),
      options_(options),
      place_(std::move(place)),
      version_(version),
      progress_(progress),
      deadline_(Clock::now() + std::chrono::milliseconds(options.timeout_ms)),
      address_(place_.name) {}

std::string Joiner::who() const { return fmt::format("init of rank {} of {}", options_.rank, options_.n_ranks); }

int Joiner::remaining_ms() const {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count());
}

void Joiner::begin() {
  if (options_.timeout_ms > 0) time_limit_ = use_->at(deadline_, [this] { time_out(); });
  if (options_.rank == 0) {
    if (const Status hosted = host(); !hosted) return fail(hosted.error());
  }
  connect();
}

// Rank 0: makes this process the centre. Where the meeting was made elsewhere, Hello tells its address there.
Status Joiner::host() {
  Meetings& meetings = use_->meetings();
  Centre* centre = meetings.find(place_.meeting);
  if (centre != nullptr && centre->is_hosted()) {
    return hocket::fail(hocketInvalidArgument, "rank 0 came twice, both times in this process; give each rank a number of its own");
  }
  if (centre == nullptr) {
    MeetingPlace place = place_;
    auto opened = place_.origin == MeetingPlace::Origin::derived ? meetings.open_at_its_name(use_.again(), place)
                                                                 : meetings.open(use_.again(), place);
    if (!opened) return tl::make_unexpected(std::move(opened).error());
    centre = *opened;
    own_address_ = place.name;
  } else {
    own_address_ = centre->place().name;
  }
  centre->host(
      [&progress = progress_] {
        const std::lock_guard lock(progress.mutex);
        progress.memory_wanted = true;
        progress.changed.notify_one();
      },
      [this](const Error& error) { fail(error); });
  return {};
}

Centre* Joiner::hosted_centre() { return own_address_.empty() ? nullptr : use_->meetings().find(place_.meeting); }

void Joiner::memory_made(const Result<UniqueFd>& memory) {
  if (Centre* const centre = hosted_centre()) centre->memory_made(memory);
}

void Joiner::connect_later(std::chrono::milliseconds delay) {
  watch_.reset();
  stream_.reset();
  stage_ = Stage::connecting;
  retry_ = use_->after(delay, [this] { connect(); });
}

void Joiner::connect() {
  auto socket = connect_to(address_);
  if (!socket) {
    const int error = socket.error();
    if (error == EAGAIN) return connect_later(kBusyPause);
    if (error == ECONNREFUSED) return door_closed();
    if (is_descriptor_limit(error)) return fail(descriptor_limit_error("init", 6));
    return fail(Error(hocket::fail_errno(error, "cannot connect to {}", address_text(address_)).value()));
  }
  if (place_.origin == MeetingPlace::Origin::derived && peer_of(socket->get()).uid != ::geteuid()) {
    return fail({hocketSystemError, fmt::format("a process of another user listens at {}; choose another name with HOCKET_ROOT "
                                                "or HOCKET_JOB",
                                                address_text(address_))});
  }
  stream_.emplace(std::move(*socket));
  auto watch = use_->watch(stream_->fd(), EPOLLIN, [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
      stream_->flush();
      if (!stream_->has_unsent()) watch_.listen_to(EPOLLIN);
    }
    hear();
  });
  if (!watch) return fail(watch.error());
  watch_ = std::move(*watch);
  greeting_ = Greeting{Greeting::kMagic, place_.meeting, make_nonce()};
  stage_ = Stage::proving;
  stream_->send(greeting_);
}

// Nobody listens, or the door shut before it answered.
void Joiner::door_closed() {
  if (place_.origin == MeetingPlace::Origin::derived) return connect_later(kAbsentPause);  // rank 0 has not come yet
  if (redirected_) {
    return fail({hocketRemoteError, fmt::format("rank 0, at {}, has given up or died", address_text(address_))});
  }
  fail({hocketInvalidUsage,
        fmt::format("the meeting at {} is over: the process that made the unique id has ended, the id was used before, or the "
                    "others gave up; make a new id in a process that lives until init is done",
                    address_text(address_))});
}

void Joiner::connection_ended() {
  if (stage_ == Stage::proving) return door_closed();
  fail({hocketRemoteError, fmt::format("the process at {} ended or closed the connection; see its log", address_text(address_))});
}

void Joiner::hear() {
  stream_->receive();
  const int socket = stream_->fd();
  while (auto incoming = stream_->next()) {
    handle(*incoming);
    if (stage_ == Stage::done || !stream_ || stream_->fd() != socket) return;
  }
  switch (stream_->state()) {
    case MessageStream::State::open:
      if (stream_->has_unsent()) watch_.listen_to(EPOLLIN | EPOLLOUT);
      return;
    case MessageStream::State::ended:
      return connection_ended();
    case MessageStream::State::malformed:
      return fail({hocketSystemError, fmt::format("the process at {} is not Hocket", address_text(address_))});
  }
}

void Joiner::handle(MessageStream::Incoming& incoming) {
  Message& message = incoming.message;
  if (stage_ == Stage::proving) {
    if (const auto* proof = std::get_if<DoorProof>(&message)) return prove_to_door(*proof);
  } else {
    if (auto* refused = std::get_if<Refused>(&message)) return fail(std::move(refused->error));
    if (const auto* redirect = std::get_if<Redirect>(&message)) return follow(*redirect);
    if (auto* welcome = std::get_if<Welcome>(&message)) return get_ready(*welcome, std::move(incoming.descriptor));
    if (std::holds_alternative<Go>(message) && stage_ == Stage::readying) return go();
  }
  fail({hocketSystemError, fmt::format("the process at {} sent a message (kind {}) out of turn", address_text(address_),
                                       message.index())});
}

void Joiner::prove_to_door(const DoorProof& proof) {
  if (!proves(proof.proof, Role::door, place_.secret, place_.meeting, greeting_.nonce, proof.nonce)) {
    return fail({hocketSystemError,
                 fmt::format("the process at {} does not know the secret of this job; check that all ranks have the same "
                             "unique id, or the same HOCKET_SECRET",
                             address_text(address_))});
  }
  stream_->trust();
  stream_->send(NewcomerProof{prove(Role::newcomer, place_.secret, place_.meeting, greeting_.nonce, proof.nonce)});
  Hello hello;
  hello.version = version_;
  hello.member = describe_this_process(options_.rank);
  hello.n_ranks = options_.n_ranks;
  hello.timeout_ms = options_.timeout_ms;
  hello.remaining_ms = remaining_ms();
  hello.shared_bytes = options_.shared_bytes;
  hello.settings = options_.settings;
  hello.address = own_address_;
  stage_ = Stage::waiting;
  stream_->send(hello);
}

void Joiner::follow(const Redirect& redirect) {
  if (redirected_ || stage_ != Stage::waiting) {
    return fail({hocketInternalError, fmt::format("redirected from {} to {} in a circle", address_text(address_),
                                                  address_text(redirect.address))});
  }
  redirected_ = true;
  address_ = redirect.address;
  connect_later(std::chrono::milliseconds(0));
}

void Joiner::get_ready(Welcome& welcome, UniqueFd memory) {
  if (stage_ != Stage::waiting || static_cast<int>(welcome.members.size()) != options_.n_ranks) {
    return fail({hocketSystemError, fmt::format("the process at {} sent a welcome that does not fit", address_text(address_))});
  }
  if (options_.shared_bytes > 0 && !memory) {
    const Error error = descriptor_limit_error("init", 6);
    stream_->send(Withdraw{error.text});
    return fail(error);
  }
  members_ = std::move(welcome.members);
  memory_ = std::move(memory);
  stage_ = Stage::readying;
  stream_->send(Ready{});
}

void Joiner::go() {
  watch_.reset();
  const Credentials centre = peer_of(stream_->fd());
  auto line = std::make_unique<Line>(*use_, options_.rank, std::move(members_), std::move(*stream_), centre);
  stream_.reset();
  line->open();
  finish(Admission{std::move(line), std::move(memory_)});
}

void Joiner::time_out() {
  const double limit_s = options_.timeout_ms / 1000.0;
  if ((stage_ == Stage::waiting || stage_ == Stage::readying) && Clock::now() < deadline_ + kGrace) {
    time_limit_ = use_->at(deadline_ + kGrace, [this] { time_out(); });
    return;
  }
  std::string cause;
  if (stage_ == Stage::connecting) {
    cause = fmt::format("missing: rank 0, nobody listens at {}; check that rank 0 was started, by the same user, with the same "
                        "job variables",
                        address_text(address_));
  } else {
    cause = fmt::format("the process at {} (pid {}) does not answer (stopped?)", address_text(address_),
                        stream_ ? peer_of(stream_->fd()).pid : 0);
  }
  if (stage_ != Stage::connecting && stream_) stream_->send(Withdraw{"its time limit passed"});
  fail({hocketErrorTimeout, fmt::format("init timed out after {:.1f} s; {}", limit_s, cause)});
}

void Joiner::cancel() {
  if (stage_ == Stage::done) return;
  if (stage_ == Stage::waiting || stage_ == Stage::readying) stream_->send(Withdraw{"aborted"});
  fail({hocketInvalidUsage, "aborted by another thread"});
}

void Joiner::fail(Error error) {
  if (std::exchange(stage_, Stage::done) == Stage::done) return;
  if (Centre* const centre = hosted_centre()) centre->fail_init(error);
  finish(tl::make_unexpected(std::move(error).with_context(who())));
}

void Joiner::finish(Result<Admission> result) {
  stage_ = Stage::done;
  watch_.reset();
  retry_.reset();
  time_limit_.reset();
  const std::lock_guard lock(progress_.mutex);
  progress_.result.emplace(std::move(result));
  progress_.changed.notify_one();
}

}  // namespace hocket::control
