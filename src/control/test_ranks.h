// SPDX-License-Identifier: Apache-2.0
// For the tests here: ranks that are processes, a place where they meet outside the control plane, and a communicator that
// only records.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control/control.h"

namespace hocket::test {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

template <class Condition>
bool wait_until(Condition condition, std::chrono::milliseconds limit = 10s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Memory that all processes of a test share.
struct Board {
  std::atomic<bool> id_there{false};
  hocketUniqueId id{};
  std::array<std::atomic<std::int64_t>, 16> value{};

  void publish(const hocketUniqueId& made) {
    id = made;
    id_there.store(true, std::memory_order_release);
  }
  hocketUniqueId wait_for_id() {
    EXPECT_TRUE(wait_until([&] { return id_there.load(std::memory_order_acquire); }));
    return id;
  }
};

class SharedBoard {
 public:
  SharedBoard()
      : board_(new (::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {}
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  Board* operator->() const { return board_; }
  Board& operator*() const { return *board_; }

 private:
  Board* const board_;
};

// Child processes; killed when the test ends without having waited for them.
class Children {
 public:
  ~Children() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  pid_t start(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      body();
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    pids_.push_back(pid);
    return pid;
  }
  // Every child that is left ends by itself, without failures.
  void expect_all_well(std::chrono::milliseconds limit = 30s) {
    const auto deadline = Clock::now() + limit;
    for (const pid_t pid : std::exchange(pids_, {})) {
      int status = -1;
      while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (Clock::now() > deadline) {
          ADD_FAILURE() << "process " << pid << " does not end";
          ::kill(pid, SIGKILL);
          ::waitpid(pid, &status, 0);
          break;
        }
        std::this_thread::sleep_for(1ms);
      }
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "process " << pid << " failed, status " << status;
    }
  }
  void kill(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    std::erase(pids_, pid);
  }

 private:
  std::vector<pid_t> pids_;
};

// Rank `rank` of `n_ranks`; rank 0 makes the id.
inline Result<std::unique_ptr<ControlLink>> join_by_board(Board& board, int n_ranks, int rank, JoinOptions options = {}) {
  if (rank == 0) {
    const auto id = make_unique_id();
    if (!id) return tl::make_unexpected(id.error());
    board.publish(*id);
  }
  options.n_ranks = n_ranks;
  options.rank = rank;
  options.id = board.wait_for_id();
  return join(options);
}

// A communicator that records what it is told and answers what the test says.
class Recorder final : public ControlEvents {
 public:
  CallReport report(std::uint64_t sequence) override {
    const std::lock_guard lock(mutex_);
    CallReport answer = now_;
    for (const CallRecord& record : history_) {
      if (record.sequence == sequence) answer.record = record;
    }
    return answer;
  }
  void failed(const Error& error) override {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = error;
      failed_at_ = Clock::now();
    }
    changed_.notify_all();
  }
  void stall_explained(std::uint64_t sequence, const std::string& text) override {
    const std::lock_guard lock(mutex_);
    explained_sequence_ = sequence;
    explanation_ = text;
    ++explanations_;
    changed_.notify_all();
  }

  void enter(const CallRecord& record) {
    const std::lock_guard lock(mutex_);
    history_.push_back(record);
    now_.current_sequence = record.sequence;
    now_.in_call = true;
    now_.point_to_point = false;
  }
  void enter_point_to_point() {
    const std::lock_guard lock(mutex_);
    now_.in_call = now_.point_to_point = true;
  }
  void leave_call() {
    const std::lock_guard lock(mutex_);
    now_.in_call = false;
  }

  std::optional<Error> wait_for_failure(std::chrono::milliseconds limit = 5s) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return failure_.has_value(); });
    return failure_;
  }
  std::string wait_for_explanation(std::chrono::milliseconds limit = 5s) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, limit, [&] { return explanations_ > 0; });
    return explanation_;
  }
  std::optional<Error> failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  Clock::time_point failed_at() {
    const std::lock_guard lock(mutex_);
    return failed_at_;
  }
  int explanations() {
    const std::lock_guard lock(mutex_);
    return explanations_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  CallReport now_;
  std::vector<CallRecord> history_;
  std::optional<Error> failure_;
  Clock::time_point failed_at_{};
  std::uint64_t explained_sequence_ = 0;
  std::string explanation_;
  int explanations_ = 0;
};

inline int count_entries(const char* directory) {
  DIR* const dir = ::opendir(directory);
  if (dir == nullptr) return -1;
  int count = 0;
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}
inline int count_descriptors() { return count_entries("/proc/self/fd"); }
inline int count_threads() { return count_entries("/proc/self/task"); }

inline CallRecord all_reduce_call(std::uint64_t sequence, std::uint64_t count) {
  CallRecord record;
  record.sequence = sequence;
  record.collective = 0;
  record.datatype = hocketFloat32;
  record.op = hocketSum;
  record.count = count;
  return record;
}

}  // namespace hocket::test
