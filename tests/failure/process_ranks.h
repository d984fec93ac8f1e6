// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes, for tests of failures: each is forked, runs a function and writes what came of it on a board that
// all of them share. A process that does not end within the test's limit is killed and fails the test; nothing here waits
// without a limit.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "hocket/hocket.h"

namespace hocket::test {

// The runtime of a sanitizer has threads, descriptors and exit handlers of its own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

using Clock = std::chrono::steady_clock;  // one clock for all processes of the machine
using namespace std::chrono_literals;

inline double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// Waits for the condition, looking at it every millisecond; false when the limit passed first.
template <class Condition>
bool await(Condition condition, std::chrono::milliseconds limit = 20s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// What a call of a rank returned, and when.
struct Outcome {
  hocketResult_t code = hocketSuccess;
  double at = 0;
  char text[1500] = {};
};

// Memory shared by the processes of a test.
struct Board {
  static constexpr int kRanks = 64, kMeetings = 16, kFlags = 32;

  std::array<std::atomic<int>, kMeetings> made{};  // how many ids were made for the meeting so far
  std::array<hocketUniqueId, kMeetings> id{};
  std::array<std::atomic<std::int64_t>, kFlags> flag{};      // the test gives them meanings
  std::array<std::atomic<std::int64_t>, kRanks> progress{};  // one per rank, likewise
  std::array<std::atomic<double>, kRanks> entered{};
  std::array<Outcome, kRanks> outcome{};

  // All `n_ranks` come here before any goes on.
  bool gather(int which, int n_ranks, std::chrono::milliseconds limit = 20s) {
    ++flag[static_cast<std::size_t>(which)];
    return await([&] { return flag[static_cast<std::size_t>(which)] >= n_ranks; }, limit);
  }
  double last_entered(int n_ranks) const {
    double last = 0;
    for (int rank = 0; rank < n_ranks; ++rank) last = std::max(last, entered[static_cast<std::size_t>(rank)].load());
    return last;
  }
};

class SharedBoard {
 public:
  SharedBoard() : board_(new (::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {}
  SharedBoard(const SharedBoard&) = delete;
  SharedBoard& operator=(const SharedBoard&) = delete;
  ~SharedBoard() { ::munmap(board_, sizeof(Board)); }
  Board* operator->() const { return board_; }
  Board& operator*() const { return *board_; }

 private:
  Board* const board_;
};

// One rank, inside its process (or thread).
class Rank {
 public:
  Rank(Board& on, int number, int of) : board(on), rank(number), n_ranks(of) {}

  // Meets the others: whoever is rank 0 makes the id. Meetings of one test have different numbers, or come in turns.
  hocketResult_t try_meet(hocketComm_t* comm, int meeting = 0, hocketConfig_t* config = nullptr) {
    return try_meet_as(comm, meeting, rank, n_ranks, config);
  }
  hocketResult_t try_meet_as(hocketComm_t* comm, int meeting, int as_rank, int of, hocketConfig_t* config = nullptr) {
    const auto place = static_cast<std::size_t>(meeting);
    const int turn = ++turns_[place];
    if (as_rank == 0) {
      const hocketResult_t made = hocketGetUniqueId(&board.id[place]);
      if (made != hocketSuccess) return made;
      board.made[place].store(turn, std::memory_order_release);
    } else if (!await([&] { return board.made[place].load(std::memory_order_acquire) >= turn; })) {
      ADD_FAILURE() << "no id from rank 0";
      return hocketInternalError;
    }
    const hocketUniqueId id = board.id[place];
    return config != nullptr ? hocketCommInitRankConfig(comm, of, id, as_rank, config) : hocketCommInitRank(comm, of, id, as_rank);
  }
  hocketComm_t meet(int meeting = 0, hocketConfig_t* config = nullptr) { return meet_as(meeting, rank, n_ranks, config); }
  hocketComm_t meet_as(int meeting, int as_rank, int of, hocketConfig_t* config = nullptr) {
    hocketComm_t comm = nullptr;
    const hocketResult_t result = try_meet_as(&comm, meeting, as_rank, of, config);
    EXPECT_EQ(result, hocketSuccess) << "rank " << rank << ": " << hocketGetLastError(nullptr);
    return comm;
  }

  void enter() { board.entered[static_cast<std::size_t>(rank)] = now(); }
  // Notes the result of the call that just returned in this thread.
  hocketResult_t note(hocketResult_t code) {
    Outcome& outcome = board.outcome[static_cast<std::size_t>(rank)];
    outcome.at = now();
    outcome.code = code;
    std::snprintf(outcome.text, sizeof outcome.text, "%s", code == hocketSuccess ? "" : hocketGetLastError(nullptr));
    return code;
  }
  std::atomic<std::int64_t>& progress() { return board.progress[static_cast<std::size_t>(rank)]; }

  Board& board;
  const int rank;
  const int n_ranks;

 private:
  std::array<int, Board::kMeetings> turns_{};
};

// The processes of a test.
class Ranks {
 public:
  explicit Ranks(int n_ranks) : n_ranks_(n_ranks), pids_(static_cast<std::size_t>(n_ranks), 0) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    for (const pid_t pid : pids_)
      if (pid > 0) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_)
      if (pid > 0) ::waitpid(pid, nullptr, 0);
  }

  Board& board() { return *board_; }
  int n_ranks() const { return n_ranks_; }
  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  const Outcome& outcome(int rank) { return board_->outcome[static_cast<std::size_t>(rank)]; }

  void start(int rank, const std::function<void(Rank&)>& body) {
    std::fflush(nullptr);
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      Rank self(*board_, rank, n_ranks_);
      body(self);
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    pids_[static_cast<std::size_t>(rank)] = pid;
  }
  void start_all(const std::function<void(Rank&)>& body) {
    for (int rank = 0; rank < n_ranks_; ++rank) start(rank, body);
  }

  void signal(int rank, int number) const { ::kill(pid(rank), number); }
  // Returns when the process is gone.
  void kill(int rank) {
    pid_t& pid = pids_[static_cast<std::size_t>(rank)];
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = 0;
  }

  // Every process that is left ends by itself without failures.
  void expect_all_well(std::chrono::milliseconds limit = 30s) {
    const auto deadline = Clock::now() + limit;
    for (int rank = 0; rank < n_ranks_; ++rank) {
      pid_t& pid = pids_[static_cast<std::size_t>(rank)];
      if (pid <= 0) continue;
      int status = -1;
      while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (Clock::now() > deadline) {
          ADD_FAILURE() << "rank " << rank << " does not end";
          ::kill(pid, SIGKILL);
          ::waitpid(pid, &status, 0);
          break;
        }
        std::this_thread::sleep_for(1ms);
      }
      pid = 0;
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " failed, status " << status;
    }
  }

 private:
  const int n_ranks_;
  SharedBoard board_;
  std::vector<pid_t> pids_;
};

// An all-reduce whose result is checked at every element.
inline hocketResult_t check_all_reduce(hocketComm_t comm, std::size_t count = 1000, int rounds = 1) {
  int rank = -1, n_ranks = 0;
  hocketCommUserRank(comm, &rank);
  hocketCommCount(comm, &n_ranks);
  std::vector<float> data(count);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(rank + 1) * static_cast<float>(i % 7 + 1);
    const hocketResult_t result = hocketAllReduce(data.data(), data.data(), count, hocketFloat32, hocketSum, comm, nullptr);
    if (result != hocketSuccess) {
      ADD_FAILURE() << "rank " << rank << ": " << hocketGetLastError(nullptr);
      return result;
    }
    const float sum = static_cast<float>(n_ranks * (n_ranks + 1) / 2);
    for (std::size_t i = 0; i < count; ++i) {
      if (data[i] == sum * static_cast<float>(i % 7 + 1)) continue;
      ADD_FAILURE() << "rank " << rank << ": element " << i << " is " << data[i];
      return hocketInternalError;
    }
  }
  return hocketSuccess;
}

inline void destroy(hocketComm_t comm) {
  EXPECT_EQ(hocketCommDestroy(comm), hocketSuccess) << hocketGetLastError(nullptr);
}

// ---- What a process has ----

inline std::vector<std::string> entries(const char* directory) {
  std::vector<std::string> names;
  if (DIR* const dir = ::opendir(directory)) {
    while (const dirent* const entry = ::readdir(dir))
      if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    ::closedir(dir);
  }
  return names;
}

struct Holdings {
  int descriptors = 0;
  int threads = 0;
  int mappings = 0;
  long rss_kib = 0;

  static Holdings now() {
    Holdings holdings;
    holdings.descriptors = static_cast<int>(entries("/proc/self/fd").size()) - 1;  // one is the directory itself
    holdings.threads = static_cast<int>(entries("/proc/self/task").size());
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) ++holdings.mappings;
    std::ifstream statm("/proc/self/statm");
    long total = 0, resident = 0;
    statm >> total >> resident;
    holdings.rss_kib = resident * (::sysconf(_SC_PAGESIZE) / 1024);
    return holdings;
  }
};

// The same once the control thread, which may still be passing a descriptor on, has come to rest.
inline Holdings holdings_at_rest() {
  Holdings last = Holdings::now();
  int equal = 0;
  await(
      [&] {
        std::this_thread::sleep_for(5ms);
        const Holdings next = Holdings::now();
        equal = next.descriptors == last.descriptors && next.threads == last.threads ? equal + 1 : 0;
        last = next;
        return equal == 5;
      },
      2s);
  return last;
}

// Entries of /dev/shm that could be ours.
inline int shared_memory_files() {
  int count = 0;
  for (const std::string& name : entries("/dev/shm")) count += has(name, "hocket") ? 1 : 0;
  return count;
}

// Abstract Unix sockets in the listening state whose name starts as Hocket's do, in this network namespace.
inline std::vector<std::string> listening_names() {
  constexpr const char* kListening = "00010000";  // the flag SO_ACCEPTCON
  std::vector<std::string> names;
  std::ifstream table("/proc/net/unix");
  for (std::string line; std::getline(table, line);) {
    const auto at = line.find("@hocket");
    if (at != std::string::npos && has(line, kListening)) names.push_back(line.substr(at + 1));
  }
  return names;
}

// What a process writes to stderr from now on, warnings of the library included. Comes before the first use of the library.
class CapturedStderr {
 public:
  CapturedStderr() : file_(::memfd_create("captured stderr", MFD_CLOEXEC)), saved_(::dup(2)) {
    ::dup2(file_, 2);
    ::setenv("HOCKET_LOG", "warn", 1);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;
  ~CapturedStderr() {
    ::dup2(saved_, 2);
    ::close(saved_);
    ::close(file_);
  }
  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t got = ::pread(file_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }
  int lines_with(const std::string& part) const {
    const std::string all = text();
    int count = 0;
    for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1)) ++count;
    return count;
  }

 private:
  const int file_;
  const int saved_;
};

}  // namespace hocket::test
