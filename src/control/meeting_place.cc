// SPDX-License-Identifier: Apache-2.0
#include "control/meeting_place.h"

#include <algorithm>
#include <cstring>

#include "control/auth.h"

namespace hocket::control {
namespace {

// Plain bytes on both sides of a process border of one machine and one version of the format.
struct Layout {
  char magic[4];
  std::uint8_t format;
  std::uint8_t origin;
  std::uint8_t name_bytes;
  std::uint8_t zero;
  MeetingId meeting;
  Secret secret;
  char name[kMaxPlaceNameBytes + 1];
  std::array<std::uint8_t, 8> checksum;  // of everything before: tells damage from a wrong secret
};
static_assert(sizeof(Layout) == HOCKET_UNIQUE_ID_BYTES);

constexpr char kMagic[4] = {'H', 'O', 'C', 'K'};
constexpr std::uint8_t kFormat = 1;

std::array<std::uint8_t, 8> checksum(const Layout& layout) {
  const std::string content(reinterpret_cast<const char*>(&layout), offsetof(Layout, checksum));
  std::array<std::uint8_t, 16> whole;
  derive(whole, "hocket id", {content});
  std::array<std::uint8_t, 8> half;
  std::copy_n(whole.begin(), half.size(), half.begin());
  return half;
}

}  // namespace

hocketUniqueId encode(const MeetingPlace& place) {
  HOCKET_DCHECK(place.name.size() <= kMaxPlaceNameBytes);
  Layout layout{};
  std::memcpy(layout.magic, kMagic, sizeof(kMagic));
  layout.format = kFormat;
  layout.origin = static_cast<std::uint8_t>(place.origin);
  layout.name_bytes = static_cast<std::uint8_t>(place.name.size());
  layout.meeting = place.meeting;
  layout.secret = place.secret;
  std::memcpy(layout.name, place.name.data(), place.name.size());
  layout.checksum = checksum(layout);
  hocketUniqueId id;
  std::memcpy(id.internal, &layout, sizeof(layout));
  return id;
}

Result<MeetingPlace> decode(const hocketUniqueId& id) {
  Layout layout;
  std::memcpy(&layout, id.internal, sizeof(layout));
  if (std::memcmp(layout.magic, kMagic, sizeof(kMagic)) != 0) {
    return fail(hocketInvalidArgument,
                "unique id: these are not bytes that hocketGetUniqueId made; pass all {} bytes that it stored, unchanged",
                sizeof(layout));
  }
  if (layout.format != kFormat) {
    return fail(hocketInvalidArgument,
                "unique id: it has format {}, Hocket {}.{}.{} knows format {}; use the same version on all ranks",
                layout.format, HOCKET_MAJOR, HOCKET_MINOR, HOCKET_PATCH, kFormat);
  }
  if (layout.checksum != checksum(layout) || layout.origin > 1 || layout.name_bytes == 0 ||
      layout.name_bytes > kMaxPlaceNameBytes) {
    return fail(hocketInvalidArgument,
                "unique id: it is damaged (its checksum is wrong); pass all {} bytes that hocketGetUniqueId stored, unchanged",
                sizeof(layout));
  }
  MeetingPlace place;
  place.origin = static_cast<MeetingPlace::Origin>(layout.origin);
  place.meeting = layout.meeting;
  place.secret = layout.secret;
  place.name.assign(layout.name, layout.name_bytes);
  return place;
}

}  // namespace hocket::control
