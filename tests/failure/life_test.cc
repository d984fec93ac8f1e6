// SPDX-License-Identifier: Apache-2.0
// What a process notices of the library: nothing is left over after many communicators, waiting costs no CPU time, and
// affinity, limits, signals and forked children stay the application's business.
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <clocale>
#include <iostream>
#include <map>

#include "failure/process_ranks.h"

namespace hocket::test {
namespace {

// ---- Many communicators ----

// After some rounds everything is as large as it gets: rounds after that leave what was there before.
void expect_same(const Holdings& settled, const Holdings& end) {
  EXPECT_LE(end.descriptors, settled.descriptors);
  EXPECT_EQ(end.threads, settled.threads);
  if (kSanitized) return;
  EXPECT_LE(end.mappings, settled.mappings + 2);
  EXPECT_LT(end.rss_kib, settled.rss_kib + 2048);
}

// A large call on memory that peers map, new in every round.
void reduce_in_mapped_memory(hocketComm_t comm) {
  constexpr std::size_t kCount = std::size_t{1} << 18;
  void* memory = nullptr;
  ASSERT_EQ(hocketMemAlloc(&memory, kCount * sizeof(float)), hocketSuccess) << hocketGetLastError(nullptr);
  auto* const data = static_cast<float*>(memory);
  data[kCount - 1] = 1.0f;
  EXPECT_EQ(hocketAllReduce(data, data, kCount, hocketFloat32, hocketSum, comm, nullptr), hocketSuccess)
      << hocketGetLastError(nullptr);
  EXPECT_EQ(data[kCount - 1], 2.0f);
  EXPECT_EQ(hocketMemFree(memory), hocketSuccess) << hocketGetLastError(nullptr);
}

void many_communicators(int rounds) {
  constexpr int kWarmUp = 20;
  Ranks ranks(2);
  const int files_before = shared_memory_files();
  ranks.start_all([rounds](Rank& me) {
    Holdings settled;
    double start = 0;
    for (int round = 0; round < kWarmUp + rounds; ++round) {
      if (round == kWarmUp) settled = Holdings::now(), start = now();
      hocketComm_t comm = me.meet(round % 8);
      ASSERT_NE(comm, nullptr);
      ASSERT_EQ(check_all_reduce(comm, round % 3 == 0 ? 10000 : 3), hocketSuccess);
      if (round % 5 == 0) reduce_in_mapped_memory(comm);
      destroy(comm);
    }
    const Holdings end = Holdings::now();
    expect_same(settled, end);
    std::cout << "[ rank " << me.rank << ": " << rounds << " communicators, " << (now() - start) / rounds * 1e3
              << " ms each; descriptors " << settled.descriptors << " -> " << end.descriptors << ", threads " << settled.threads
              << " -> " << end.threads << ", mappings " << settled.mappings << " -> " << end.mappings << ", RSS "
              << settled.rss_kib << " -> " << end.rss_kib << " KiB ]" << std::endl;
  });
  ranks.expect_all_well(120s);
  EXPECT_EQ(shared_memory_files(), files_before);
}

// One communicator, memory that comes and goes.
TEST(ManyAllocations, LeaveNothing) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    hocketComm_t comm = me.meet();
    Holdings settled;
    for (int round = 0; round < 120; ++round) {
      if (round == 20) {
        ASSERT_TRUE(me.board.gather(0, 2));
        settled = holdings_at_rest();
        ASSERT_TRUE(me.board.gather(1, 2));
      }
      reduce_in_mapped_memory(comm);
    }
    ASSERT_TRUE(me.board.gather(2, 2));
    expect_same(settled, holdings_at_rest());
    destroy(comm);
  });
  ranks.expect_all_well();
}

TEST(ManyCommunicators, LeaveNothing) { many_communicators(200); }
TEST(LongManyCommunicators, LeaveNothing) { many_communicators(1000); }

TEST(ManyCommunicators, OfThreadsLeaveNothing) {
  Ranks one(1);
  one.start(0, [](Rank&) {
    Holdings settled;
    for (int round = 0; round < 120; ++round) {
      if (round == 20) settled = Holdings::now();
      std::array<hocketComm_t, 3> comms{};
      ASSERT_EQ(hocketCommInitAll(comms.data(), 3, nullptr), hocketSuccess);
      std::vector<std::thread> threads;
      for (hocketComm_t comm : comms) threads.emplace_back([comm] { check_all_reduce(comm, 10); });
      for (std::thread& thread : threads) thread.join();
      for (hocketComm_t comm : comms) destroy(comm);
    }
    expect_same(settled, Holdings::now());
  });
  one.expect_all_well();
}

TEST(ManyCommunicators, AtOnce) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    constexpr int kComms = 32;
    const Holdings before = Holdings::now();
    std::vector<hocketComm_t> comms;
    hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
    ::setenv("HOCKET_SHM_BYTES", "262144", 1);
    for (int i = 0; i < kComms; ++i) comms.push_back(me.meet(i % 8, &config));
    for (int round = 0; round < 3; ++round)
      for (hocketComm_t comm : comms) check_all_reduce(comm, 100);
    for (hocketComm_t comm : comms) destroy(comm);
    EXPECT_EQ(Holdings::now().descriptors, before.descriptors);
    EXPECT_EQ(Holdings::now().threads, before.threads);
  });
  ranks.expect_all_well();
}

// ---- The caller's settings ----

struct ProcessState {
  cpu_set_t affinity;
  sigset_t mask;
  std::vector<rlimit> limits;
  std::vector<void*> handlers;
  std::string locale;
  std::string directory;
  mode_t file_mask = 0;

  static ProcessState read() {
    ProcessState state;
    CPU_ZERO(&state.affinity);
    ::sched_getaffinity(0, sizeof state.affinity, &state.affinity);
    ::sigemptyset(&state.mask);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &state.mask);
    for (int resource = 0; resource < RLIM_NLIMITS; ++resource) {
      rlimit limit{};
      ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
      state.limits.push_back(limit);
    }
    for (int number = 1; number < 32; ++number) {
      struct sigaction action {};
      ::sigaction(number, nullptr, &action);
      state.handlers.push_back(reinterpret_cast<void*>(action.sa_handler));
    }
    state.locale = std::setlocale(LC_ALL, nullptr);
    std::array<char, 4096> directory{};
    if (::getcwd(directory.data(), directory.size()) != nullptr) state.directory = directory.data();
    state.file_mask = ::umask(0);
    ::umask(state.file_mask);
    return state;
  }
  void expect_equal(const ProcessState& other) const {
    EXPECT_TRUE(CPU_EQUAL(&affinity, &other.affinity));
    for (int number = 1; number < 65; ++number) EXPECT_EQ(::sigismember(&mask, number), ::sigismember(&other.mask, number)) << number;
    for (std::size_t i = 0; i < limits.size(); ++i) {
      EXPECT_EQ(limits[i].rlim_cur, other.limits[i].rlim_cur) << i;
      EXPECT_EQ(limits[i].rlim_max, other.limits[i].rlim_max) << i;
    }
    EXPECT_EQ(handlers, other.handlers);
    EXPECT_EQ(locale, other.locale);
    EXPECT_EQ(directory, other.directory);
    EXPECT_EQ(file_mask, other.file_mask);
  }
};

TEST(Caller, KeepsAffinityMaskLimitsHandlersAndLocale) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    // Something to lose.
    sigset_t some;
    ::sigemptyset(&some);
    ::sigaddset(&some, SIGUSR2);
    ::pthread_sigmask(SIG_BLOCK, &some, nullptr);
    const ProcessState before = ProcessState::read();
    hocketComm_t comm = me.meet();
    before.expect_equal(ProcessState::read());
    check_all_reduce(comm, 100000);
    before.expect_equal(ProcessState::read());
    destroy(comm);
    before.expect_equal(ProcessState::read());
  });
  ranks.expect_all_well();
}

TEST(Caller, MayBeBoundToOneCpu) {
  for (const int n_ranks : {2, 4}) {
    Ranks ranks(n_ranks);
    ranks.start_all([n_ranks](Rank& me) {
      cpu_set_t all, one;
      CPU_ZERO(&all);
      CPU_ZERO(&one);
      ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
      int last = 0;
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &all)) last = cpu;
      CPU_SET(last, &one);
      ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
      hocketComm_t comm = me.meet();
      std::string text(1 << 20, '\0');
      std::size_t length = text.size();
      ASSERT_EQ(hocketCommDescribe(comm, text.data(), &length), hocketSuccess) << hocketGetLastError(nullptr);
      EXPECT_TRUE(has(text, "\"cpus\": 1,")) << text.substr(0, 500);
      const double start = now();
      check_all_reduce(comm, 2, 300);
      check_all_reduce(comm, 1 << 20, 3);
      if (me.rank == 0) std::cout << "[ " << n_ranks << " ranks on one CPU: " << (now() - start) << " s ]" << std::endl;
      cpu_set_t after;
      CPU_ZERO(&after);
      ::sched_getaffinity(0, sizeof after, &after);
      EXPECT_TRUE(CPU_EQUAL(&one, &after));
      destroy(comm);
    });
    ranks.expect_all_well();
  }
}

// ---- Waiting ----

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void wait_for_a_late_rank(int n_ranks, double late_s, std::size_t count) {
  Ranks ranks(n_ranks);
  ranks.start_all([&](Rank& me) {
    hocketComm_t comm = me.meet();
    std::vector<float> data(count);
    check_all_reduce(comm, count, 3);
    ASSERT_TRUE(me.board.gather(0, n_ranks));
    if (me.rank == n_ranks - 1) std::this_thread::sleep_for(std::chrono::duration<double>(late_s));  // the lateness under test
    const double cpu = cpu_seconds(), start = now();
    EXPECT_EQ(hocketAllReduce(data.data(), data.data(), count, hocketFloat32, hocketSum, comm, nullptr), hocketSuccess);
    const double used = cpu_seconds() - cpu, waited = now() - start;
    if (me.rank != n_ranks - 1) {
      EXPECT_GT(waited, late_s * 0.9);
      EXPECT_LT(used / waited, kSanitized ? 0.2 : 0.05);
      std::cout << "[ rank " << me.rank << " of " << n_ranks << " waited " << waited << " s and used " << used * 1e3 << " ms of CPU, "
                << used / waited * 100 << " % ]" << std::endl;
    }
    destroy(comm);
  });
  ranks.expect_all_well();
}

TEST(Waiting, CostsLittleWithTwoRanks) { wait_for_a_late_rank(2, 2.0, 2); }
TEST(Waiting, CostsLittleWithFourRanks) { wait_for_a_late_rank(4, 2.0, 100000); }
TEST(LongWaiting, CostsLittle) {
  for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 20}) {
    wait_for_a_late_rank(2, 5.0, count);
    wait_for_a_late_rank(4, 5.0, count);
  }
}

// ---- Signals ----

std::atomic<int> signals_seen{0};
void count_signal(int) { signals_seen.fetch_add(1, std::memory_order_relaxed); }

TEST(Signals, DuringInitAndCallsChangeNothing) {
  constexpr int kComms = 8;
  Ranks ranks(3);
  ranks.start_all([](Rank& me) {
    struct sigaction action {};
    action.sa_handler = count_signal;  // without SA_RESTART
    ::sigaction(SIGALRM, &action, nullptr);
    ::sigaction(SIGUSR1, &action, nullptr);
    const itimerval every{{0, 700}, {0, 700}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
    me.progress() = 1;
    hocketStream_t stream = nullptr;
    ASSERT_EQ(hocketStreamCreate(&stream), hocketSuccess);
    for (int i = 0; i < kComms; ++i) {
      hocketComm_t comm = me.meet(i);
      ASSERT_NE(comm, nullptr);
      check_all_reduce(comm, 2, 200);
      check_all_reduce(comm, 5000, 50);
      check_all_reduce(comm, 1 << 20, 2);
      std::vector<float> data(1000, 1.0f);
      EXPECT_EQ(hocketAllReduce(data.data(), data.data(), 1000, hocketFloat32, hocketSum, comm, stream), hocketSuccess);
      EXPECT_EQ(hocketStreamSynchronize(stream), hocketSuccess);
      EXPECT_EQ(data[999], 3.0f);
      destroy(comm);
    }
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    EXPECT_EQ(hocketStreamDestroy(stream), hocketSuccess);
    EXPECT_GT(signals_seen.load(), 100);
    me.progress() = 2;
    ASSERT_TRUE(await([&] { return me.board.flag[5] == 1; }));
  });
  EXPECT_TRUE(await(
      [&] {
        for (int rank = 0; rank < 3; ++rank)
          if (ranks.board().progress[static_cast<std::size_t>(rank)] == 1) ranks.signal(rank, SIGUSR1);
        return ranks.board().progress[0] == 2 && ranks.board().progress[1] == 2 && ranks.board().progress[2] == 2;
      },
      40s));
  ranks.board().flag[5] = 1;
  ranks.expect_all_well();
}

// ---- fork ----

enum class ChildEnds { by_exit, by_underscore_exit, by_signal };

void fork_in_a_rank(ChildEnds how) {
  Ranks ranks(2);
  ranks.start_all([how](Rank& me) {
    hocketComm_t comm = me.meet();
    check_all_reduce(comm, 1000);
    hocketStream_t stream = nullptr;
    ASSERT_EQ(hocketStreamCreate(&stream), hocketSuccess);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      float data = 0;
      int count = 0;
      bool good = hocketAllReduce(&data, &data, 1, hocketFloat32, hocketSum, comm, nullptr) == hocketInvalidArgument;
      good &= has(hocketGetLastError(nullptr), "fork");
      good &= hocketAllReduce(&data, &data, 1, hocketFloat32, hocketSum, comm, stream) == hocketInvalidArgument;
      good &= hocketCommCount(comm, &count) == hocketInvalidArgument;
      good &= hocketCommAbort(comm) == hocketInvalidArgument;
      good &= hocketCommDestroy(comm) == hocketInvalidArgument;
      good &= hocketStreamDestroy(stream) == hocketInvalidArgument;
      if (how == ChildEnds::by_signal) ::raise(SIGKILL);
      if (how == ChildEnds::by_exit) std::exit(good ? 0 : 1);
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_TRUE(await([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 5s)) << "the child hangs";
    EXPECT_TRUE(how == ChildEnds::by_signal ? WIFSIGNALED(status) : status == 0) << "the child was not refused: " << status;
    ASSERT_TRUE(me.board.gather(0, 2));  // both children are gone
    EXPECT_EQ(check_all_reduce(comm, 1000, 100), hocketSuccess);
    EXPECT_EQ(check_all_reduce(comm, 1 << 20, 2), hocketSuccess);
    hocketResult_t state = hocketInternalError;
    EXPECT_EQ(hocketCommGetAsyncError(comm, &state), hocketSuccess);
    EXPECT_EQ(state, hocketSuccess);
    EXPECT_EQ(hocketStreamDestroy(stream), hocketSuccess);
    destroy(comm);
  });
  ranks.expect_all_well();
}

TEST(Fork, ChildIsRefusedAndItsExitHurtsNobody) { fork_in_a_rank(ChildEnds::by_underscore_exit); }
TEST(Fork, ChildThatRunsExitHandlersHurtsNobody) {
  if (kSanitized) GTEST_SKIP() << "the exit handlers of a sanitized child look for leaks in what its parent owns";
  fork_in_a_rank(ChildEnds::by_exit);
}
TEST(Fork, ChildThatIsKilledHurtsNobody) { fork_in_a_rank(ChildEnds::by_signal); }

// The children make a communicator of their own, also with the parents' still there.
TEST(Fork, ChildrenMayMeetAnew) {
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    hocketComm_t comm = me.meet();
    check_all_reduce(comm, 1000);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      hocketComm_t own = me.meet(1);
      check_all_reduce(own, 1000, 10);
      destroy(own);
      std::fflush(nullptr);
      ::_exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    check_all_reduce(comm, 1000, 50);
    int status = -1;
    EXPECT_TRUE(await([&] { return ::waitpid(child, &status, WNOHANG) == child; }, 15s)) << "the child hangs";
    if (status != 0) ::kill(child, SIGKILL);
    EXPECT_EQ(status, 0);
    ASSERT_TRUE(me.board.gather(0, 2));
    check_all_reduce(comm, 1000, 50);
    destroy(comm);
  });
  ranks.expect_all_well();
}

}  // namespace
}  // namespace hocket::test
