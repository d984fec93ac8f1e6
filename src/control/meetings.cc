// SPDX-License-Identifier: Apache-2.0
#include "control/meetings.h"

#include <array>
#include <utility>
#include <vector>

#include "control/auth.h"

namespace hocket::control {

Result<Centre*> Meetings::open(ServiceUse use, MeetingPlace& place) {
  std::shared_ptr<Door> door = process_door_.lock();
  if (door == nullptr) {
    std::array<std::uint8_t, 12> random;
    fill_random(random);
    auto opened = Door::open(service_, "hocket-" + to_hex(random));
    if (!opened) return tl::make_unexpected(std::move(opened).error());
    door = std::move(*opened);
    process_door_ = door;
  }
  place.name = door->name();
  return add(std::move(use), place, std::move(door));
}

Result<Centre*> Meetings::open_at_its_name(ServiceUse use, const MeetingPlace& place) {
  auto door = Door::open(service_, place.name);
  if (!door) return tl::make_unexpected(std::move(door).error());
  return add(std::move(use), place, std::move(*door));
}

Result<Centre*> Meetings::add(ServiceUse use, const MeetingPlace& place, std::shared_ptr<Door> door) {
  auto [entry, added] = centres_.emplace(place.meeting, nullptr);
  if (!added) return fail(hocketInvalidArgument, "this process already holds a meeting with this id; use each id once");
  entry->second = std::make_unique<Centre>(std::move(use), place, std::move(door));
  return entry->second.get();
}

Centre* Meetings::find(const MeetingId& meeting) {
  const auto found = centres_.find(meeting);
  return found == centres_.end() ? nullptr : found->second.get();
}

void Meetings::end(Centre& centre) {
  const auto found = centres_.find(centre.place().meeting);
  if (found == centres_.end() || found->second.get() != &centre) return;
  service_.bury(std::move(found->second));
  centres_.erase(found);
}

void Meetings::fail_all_at(const Door& door, const Error& error) {
  std::vector<Centre*> here;
  for (const auto& [id, centre] : centres_) {
    if (centre->gathers_at(door) && !centre->is_empty()) here.push_back(centre.get());
  }
  for (Centre* centre : here) centre->fail_init(error);  // each is buried, not deleted: the others stay valid
}

}  // namespace hocket::control
