// SPDX-License-Identifier: Apache-2.0
#include "control/centre.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/meetings.h"
#include "control/settings_difference.h"

namespace hocket::control {
namespace {

std::string version_text(std::uint32_t code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

// Of init as a whole, on rank 0's process: one connection and one process descriptor for each rank, and a handful.
int descriptors_for(int n_ranks) { return 2 * n_ranks + 8; }

}  // namespace

Centre::Centre(ServiceUse use, MeetingPlace place, std::shared_ptr<Door> door)
    : use_(std::move(use)), place_(std::move(place)), door_(std::move(door)) {}

Centre::~Centre() = default;

Centre::Seat* Centre::seat_of(int rank) const {
  return rank >= 0 && rank < static_cast<int>(seats_.size()) ? seats_[static_cast<std::size_t>(rank)].get() : nullptr;
}

int Centre::lowest_rank_here() const {
  const auto found = std::find_if(seats_.begin(), seats_.end(), [](const auto& seat) { return seat != nullptr; });
  return found == seats_.end() ? -1 : static_cast<int>(found - seats_.begin());
}

std::string Centre::rank_text(int rank) const {
  if (!members_.empty()) return members_[static_cast<std::size_t>(rank)].info.text();
  const Seat* const seat = seat_of(rank);
  return seat != nullptr ? seat->hello.member.info.text() : fmt::format("rank {}", rank);
}

void Centre::send(int rank, const Message& message, int descriptor) {
  Seat* const seat = seat_of(rank);
  if (seat == nullptr) return;
  seat->stream.send(message, descriptor);
  if (seat->stream.has_unsent()) seat->stream_watch.listen_to(EPOLLIN | EPOLLOUT);
}

void Centre::send_everyone(const Message& message, int descriptor) {
  for (int rank = 0; rank < static_cast<int>(seats_.size()); ++rank) send(rank, message, descriptor);
}

void Centre::close_seat(int rank) {
  Seat* const seat = seat_of(rank);
  if (seat == nullptr) return;
  seat->stream_watch.reset();
  seat->process_watch.reset();
  seat->deadline.reset();
  use_->bury(std::move(seats_[static_cast<std::size_t>(rank)]));  // its stream may be in use further up the stack
}

void Centre::end() {
  if (std::exchange(stage_, Stage::ended) == Stage::ended) return;
  for (int rank = 0; rank < static_cast<int>(seats_.size()); ++rank) close_seat(rank);
  if (door_ != nullptr) use_->bury(std::move(door_));
  redirect_deadline_.reset();
  use_->meetings().end(*this);
}

// ---- Gathering ----

void Centre::admit(MessageStream stream, const Hello& hello, const Credentials& peer) {
  if (stage_ == Stage::redirecting) return redirect(std::move(stream), hello);
  if (const auto error = objection(hello)) {
    stream.send(Refused{*error});
    return fail_init(*error);
  }
  const int rank = hello.member.info.rank;
  if (rank == 0 && hello.address != door_->name()) {
    redirect_everyone(hello);
    return redirect(std::move(stream), hello);
  }
  if (const Status seated = seat(std::move(stream), hello, peer); !seated) return fail_init(seated.error());
  if (std::all_of(seats_.begin(), seats_.end(), [](const auto& seat) { return seat != nullptr; })) {
    everyone_is_here();
  }
  if (stage_ != Stage::ended) hear(rank);  // what came right behind Hello
}

// Why this newcomer and those who are here cannot be one communicator.
std::optional<Error> Centre::objection(const Hello& hello) const {
  const int rank = hello.member.info.rank;
  const auto error = [](hocketResult_t code, std::string text) { return Error{code, std::move(text)}; };
  const Seat* const reference = seat_of(lowest_rank_here());
  const int reference_rank = reference != nullptr ? reference->hello.member.info.rank : rank;
  if (hello.version != HOCKET_VERSION_CODE) {
    const std::string here = reference != nullptr ? fmt::format("rank {}", reference_rank) : "the process that holds the meeting";
    return error(hocketInvalidUsage,
                 fmt::format("rank {} runs Hocket {}, {} runs {}; install the same version everywhere", rank,
                             version_text(hello.version), here, version_text(HOCKET_VERSION_CODE)));
  }
  if (hello.n_ranks < 1 || hello.n_ranks > kMaxRanks || rank < 0 || rank >= hello.n_ranks) {
    return error(hocketInvalidArgument,
                 fmt::format("rank {} of {} came to the meeting; a rank is 0 to n_ranks - 1", rank, hello.n_ranks));
  }
  if (rank == 0 && is_hosted() != (hello.address == door_->name())) {
    return error(hocketInvalidArgument,
                 fmt::format("{} came although a process here is rank 0; give each process a rank of its own",
                             hello.member.info.text()));
  }
  if (reference == nullptr) return std::nullopt;
  if (hello.n_ranks != reference->hello.n_ranks) {
    return error(hocketInvalidArgument,
                 fmt::format("rank {} has n_ranks {}, rank {} has n_ranks {}; pass the same number on every rank", rank,
                             hello.n_ranks, reference_rank, reference->hello.n_ranks));
  }
  if (const Seat* const twin = seat_of(rank)) {
    return error(hocketInvalidArgument,
                 fmt::format("rank {} came twice: pid {} on {} and pid {} on {}; give each process a rank of its own", rank,
                             twin->hello.member.info.pid, twin->hello.member.info.host, hello.member.info.pid,
                             hello.member.info.host));
  }
  const auto difference = settings_difference(rank, hello, reference_rank, reference->hello);
  if (difference) return error(hocketInvalidArgument, *difference);
  return std::nullopt;
}

Status Centre::seat(MessageStream stream, const Hello& hello, const Credentials& peer) {
  const int rank = hello.member.info.rank;
  seats_.resize(static_cast<std::size_t>(hello.n_ranks));
  auto seat = std::make_unique<Seat>(std::move(stream), hello);
  auto watch = use_->watch(seat->stream.fd(), EPOLLIN, [this, rank](std::uint32_t events) {
    Seat* const here = seat_of(rank);
    if (here == nullptr) return;
    if ((events & EPOLLOUT) != 0) {
      here->stream.flush();
      if (!here->stream.has_unsent()) here->stream_watch.listen_to(EPOLLIN);
    }
    hear(rank);
  });
  if (!watch) {
    seat->stream.send(Refused{watch.error()});
    return tl::make_unexpected(std::move(watch).error());
  }
  seat->stream_watch = std::move(*watch);
  // Children that a rank fork()ed keep its end of the connection open when it dies; its process descriptor tells.
  if (peer.pid != ::getpid()) seat->process = watch_process(peer.pid);
  if (seat->process) {
    auto process_watch = use_->watch(seat->process.get(), EPOLLIN, [this, rank](std::uint32_t) {
      if (Seat* const here = seat_of(rank)) here->process_watch.reset();
      hear(rank);  // its last words
      if (seat_of(rank) != nullptr) lose(rank);
    });
    if (process_watch) seat->process_watch = std::move(*process_watch);
  }
  if (hello.timeout_ms > 0) {
    seat->deadline = use_->after(std::chrono::milliseconds(std::max(hello.remaining_ms, 0)), [this, rank] { time_out(rank); });
  }
  seats_[static_cast<std::size_t>(rank)] = std::move(seat);
  return {};
}

void Centre::redirect(MessageStream stream, const Hello& hello) {
  stream.send(Redirect{rank_0_address_});
  if (hello.version != HOCKET_VERSION_CODE) return;  // the centre will tell
  const auto rank = static_cast<std::size_t>(hello.member.info.rank);
  if (rank < redirected_.size()) redirected_[rank] = true;
  if (std::find(redirected_.begin(), redirected_.end(), false) == redirected_.end()) return end();
  // Whoever comes after the others have given up finds nobody here, and says so.
  if (hello.timeout_ms > 0) {
    redirect_deadline_ = use_->after(std::chrono::milliseconds(std::max(hello.remaining_ms, 0)), [this] { end(); });
  }
}

void Centre::redirect_everyone(const Hello& rank_0) {
  stage_ = Stage::redirecting;
  rank_0_address_ = rank_0.address;
  redirected_.assign(static_cast<std::size_t>(rank_0.n_ranks), false);
  for (int rank = 0; rank < static_cast<int>(seats_.size()); ++rank) {
    if (seat_of(rank) == nullptr) continue;
    send(rank, Redirect{rank_0_address_});
    redirected_[static_cast<std::size_t>(rank)] = true;
    close_seat(rank);
  }
}

void Centre::time_out(int rank) {
  const Seat* const seat = seat_of(rank);
  if (seat == nullptr) return;
  std::vector<int> missing;
  for (int other = 0; other < static_cast<int>(seats_.size()); ++other) {
    if (seat_of(other) == nullptr || (stage_ == Stage::readying && !seat_of(other)->ready)) missing.push_back(other);
  }
  const double limit_s = seat->hello.timeout_ms / 1000.0;
  if (stage_ == Stage::preparing) {
    return fail_init({hocketErrorTimeout, fmt::format("init of {} ranks timed out after {:.1f} s while rank 0 reserved {} bytes "
                                                      "of shared memory; raise the init time limit",
                                                      seats_.size(), limit_s, seat->hello.shared_bytes)});
  }
  std::string text;
  for (const int other : missing) text += fmt::format("{}rank {}", text.empty() ? "" : ", ", other);
  fail_init({hocketErrorTimeout,
             fmt::format("init of {} ranks timed out after {:.1f} s; missing: {}; check that every rank was started and has "
                         "the same id, or raise the init time limit",
                         seats_.size(), limit_s, text)});
}

void Centre::fail_init(const Error& error) {
  if (stage_ == Stage::running || stage_ == Stage::ended) return;
  send_everyone(Refused{error});
  end();
  if (host_failed_) host_failed_(error);
}

void Centre::everyone_is_here() {
  use_->bury(std::move(door_));
  stage_ = Stage::preparing;
  for (const auto& seat : seats_) members_.push_back(seat->hello.member);
  if (seats_.front()->hello.shared_bytes == 0) return welcome(-1);
  make_memory_();
}

void Centre::memory_made(const Result<UniqueFd>& memory) {
  if (stage_ != Stage::preparing) return;
  if (!memory) return fail_init(memory.error());
  welcome(memory->get());
}

void Centre::welcome(int memory) {
  stage_ = Stage::readying;
  send_everyone(Welcome{members_}, memory);
}

void Centre::go() {
  stage_ = Stage::running;
  std::vector<RankInfo> ranks;
  for (const Member& member : members_) ranks.push_back(member.info);
  desk_.emplace(*use_, static_cast<InquiryDesk::Floor&>(*this), std::move(ranks));
  for (const auto& seat : seats_) seat->deadline.reset();
  send_everyone(Go{});
}

// ---- Running ----

void Centre::hear(int rank) {
  Seat* const seat = seat_of(rank);
  if (seat == nullptr) return;
  seat->stream.receive();
  while (auto incoming = seat->stream.next()) {
    handle(rank, *incoming);
    if (seat_of(rank) != seat) return;
  }
  if (seat->stream.state() == MessageStream::State::malformed) {
    log_warn("control: {} sent what is no message of Hocket", rank_text(rank));
  }
  if (seat->stream.state() != MessageStream::State::open) lose(rank);
}

void Centre::handle(int rank, MessageStream::Incoming& incoming) {
  const Message& message = incoming.message;
  if (stage_ != Stage::running) return handle_joining(rank, message);
  if (std::holds_alternative<Goodbye>(message)) return depart(rank, Presence::left);
  if (std::holds_alternative<Withdraw>(message)) return lose(rank);  // it gave up just before Go reached it
  if (const auto* failure = std::get_if<Failure>(&message)) return fail_others(rank, failure->error);
  if (const auto* stall = std::get_if<Stall>(&message)) {
    if (failure_) return send(rank, Failure{*failure_});
    return desk_->question({rank, stall->sequence, stall->awaited, std::nullopt});
  }
  if (const auto* mismatch = std::get_if<Mismatch>(&message)) {
    return desk_->question({rank, mismatch->sequence, {}, mismatch->fallback});
  }
  if (const auto* answer = std::get_if<Answer>(&message)) return desk_->answer(rank, *answer);
  if (const auto* request = std::get_if<Fetch>(&message)) return fetch(rank, *request);
  if (const auto* reply = std::get_if<Fetched>(&message)) return fetched(rank, *reply, incoming.descriptor);
  log_warn("control: {} sent a message (kind {}) that is not for the centre", rank_text(rank), message.index());
  lose(rank);
}

void Centre::handle_joining(int rank, const Message& message) {
  if (const auto* withdraw = std::get_if<Withdraw>(&message)) {
    return fail_init({hocketRemoteError, fmt::format("{} gave up its init: {}", rank_text(rank), withdraw->reason)});
  }
  if (!std::holds_alternative<Ready>(message) || stage_ != Stage::readying) return lose(rank);
  seat_of(rank)->ready = true;
  if (std::all_of(seats_.begin(), seats_.end(), [](const auto& seat) { return seat->ready; })) go();
}

// The connection broke or the process ended, without good-bye.
void Centre::lose(int rank) {
  if (stage_ == Stage::running) return depart(rank, Presence::dead);
  fail_init({hocketRemoteError, fmt::format("{} died during init", rank_text(rank))});
}

void Centre::depart(int rank, Presence how) {
  close_seat(rank);
  send_everyone(Left{rank});
  if (how == Presence::dead) fail_others(rank, {hocketRemoteError, rank_text(rank) + " died"});
  for (auto entry = fetches_.begin(); entry != fetches_.end();) {
    const PendingFetch pending = entry->second;
    if (pending.owner == rank) send(pending.requester, Fetched{pending.number, rank_text(rank) + " has left"});
    entry = pending.owner == rank || pending.requester == rank ? fetches_.erase(entry) : std::next(entry);
  }
  desk_->gone(rank, how);
}

void Centre::fail_others(int rank, const Error& error) {
  if (failure_) return;  // everyone has been told about an earlier one, which wins
  failure_ = error;
  for (int other = 0; other < static_cast<int>(seats_.size()); ++other) {
    if (other != rank) send(other, Failure{error});
  }
}

void Centre::fetch(int rank, const Fetch& request) {
  if (seat_of(request.owner) == nullptr) {
    const bool exists = request.owner >= 0 && request.owner < static_cast<int>(members_.size());
    return send(rank, Fetched{request.number, exists ? rank_text(request.owner) + " has left" : "there is no such rank"});
  }
  const std::uint32_t number = next_fetch_++;
  fetches_[number] = {rank, request.number, request.owner};
  send(request.owner, Fetch{number, request.owner, request.allocation});
}

void Centre::fetched(int rank, const Fetched& reply, const UniqueFd& descriptor) {
  const auto found = fetches_.find(reply.number);
  if (found == fetches_.end() || found->second.owner != rank) return;
  const PendingFetch pending = found->second;
  fetches_.erase(found);
  std::string text = reply.text;
  if (text.empty() && !descriptor) {
    text = descriptor_limit_error("rank 0, to pass the memory on,", descriptors_for(static_cast<int>(seats_.size()))).text;
  }
  send(pending.requester, Fetched{pending.number, text}, descriptor.get());
}

void Centre::host_leaves() {
  hear(0);  // what it said last, an abort perhaps, comes first
  fail_init({hocketRemoteError, "rank 0 gave up its init"});
  if (stage_ == Stage::running) send_everyone(CentreLeaves{});
  end();
}

}  // namespace hocket::control
