// SPDX-License-Identifier: Apache-2.0
// Compiles when the public header is C99 and needs nothing else; the values are part of the ABI.
#include "hocket/hocket.h"

// C99 has no static assertion: an array of negative size is an error.
#define CHECK_VALUE(name, condition) typedef char check_##name[(condition) ? 1 : -1]
CHECK_VALUE(unique_id, sizeof(hocketUniqueId) == 128);
CHECK_VALUE(success, hocketSuccess == 0 && hocketInvalidArgument == 4 && hocketNumResults == 8);
CHECK_VALUE(types, hocketInt8 == 0 && hocketFloat32 == 7 && hocketBfloat16 == 9 && hocketBool == 14 && hocketNumTypes == 15);
CHECK_VALUE(ops, hocketSum == 0 && hocketAvg == 4 && hocketNumOps == 10);

hocketResult_t public_header_c99_use(hocketComm_t comm, const float* send, float* recv, size_t count) {
  hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
  config.channels = 2;
  if (config.size != sizeof config) return hocketInternalError;
  return hocketAllReduce(send, recv, count, hocketFloat, hocketSum, comm, NULL);
}
