// SPDX-License-Identifier: Apache-2.0
// Nothing hangs: a test (or a child process of one) that is not over in time ends its process with a message.
#pragma once

namespace hocket::test {

// Of one test; tests in the long binary set their own with watch().
inline constexpr unsigned kTestLimitSeconds = 150;

// Aborts this process with a message unless it ends, or calls this again, within `seconds`. Not inherited by fork().
void watch(unsigned seconds);

}  // namespace hocket::test
