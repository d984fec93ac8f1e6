// SPDX-License-Identifier: Apache-2.0
// The handles of this process.
#pragma once

#include "comm/communicator.h"
#include "comm/handle_table.h"
#include "comm/stream.h"

namespace hocket {

using CommunicatorTable = HandleTable<Communicator>;
using StreamTable = HandleTable<Stream>;

CommunicatorTable& communicators();
StreamTable& streams();

}  // namespace hocket
