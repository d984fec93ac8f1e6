// SPDX-License-Identifier: Apache-2.0
// Every setting of the library, declared once: environment variable, default and one sentence of help.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hocket/hocket.h"

namespace hocket {

// X(field, C++ type, environment variable, default, help)
#define HOCKET_FOR_EACH_SETTING(X)                                                                                        \
  X(init_timeout_ms, int, "HOCKET_INIT_TIMEOUT_MS", 60000, "how long init waits for missing ranks, ms; 0: for ever")      \
  X(timeout_ms, int, "HOCKET_TIMEOUT_MS", 0, "how long a call waits for its peers, ms; 0: for ever, with a log line")     \
  X(stall_ms, int, "HOCKET_STALL_MS", 250, "after how long a wait asks its peers what they are doing, ms")                \
  X(deterministic, int, "HOCKET_DETERMINISTIC", 0, "1: same bits for any size, algorithm, channels and slots")            \
  X(channels, int, "HOCKET_CHANNELS", 0, "number of channels, at most 8; 0: the planner's choice")                        \
  X(slot_bytes, int, "HOCKET_SLOT_BYTES", 0, "bytes of one slot of a connection; 0: from the shared-memory budget")       \
  X(shm_bytes, int, "HOCKET_SHM_BYTES", 8 << 20, "budget of shared memory per rank for connections, bytes")               \
  X(spin_us, int, "HOCKET_SPIN_US", 10, "how long a wait spins before it yields, us; 0 where ranks outnumber CPUs")       \
  X(sleep_after_us, int, "HOCKET_SLEEP_AFTER_US", 1000, "how long a wait spins and yields before it sleeps, us")

struct Settings {
#define HOCKET_SETTING_FIELD(field, type, env, default_value, help) type field = default_value;
  HOCKET_FOR_EACH_SETTING(HOCKET_SETTING_FIELD)
#undef HOCKET_SETTING_FIELD
  std::string algorithm;  // HOCKET_ALGORITHM: forces an algorithm by name where it can serve the call
  std::string name;       // of the communicator, for messages

  // "name=value" lines of what must be equal on every rank.
  std::string shared_text() const;
};

// Defaults, then the environment, then `config` (may be null). Malformed values are errors that name the variable; unknown
// HOCKET_* variables get a warning with the nearest known name, once per process.
Result<Settings> read_settings(const hocketConfig_t* config);

}  // namespace hocket
