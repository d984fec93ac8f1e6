// SPDX-License-Identifier: Apache-2.0
// Groups and the way of one call: at once, into the group of this thread, or onto a stream.
#pragma once

#include "comm/registry.h"
#include "enqueue/request.h"

namespace hocket {

// Validates and runs, collects or enqueues `request` on the communicator of `handle`.
Status submit(const void* handle, const void* stream, Request& request);

void group_start();
Status group_end();

}  // namespace hocket
