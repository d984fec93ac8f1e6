// SPDX-License-Identifier: Apache-2.0
#include "base/params.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace hocket {
namespace {

constexpr std::string_view kNames[] = {
#define HOCKET_SETTING_NAME(field, type, env, default_value, help) env,
    HOCKET_FOR_EACH_SETTING(HOCKET_SETTING_NAME)
#undef HOCKET_SETTING_NAME
    // Read where they are used, before there is a communicator.
    "HOCKET_ALGORITHM", "HOCKET_LOG", "HOCKET_RANK", "HOCKET_NRANKS", "HOCKET_LOCAL_RANK", "HOCKET_JOB", "HOCKET_ROOT",
    "HOCKET_SECRET"};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitution, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

void warn_about_unknown_names() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    // Names with a second word of another component (bench, peers, tests) are theirs.
    if (!name.starts_with("HOCKET_") || name.starts_with("HOCKET_PEERS") || name.starts_with("HOCKET_TEST")) continue;
    if (std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames)) continue;
    const auto* nearest = std::min_element(std::begin(kNames), std::end(kNames), [&](auto a, auto b) {
      return edit_distance(name, a) < edit_distance(name, b);
    });
    log_warn("settings: {} is not a setting of this version; did you mean {}?", name, *nearest);
  }
}

Status read_int(const char* name, int& value) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return {};
  const char* end = text + std::strlen(text);
  int parsed = 0;
  const auto [rest, error] = std::from_chars(text, end, parsed);
  if (error != std::errc() || rest != end || parsed < 0)
    return fail(hocketInvalidArgument, "settings: {}=\"{}\" is not a number >= 0", name, text);
  value = parsed;
  return {};
}

// Fields of a caller that was compiled against a shorter struct stay undefined.
hocketConfig_t complete(const hocketConfig_t& given) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  std::memcpy(&config, &given, std::min(given.size, sizeof config));
  return config;
}

void override_int(int& value, int given) {
  if (given != HOCKET_CONFIG_UNDEF_INT) value = given;
}

Status apply_config(const hocketConfig_t& given, Settings& settings) {
  if (given.magic != HOCKET_CONFIG_MAGIC || given.size < offsetof(hocketConfig_t, blocking))
    return fail(hocketInvalidArgument, "config: not initialised; start from HOCKET_CONFIG_INITIALIZER");
  const hocketConfig_t config = complete(given);
  if (config.blocking == 0)
    return fail(hocketInvalidUsage, "config: blocking = 0 is not in this version; leave it at 1 and use host streams");
  override_int(settings.init_timeout_ms, config.initTimeoutMs);
  override_int(settings.timeout_ms, config.timeoutMs);
  override_int(settings.deterministic, config.deterministic);
  override_int(settings.channels, config.channels);
  override_int(settings.slot_bytes, config.slotBytes);
  if (config.algorithm != nullptr) settings.algorithm = config.algorithm;
  if (config.commName != nullptr) settings.name = config.commName;
  return {};
}

}  // namespace

std::string Settings::shared_text() const {
  return fmt::format("deterministic={}\nchannels={}\nslot_bytes={}\nshm_bytes={}\nalgorithm={}\n", deterministic, channels,
                     slot_bytes, shm_bytes, algorithm);
}

Result<Settings> read_settings(const hocketConfig_t* config) {
  static std::once_flag warned;
  std::call_once(warned, warn_about_unknown_names);
  Settings settings;
#define HOCKET_READ_SETTING(field, type, env, default_value, help) HOCKET_TRY(read_int(env, settings.field));
  HOCKET_FOR_EACH_SETTING(HOCKET_READ_SETTING)
#undef HOCKET_READ_SETTING
  if (const char* algorithm = std::getenv("HOCKET_ALGORITHM")) settings.algorithm = algorithm;
  if (config != nullptr) HOCKET_TRY(apply_config(*config, settings));
  if (settings.init_timeout_ms < 0 || settings.timeout_ms < 0)
    return fail(hocketInvalidArgument, "config: initTimeoutMs = {}, timeoutMs = {}; at least 0, which is for ever",
                settings.init_timeout_ms, settings.timeout_ms);
  if (settings.channels < 0 || settings.channels > 8)
    return fail(hocketInvalidArgument, "settings: channels = {}; choose 1 to 8, or 0 for the planner's choice",
                settings.channels);
  if (settings.slot_bytes != 0 && (settings.slot_bytes < 256 || settings.slot_bytes > (64 << 20)))
    return fail(hocketInvalidArgument, "settings: slot bytes = {}; choose 256 to 67108864, or 0", settings.slot_bytes);
  if (settings.shm_bytes < (64 << 10))
    return fail(hocketInvalidArgument, "settings: HOCKET_SHM_BYTES = {}; at least 65536", settings.shm_bytes);
  return settings;
}

}  // namespace hocket
