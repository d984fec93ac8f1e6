// SPDX-License-Identifier: Apache-2.0
// The meetings of this process, by their id, and the door at which newcomers knock. Lives on the control thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "control/centre.h"
#include "control/door.h"
#include "control/meeting_place.h"
#include "control/service.h"

namespace hocket::control {

class Meetings {
 public:
  explicit Meetings(Service& service) : service_(service) {}

  // A meeting at the door of this process, which has a random name and serves all of them. `place.name` is filled in.
  Result<Centre*> open(ServiceUse use, MeetingPlace& place);
  // A meeting at a door of its own, under the name that `place` already has.
  Result<Centre*> open_at_its_name(ServiceUse use, const MeetingPlace& place);

  Centre* find(const MeetingId& meeting);  // nullptr: none of this process
  void end(Centre& centre);                // destroyed after the current round
  void fail_all_at(const Door& door, const Error& error);  // those to which someone has come

 private:
  Result<Centre*> add(ServiceUse use, const MeetingPlace& place, std::shared_ptr<Door> door);

  Service& service_;
  std::weak_ptr<Door> process_door_;
  std::map<MeetingId, std::unique_ptr<Centre>> centres_;
};

}  // namespace hocket::control
