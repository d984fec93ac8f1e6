// SPDX-License-Identifier: Apache-2.0
// What happened in a symbolic run, and which of it is ordered: an event is one step in one round. It follows the event
// before it in its lane and those that filled the slots it takes. That a slot had to be free orders nothing here: a plan
// must not lean on the number of slots.
#pragma once

#include <span>
#include <vector>

namespace hocket {

using EventId = int;
inline constexpr EventId kNoEvent = -1;

class EventGraph {
 public:
  // `causes` may hold kNoEvent. Causes exist already, so ids grow along every path.
  EventId add(std::span<const EventId> causes);
  void clear();

  bool happens_before(EventId earlier, EventId later);
  // Whether each event happens before one of `ends` or is one of them, by id.
  std::vector<char> ancestors(std::span<const EventId> ends) const;

 private:
  std::span<const EventId> causes(EventId event) const;

  std::vector<EventId> causes_;
  std::vector<std::size_t> first_cause_;  // of each event, in causes_
  std::vector<int> seen_;                 // by event: the search that saw it last
  int search_ = 0;
  std::vector<EventId> stack_;
};

}  // namespace hocket
