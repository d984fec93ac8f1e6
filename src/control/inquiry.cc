// SPDX-License-Identifier: Apache-2.0
#include "control/inquiry.h"

#include <algorithm>
#include <utility>

#include "plan/plan.h"

namespace hocket::control {
namespace {

constexpr std::size_t kMaxNamed = 8;

std::string numbered(std::uint64_t sequence, const std::optional<CallRecord>& record) {
  return record ? fmt::format("call {} {}", sequence, call_text(*record)) : fmt::format("call {}", sequence);
}

const std::optional<CallRecord>& nothing() {
  static const std::optional<CallRecord> none;
  return none;
}

const std::optional<CallRecord>& record_at(const Witness& witness, std::uint64_t sequence) {
  if (!witness.statement) return nothing();
  const auto& record = witness.statement->report.record;
  return record && record->sequence == sequence ? record : nothing();
}

bool is_point_to_point(const CallRecord& record) {
  return record.collective == static_cast<std::uint8_t>(Collective::send) ||
         record.collective == static_cast<std::uint8_t>(Collective::recv);
}

// The ranks that made one and the same call.
struct Party {
  CallRecord record;
  std::vector<int> ranks;
};

// What each rank called at the sequence, the largest party first; of equal ones the one with the lowest rank.
std::vector<Party> parties_at(std::uint64_t sequence, const std::vector<Witness>& witnesses) {
  std::vector<Party> parties;
  for (std::size_t rank = 0; rank < witnesses.size(); ++rank) {
    const auto& record = record_at(witnesses[rank], sequence);
    if (!record || is_point_to_point(*record)) continue;
    auto party = std::find_if(parties.begin(), parties.end(), [&](const Party& p) { return p.record == *record; });
    if (party == parties.end()) party = parties.insert(parties.end(), Party{*record, {}});
    party->ranks.push_back(static_cast<int>(rank));
  }
  std::stable_sort(parties.begin(), parties.end(),
                   [](const Party& a, const Party& b) { return a.ranks.size() > b.ranks.size(); });
  return parties;
}

Error mismatch(std::uint64_t sequence, const std::vector<Party>& parties) {
  std::string text = fmt::format("call {}: ", sequence);
  for (std::size_t i = 0; i < parties.size() && i < kMaxNamed; ++i) {
    text += fmt::format("{}{} called {}", i == 0 ? "" : ", ", ranks_text(parties[i].ranks), call_text(parties[i].record));
  }
  if (parties.size() > kMaxNamed) text += fmt::format(", and {} more calls differ", parties.size() - kMaxNamed);
  return {hocketErrorMismatch, text + "; every rank makes the same calls in the same order"};
}

bool waits_still(const Question& question, const std::vector<Witness>& witnesses) {
  const auto& statement = witnesses[static_cast<std::size_t>(question.reporter)].statement;
  if (!statement || !statement->report.in_call) return false;
  return question.sequence == 0 || statement->report.current_sequence == question.sequence;
}

Error gone(const Question& question, const RankInfo& rank, Presence how, const std::vector<Witness>& witnesses) {
  const std::string call =
      question.sequence == 0
          ? "the point-to-point call that waits for it"
          : numbered(question.sequence, record_at(witnesses[static_cast<std::size_t>(question.reporter)], question.sequence));
  return {hocketRemoteError, fmt::format("{} {}; {} cannot complete", rank.text(),
                                         how == Presence::dead ? "died" : "has destroyed its communicator", call)};
}

// "is in call 6 AllReduce(...)", "is not in a call, its last was call 6 ..."
std::string whereabouts(const Statement& statement, const std::optional<CallRecord>& current) {
  const CallReport& report = statement.report;
  const bool called = report.current_sequence > 0;
  if (!report.in_call) {
    return called ? "is not in a call, its last was " + numbered(report.current_sequence, current)
                  : "is not in a call and has made none";
  }
  if (report.point_to_point) {
    return called ? "is in a point-to-point call after " + numbered(report.current_sequence, current)
                  : "is in a point-to-point call";
  }
  return "is in " + numbered(report.current_sequence, current);
}

std::string explain(const RankInfo& rank, std::uint64_t sequence, const Witness& witness) {
  if (!witness.statement) return rank.text() + " does not answer (stopped?)";
  const Statement& statement = *witness.statement;
  const std::uint64_t current = statement.report.current_sequence;
  if (sequence == 0) return fmt::format("{} {}", rank.text(), whereabouts(statement, statement.last));
  if (current < sequence) {
    return fmt::format("{} has not come to call {}: it {}", rank.text(), sequence, whereabouts(statement, statement.last));
  }
  if (current > sequence) return fmt::format("{} has passed call {}: it {}", rank.text(), sequence, whereabouts(statement, statement.last));
  if (statement.report.in_call && !statement.report.point_to_point) return rank.text() + " is in the same call";
  return fmt::format("{} has done its part of call {}", rank.text(), sequence);
}

}  // namespace

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += ',';
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? ',' : '-') + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

Verdict judge(const Question& question, const std::vector<RankInfo>& ranks, const std::vector<Witness>& witnesses) {
  if (question.sequence > 0) {
    const std::vector<Party> parties = parties_at(question.sequence, witnesses);
    if (parties.size() > 1) return {mismatch(question.sequence, parties), {}};
  }
  if (question.fallback) return {question.fallback, {}};
  if (!waits_still(question, witnesses)) return {};

  std::vector<std::int32_t> awaited = question.awaited;
  if (awaited.empty()) {
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
      if (rank != question.reporter) awaited.push_back(rank);
    }
  }
  std::vector<std::string> reasons;
  for (const std::int32_t rank : awaited) {
    if (rank < 0 || rank >= static_cast<int>(ranks.size())) continue;
    const auto index = static_cast<std::size_t>(rank);
    const Witness& witness = witnesses[index];
    if (witness.presence != Presence::here) return {gone(question, ranks[index], witness.presence, witnesses), {}};
    reasons.push_back(explain(ranks[index], question.sequence, witness));
  }
  Verdict verdict;
  for (std::size_t i = 0; i < reasons.size() && i < kMaxNamed; ++i) verdict.explanation += (i == 0 ? "" : "; ") + reasons[i];
  if (reasons.size() > kMaxNamed) verdict.explanation += fmt::format("; and {} more", reasons.size() - kMaxNamed);
  return verdict;
}

}  // namespace hocket::control
