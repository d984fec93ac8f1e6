// SPDX-License-Identifier: Apache-2.0
#include "comm/registry.h"

#include <pthread.h>

namespace hocket {
namespace {

// Never destroyed: threads of the application may still call while the process ends.
template <class Table>
Table& make_table() {
  static Table* const table = new Table;
  return *table;
}

// A forked child has neither the threads nor the place in the protocol: its handles are refused.
[[maybe_unused]] const int fork_handler = ::pthread_atfork(nullptr, nullptr, [] {
  communicators().invalidate_all();
  streams().invalidate_all();
});

}  // namespace

CommunicatorTable& communicators() { return make_table<CommunicatorTable>(); }
StreamTable& streams() { return make_table<StreamTable>(); }

}  // namespace hocket
