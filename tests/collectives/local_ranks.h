// SPDX-License-Identifier: Apache-2.0
// Runs a function on every rank of a communicator: ranks are threads of this process, or processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collectives/watchdog.h"
#include "hocket/hocket.h"

namespace hocket::test {

using namespace std::chrono_literals;

// std::source_location, which clang 14 does not have.
struct CallSite {
  const char* file;
  int line;
  static CallSite current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

// Expects success; a failure shows the library's own sentence and the caller's line.
inline bool ok(hocketResult_t result, CallSite at = CallSite::current()) {
  if (result == hocketSuccess) return true;
  ADD_FAILURE_AT(at.file, at.line)
      << hocketGetErrorString(result) << ": " << hocketGetLastError(nullptr);
  return false;
}

// Expects `code` and a sentence that holds `word`.
inline void refused(hocketResult_t result, hocketResult_t code, const std::string& word = "",
                    CallSite at = CallSite::current()) {
  const std::string text = hocketGetLastError(nullptr);
  if (result == code && !text.empty() && text.find(word) != std::string::npos) return;
  ADD_FAILURE_AT(at.file, at.line)
      << "got " << hocketGetErrorString(result) << ", wanted " << hocketGetErrorString(code) << " with \"" << word
      << "\" in the sentence: " << text;
}

// Defaults, but a call that hangs becomes an error that says who waits for whom.
inline hocketConfig_t config() {
  hocketConfig_t defaults = HOCKET_CONFIG_INITIALIZER;
  defaults.timeoutMs = 30000;
  return defaults;
}

// For cases that are drawn: the seed is printed, and HOCKET_TEST_SEED repeats a run.
inline std::uint64_t draw_seed() {
  const char* given = std::getenv("HOCKET_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "[   seed   ] HOCKET_TEST_SEED=" << seed << std::endl;
  return seed;
}

template <class Condition>
bool wait_until(Condition condition, std::chrono::milliseconds limit = 20s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// All ranks of one communicator, in this process.
class LocalRanks {
 public:
  explicit LocalRanks(int n) : LocalRanks(n, config()) {}
  LocalRanks(int n, hocketConfig_t settings) : comms_(static_cast<std::size_t>(n)) {
    if (!ok(hocketCommInitAllConfig(comms_.data(), n, nullptr, &settings))) comms_.clear();
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;
  ~LocalRanks() {
    for (const hocketComm_t comm : comms_)
      if (comm != nullptr) ok(hocketCommDestroy(comm));
  }

  int n() const { return static_cast<int>(comms_.size()); }
  hocketComm_t operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }
  // The test has ended this rank itself.
  void forget(int rank) { comms_[static_cast<std::size_t>(rank)] = nullptr; }

  // body(rank, communicator) on one thread per rank.
  template <class Body>
  void run(Body&& body) const {
    std::vector<std::thread> threads;
    threads.reserve(comms_.size());
    for (int rank = 0; rank < n(); ++rank) threads.emplace_back([&, rank] { body(rank, (*this)[rank]); });
    for (std::thread& thread : threads) thread.join();
  }

 private:
  std::vector<hocketComm_t> comms_;
};

// Runs `body` in a child process; the parent's watchdog does not reach it, so it has one of its own.
template <class Body>
pid_t start_child(Body&& body, unsigned limit_seconds = 60) {
  std::fflush(nullptr);
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  watch(limit_seconds);
  body();
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

// Waits for the child's end and expects that it saw no failure.
inline void expect_child_well(pid_t pid, CallSite at = CallSite::current()) {
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
    ADD_FAILURE_AT(at.file, at.line) << "child process failed, wait status " << status;
}

// body(rank, communicator) in `n` processes; the id that rank 0 makes goes to the others through a pipe.
template <class Body>
void run_processes(int n, hocketConfig_t settings, Body&& body) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(::pipe(ends), 0);
  std::vector<pid_t> children;
  for (int rank = 0; rank < n; ++rank) {
    children.push_back(start_child([&] {
      hocketUniqueId id;
      if (rank == 0) {
        ASSERT_TRUE(ok(hocketGetUniqueId(&id)));
        for (int other = 1; other < n; ++other)
          ASSERT_EQ(::write(ends[1], &id, sizeof id), static_cast<ssize_t>(sizeof id));
      } else {
        ASSERT_EQ(::read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
      }
      hocketComm_t comm = nullptr;
      ASSERT_TRUE(ok(hocketCommInitRankConfig(&comm, n, id, rank, &settings)));
      body(rank, comm);
      ok(hocketCommDestroy(comm));
    }));
  }
  ::close(ends[1]);
  ::close(ends[0]);
  for (const pid_t child : children) expect_child_well(child);
}

}  // namespace hocket::test
