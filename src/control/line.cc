// SPDX-License-Identifier: Apache-2.0
#include "control/line.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "control/allocations.h"
#include "control/process.h"

namespace hocket::control {

Statement state(ControlEvents* events, std::uint64_t sequence) {
  Statement statement;
  if (events == nullptr) return statement;  // between init and its first call
  statement.report = events->report(sequence);
  const std::uint64_t current = statement.report.current_sequence;
  if (current > 0 && current != sequence) statement.last = events->report(current).record;
  return statement;
}

Line::Line(Service& service, int rank, std::vector<Member> members, MessageStream stream, const Credentials& centre)
    : service_(service),
      rank_(rank),
      members_(std::move(members)),
      stream_(std::move(stream)),
      centre_pid_(centre.pid),
      left_(std::make_unique<std::atomic<bool>[]>(members_.size())) {}

void Line::open() {
  auto watch = service_.watch(stream_.fd(), EPOLLIN, [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) {
      stream_.flush();
      if (!stream_.has_unsent()) stream_watch_.listen_to(EPOLLIN);
    }
    hear();
  });
  if (!watch) return fail(watch.error());
  stream_watch_ = std::move(*watch);
  if (centre_pid_ != ::getpid()) centre_process_ = watch_process(centre_pid_);
  if (centre_process_) {
    auto process_watch = service_.watch(centre_process_.get(), EPOLLIN, [this](std::uint32_t) {
      process_watch_.reset();
      hear();  // its last words
      lose_centre();
    });
    if (process_watch) process_watch_ = std::move(*process_watch);
  }
  hear();
}

void Line::send(const Message& message, int descriptor) {
  if (tie_ != Tie::attached) return;
  stream_.send(message, descriptor);
  if (stream_.has_unsent()) stream_watch_.listen_to(EPOLLIN | EPOLLOUT);
}

void Line::hear() {
  if (tie_ != Tie::attached) return;
  stream_.receive();
  while (auto incoming = stream_.next()) {
    handle(*incoming);
    if (tie_ != Tie::attached) return;
  }
  if (stream_.state() != MessageStream::State::open) lose_centre();
}

void Line::handle(MessageStream::Incoming& incoming) {
  Message& message = incoming.message;
  if (const auto* query = std::get_if<Query>(&message)) return send(Answer{query->number, state(events_, query->sequence)});
  if (const auto* left = std::get_if<Left>(&message)) return mark_left(left->rank);
  if (const auto* failure = std::get_if<Failure>(&message)) return fail(failure->error);
  if (const auto* explained = std::get_if<Explained>(&message)) {
    if (events_ != nullptr) events_->stall_explained(explained->sequence, explained->text);
    return;
  }
  if (const auto* request = std::get_if<Fetch>(&message)) return serve_fetch(*request);
  if (auto* reply = std::get_if<Fetched>(&message)) return finish_fetch(*reply, std::move(incoming.descriptor));
  if (std::holds_alternative<CentreLeaves>(message)) {
    mark_left(0);
    return detach();
  }
  log_warn("control: the centre sent rank {} a message (kind {}) that is not for a member", rank_, message.index());
}

void Line::mark_left(int rank) {
  if (rank >= 0 && rank < static_cast<int>(members_.size())) {
    left_[static_cast<std::size_t>(rank)].store(true, std::memory_order_relaxed);
  }
}

bool Line::has_left(int rank) const {
  return rank >= 0 && rank < static_cast<int>(members_.size()) &&
         left_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
}

void Line::detach() {
  tie_ = Tie::detached;
  detached_at_ = Clock::now();
  stream_watch_.reset();
  process_watch_.reset();
  for (auto& [number, on_fetched] : std::exchange(fetches_, {})) {
    on_fetched(hocket::fail(hocketRemoteError, "{} has left, through which memory is passed", members_.front().info.text()));
  }
}

// The connection broke or the process ended, without good-bye: rank 0 is dead, and the centre with it.
void Line::lose_centre() {
  if (tie_ != Tie::attached) return;
  mark_left(0);
  detach();
  fail({hocketRemoteError, members_.front().info.text() + " died"});
}

void Line::fail(const Error& error) {
  if (failure_) return;
  failure_ = error;
  if (events_ != nullptr) events_->failed(error);
}

void Line::start(ControlEvents* events) {
  events_ = events;
  if (failure_) events_->failed(*failure_);
}

void Line::report_stall(std::uint64_t sequence, const std::vector<int>& awaited, int waited_ms) {
  if (tie_ == Tie::detached) {
    // Rank 0 may have served the call before it left: this rank gets a moment to see it.
    const auto when = std::max(Clock::now(), detached_at_ + std::chrono::milliseconds(100));
    lone_inquiry_ = service_.at(when, [this, sequence, awaited] { inquire_alone(sequence, awaited); });
    return;
  }
  Stall stall{sequence, waited_ms, {}};
  stall.awaited.assign(awaited.begin(), awaited.end());
  send(stall);
}

void Line::report_mismatch(std::uint64_t sequence, const Error& fallback) {
  if (tie_ == Tie::detached) return fail(fallback);
  send(Mismatch{sequence, fallback});
}

// Without a centre nobody can be asked, but the dead can be told from the living.
void Line::inquire_alone(std::uint64_t sequence, const std::vector<int>& awaited) {
  std::vector<RankInfo> ranks;
  std::vector<Witness> witnesses(members_.size());
  for (const Member& member : members_) ranks.push_back(member.info);
  witnesses[static_cast<std::size_t>(rank_)].statement = state(events_, sequence);
  std::vector<std::string> unknown;
  for (const int rank : awaited) {
    if (rank < 0 || rank >= static_cast<int>(members_.size()) || rank == rank_) continue;
    const auto index = static_cast<std::size_t>(rank);
    if (has_left(rank)) {
      witnesses[index].presence = Presence::left;
    } else if (is_alive(members_[index]) == Alive::no) {
      witnesses[index].presence = Presence::dead;
      mark_left(rank);
    } else {
      unknown.push_back(ranks[index].text());
      continue;
    }
    const Verdict verdict = judge({rank_, sequence, {rank}, std::nullopt}, ranks, witnesses);
    if (verdict.failure) return fail(*verdict.failure);
  }
  std::string text;
  for (const std::string& name : unknown) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  if (text.empty() || events_ == nullptr || !limit_.passes(sequence)) return;
  events_->stall_explained(sequence, fmt::format("{} cannot be asked because {} has left", text, ranks.front().text()));
}

void Line::fetch(int owner, std::uint64_t allocation, std::uint32_t number, OnFetched on_fetched) {
  if (tie_ == Tie::detached) {
    return on_fetched(
        hocket::fail(hocketRemoteError, "{} has left, through which memory is passed", members_.front().info.text()));
  }
  fetches_[number] = std::move(on_fetched);
  send(Fetch{number, owner, allocation});
}

void Line::serve_fetch(const Fetch& request) {
  UniqueFd memory = look_up_allocation(request.allocation);
  std::string text;
  if (!memory) {
    text = fmt::format("{} has no allocation {} (freed?), or no descriptor to pass it", members_[static_cast<std::size_t>(rank_)].info.text(),
                       request.allocation);
  }
  send(Fetched{request.number, text}, memory.get());
}

void Line::finish_fetch(Fetched& reply, UniqueFd descriptor) {
  const auto found = fetches_.find(reply.number);
  if (found == fetches_.end()) return;
  const OnFetched on_fetched = std::move(found->second);
  fetches_.erase(found);
  if (!reply.text.empty()) return on_fetched(hocket::fail(hocketRemoteError, "{}", reply.text));
  if (!descriptor) return on_fetched(tl::make_unexpected(descriptor_limit_error("mapping the memory of a peer", 1)));
  on_fetched(std::move(descriptor));
}

void Line::leave(bool say_goodbye) {
  events_ = nullptr;
  lone_inquiry_.reset();
  if (say_goodbye) send(Goodbye{});
  if (tie_ == Tie::attached) detach();
}

}  // namespace hocket::control
