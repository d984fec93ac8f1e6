// SPDX-License-Identifier: Apache-2.0
#include "collectives/watchdog.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

namespace hocket::test {
namespace {

char message[256] = "watchdog: the test does not end\n";

extern "C" void give_up(int) {
  // Only what a signal handler may do.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message, std::strlen(message));
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

class Listener final : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo& test) override {
    std::snprintf(message, sizeof message, "watchdog: %s.%s does not end within %u s\n", test.test_suite_name(),
                  test.name(), kTestLimitSeconds);
    watch(kTestLimitSeconds);
  }
  void OnTestEnd(const ::testing::TestInfo&) override { ::alarm(0); }
};

// Before main() parses the command line.
[[maybe_unused]] const bool listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace

void watch(unsigned seconds) {
  std::signal(SIGALRM, give_up);
  ::alarm(seconds);
}

}  // namespace hocket::test
