// SPDX-License-Identifier: Apache-2.0
#include "plan/check_events.h"

namespace hocket {

EventId EventGraph::add(std::span<const EventId> causes) {
  first_cause_.push_back(causes_.size());
  for (EventId cause : causes) {
    if (cause != kNoEvent) causes_.push_back(cause);
  }
  seen_.push_back(0);
  return static_cast<EventId>(first_cause_.size()) - 1;
}

void EventGraph::clear() {
  causes_.clear();
  first_cause_.clear();
  seen_.clear();
  search_ = 0;
}

std::span<const EventId> EventGraph::causes(EventId event) const {
  const auto e = static_cast<std::size_t>(event);
  const std::size_t end = e + 1 < first_cause_.size() ? first_cause_[e + 1] : causes_.size();
  return std::span(causes_).subspan(first_cause_[e], end - first_cause_[e]);
}

// Backwards from `later`, the latest cause first; nothing older than `earlier` can lead to it.
bool EventGraph::happens_before(EventId earlier, EventId later) {
  if (earlier == kNoEvent || earlier == later) return true;
  ++search_;
  stack_.assign(1, later);
  while (!stack_.empty()) {
    const EventId event = stack_.back();
    stack_.pop_back();
    for (EventId cause : causes(event)) {
      if (cause == earlier) return true;
      int& seen = seen_[static_cast<std::size_t>(cause)];
      if (cause < earlier || seen == search_) continue;
      seen = search_;
      stack_.push_back(cause);
    }
  }
  return false;
}

std::vector<char> EventGraph::ancestors(std::span<const EventId> ends) const {
  std::vector<char> reached(first_cause_.size(), 0);
  for (EventId end : ends) {
    if (end != kNoEvent) reached[static_cast<std::size_t>(end)] = 1;
  }
  // Ids grow along every path: one sweep from the latest event back reaches all.
  for (auto event = static_cast<EventId>(reached.size()) - 1; event >= 0; --event) {
    if (!reached[static_cast<std::size_t>(event)]) continue;
    for (EventId cause : causes(event)) reached[static_cast<std::size_t>(cause)] = 1;
  }
  return reached;
}

}  // namespace hocket
