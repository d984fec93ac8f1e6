// SPDX-License-Identifier: Apache-2.0
#include "control/inquiry_desk.h"

#include <algorithm>
#include <utility>

namespace hocket::control {
namespace {

// Who has not answered by then "does not answer". A rank answers from its control thread, which is never busy for long.
constexpr std::chrono::milliseconds kAnswerTime{300};
// A rank that has just left may have served the call before: the waiting rank gets this long to see it.
constexpr std::chrono::milliseconds kSettleTime{100};

// The earliest collective call, at most `sequence`, that a rank is in.
std::uint64_t earliest_call(std::uint64_t sequence, const std::vector<Witness>& witnesses) {
  for (const Witness& witness : witnesses) {
    if (!witness.statement) continue;
    const CallReport& report = witness.statement->report;
    if (report.in_call && !report.point_to_point && report.current_sequence != 0)
      sequence = std::min(sequence, report.current_sequence);
  }
  return sequence;
}

}  // namespace

InquiryDesk::InquiryDesk(Service& service, Floor& floor, std::vector<RankInfo> ranks)
    : service_(service),
      floor_(floor),
      ranks_(std::move(ranks)),
      presence_(ranks_.size(), Presence::here),
      gone_since_(ranks_.size()),
      limits_(ranks_.size()) {}

void InquiryDesk::question(Question question) {
  if (!inquiry_) return begin(std::move(question));
  // After a mismatch was seen the ranks are asked anew: earlier answers may be from before one of them came.
  const bool may_share = !question.fallback || !inquiry_->asked;
  if (may_share && inquiry_->questions.front().sequence == question.sequence) {
    inquiry_->questions.push_back(std::move(question));
    return;
  }
  // A newer question of the same rank replaces what it asked before.
  std::erase_if(queue_, [&](const Question& other) { return other.reporter == question.reporter && !other.fallback; });
  queue_.push_back(std::move(question));
}

void InquiryDesk::begin(Question question) {
  auto settled = Clock::now();
  for (const std::int32_t rank : question.awaited) {
    if (rank < 0 || rank >= static_cast<int>(ranks_.size()) || presence(rank) == Presence::here) continue;
    settled = std::max(settled, gone_since_[static_cast<std::size_t>(rank)] + kSettleTime);
  }
  inquiry_ = std::make_unique<Inquiry>();
  Inquiry& inquiry = *inquiry_;
  inquiry.number = next_number_++;
  inquiry.questions.push_back(std::move(question));
  inquiry.witnesses.resize(ranks_.size());
  inquiry.pending.resize(ranks_.size());
  if (settled <= Clock::now()) return ask_everyone();
  inquiry.timer = service_.at(settled, [this] { ask_everyone(); });
}

void InquiryDesk::ask_everyone() {
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    inquiry_->witnesses[rank].presence = presence_[rank];
    inquiry_->pending[rank] = presence_[rank] == Presence::here;
  }
  const Query query{inquiry_->number, inquiry_->questions.front().sequence};
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (inquiry_->pending[rank]) floor_.ask(static_cast<int>(rank), query);
  }
  inquiry_->asked = true;
  inquiry_->timer = service_.after(kAnswerTime, [this] { finish(); });
  finish_if_complete();
}

void InquiryDesk::answer(int rank, const Answer& answer) {
  if (!inquiry_ || answer.number != inquiry_->number) return;  // late
  const auto index = static_cast<std::size_t>(rank);
  inquiry_->witnesses[index].statement = answer.statement;
  inquiry_->pending[index] = false;
  finish_if_complete();
}

void InquiryDesk::gone(int rank, Presence how) {
  const auto index = static_cast<std::size_t>(rank);
  if (presence_[index] != Presence::here) return;
  presence_[index] = how;
  gone_since_[index] = Clock::now();
  if (!inquiry_) return;
  inquiry_->witnesses[index].presence = how;
  inquiry_->pending[index] = false;
  finish_if_complete();
}

void InquiryDesk::finish_if_complete() {
  if (inquiry_->asked && std::find(inquiry_->pending.begin(), inquiry_->pending.end(), true) == inquiry_->pending.end()) finish();
}

void InquiryDesk::finish() {
  const std::unique_ptr<Inquiry> done = std::move(inquiry_);
  for (const Question& question : done->questions) deliver(question, done->witnesses);
  if (queue_.empty() || inquiry_) return;
  Question next = std::move(queue_.front());
  queue_.pop_front();
  begin(std::move(next));
}

void InquiryDesk::deliver(const Question& question, const std::vector<Witness>& witnesses) {
  const Verdict verdict = judge(question, ranks_, witnesses);
  if (verdict.failure && question.fallback && verdict.failure->text == question.fallback->text) {
    // The difference may lie in an earlier call that the reporter has passed and another rank is still in.
    if (const std::uint64_t earlier = earliest_call(question.sequence, witnesses); earlier < question.sequence) {
      queue_.push_front({question.reporter, earlier, {}, question.fallback});
      return;
    }
  }
  if (verdict.failure) {
    floor_.fail_everyone(*verdict.failure);
  } else if (!verdict.explanation.empty() && limits_[static_cast<std::size_t>(question.reporter)].passes(question.sequence)) {
    floor_.explain(question.reporter, {question.sequence, verdict.explanation});
  }
}

}  // namespace hocket::control
