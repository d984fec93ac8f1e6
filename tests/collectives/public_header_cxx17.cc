// SPDX-License-Identifier: Apache-2.0
// Compiles when the public header is C++17 and needs nothing else.
#include "hocket/hocket.h"

static_assert(__cplusplus < 202002L, "this file checks the header in C++17");
static_assert(noexcept(hocketGroupStart()), "no function throws");
static_assert(hocketNumTypes == 15 && hocketNumOps == 10 && sizeof(hocketUniqueId) == HOCKET_UNIQUE_ID_BYTES);

hocketResult_t public_header_cxx17_use(hocketComm_t* comms, int n_ranks) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.deterministic = 1;
  return hocketCommInitAllConfig(comms, n_ranks, nullptr, &config);
}
