// SPDX-License-Identifier: Apache-2.0
// Containers and limits: a small, absent or read-only /dev/shm, no network, few ports, user namespaces, few descriptors,
// little locked memory.
#include <sys/resource.h>

#include <iostream>

#include "failure/confined.h"

namespace hocket::test {
namespace {

// All ranks make a communicator and reduce; 4 bytes per element.
void ranks_work(int n_ranks, std::size_t count, const std::function<void(Rank&)>& first = {}) {
  Ranks ranks(n_ranks);
  const double start = now();
  ranks.start_all([&](Rank& me) {
    if (first) first(me);
    hocketComm_t comm = me.meet();
    ASSERT_NE(comm, nullptr);
    check_all_reduce(comm, 100);
    check_all_reduce(comm, count);
    destroy(comm);
  });
  ranks.expect_all_well(50s);
  std::cout << "[ " << n_ranks << " ranks, " << count * 4 / 1024 << " KiB: " << now() - start << " s ]" << std::endl;
}

// ---- /dev/shm ----

Refusal mount_shm(unsigned long flags, const char* options) {
  if (Refusal why = enter_namespaces(CLONE_NEWNS); !why.empty()) return why;
  return ::mount("tmpfs", "/dev/shm", "tmpfs", flags, options) == 0 ? Refusal() : refusal("mount /dev/shm");
}

constexpr std::size_t kBigCount = std::size_t{4} << 20;

TEST(SharedMemory, FourMegabytesOfShm) {
  confined([] { return mount_shm(0, "size=4m"); }, [] { ranks_work(8, kBigCount); });
}
TEST(SharedMemory, ReadOnlyShm) {
  confined([] { return mount_shm(MS_RDONLY, "size=4m"); }, [] { ranks_work(8, kBigCount); });
}
// An empty /dev, without shm or any device. Only mounted over: the directory itself is the whole machine's.
TEST(SharedMemory, NoShm) {
  const int before = ::access("/dev/shm", W_OK);
  confined(
      [] {
        if (Refusal why = enter_namespaces(CLONE_NEWNS); !why.empty()) return why;
        if (::mount("tmpfs", "/dev", "tmpfs", 0, "size=64k") != 0) return refusal("mount /dev");
        return ::access("/dev/shm", F_OK) != 0 ? Refusal() : Refusal("/dev/shm is still there");
      },
      [] { ranks_work(8, kBigCount); });
  EXPECT_EQ(::access("/dev/shm", W_OK), before) << "the machine's own is as it was";
}
TEST(LongSharedMemory, AQuarterGigabyteWithFourMegabytesOfShm) {
  confined([] { return mount_shm(0, "size=4m"); }, [] { ranks_work(8, std::size_t{64} << 20); }, 180s);
}

// ---- Network ----

TEST(Network, NotNeeded) {
  confined([] { return enter_namespaces(CLONE_NEWNET); }, [] { ranks_work(2, 100000); });
}

TEST(Network, SixtyFourRanksWithElevenPorts) {
  confined(
      [] {
        if (Refusal why = enter_namespaces(CLONE_NEWNET); !why.empty()) return why;
        if (Refusal why = raise_loopback(); !why.empty()) return why;
        return write_file("/proc/sys/net/ipv4/ip_local_port_range", "40000 40010") ? Refusal() : refusal("ip_local_port_range");
      },
      [] {
        ::setenv("HOCKET_SHM_BYTES", "262144", 1);
        ranks_work(64, 2000);
      });
}

// ---- Other processes' memory ----

// Large calls, on ordinary memory and on memory that peers may map.
void large_calls(Rank& me) {
  hocketComm_t comm = me.meet();
  ASSERT_NE(comm, nullptr);
  check_all_reduce(comm, std::size_t{1} << 20, 3);
  constexpr std::size_t kCount = std::size_t{1} << 20;
  void* memory = nullptr;
  ASSERT_EQ(hocketMemAlloc(&memory, kCount * sizeof(float)), hocketSuccess) << hocketGetLastError(nullptr);
  auto* const data = static_cast<float*>(memory);
  for (int round = 0; round < 3; ++round) {
    std::fill(data, data + kCount, static_cast<float>(me.rank));
    ASSERT_EQ(hocketAllReduce(data, data, kCount, hocketFloat32, hocketSum, comm, nullptr), hocketSuccess)
        << hocketGetLastError(nullptr);
    const auto sum = static_cast<float>(me.n_ranks * (me.n_ranks - 1) / 2);
    EXPECT_TRUE(std::all_of(data, data + kCount, [sum](float x) { return x == sum; }));
  }
  EXPECT_EQ(hocketMemFree(memory), hocketSuccess);
  destroy(comm);
}

void isolated_ranks(const std::function<Refusal()>& isolate) {
  Ranks ranks(3);
  ranks.start_all([&](Rank& me) {
    if (const Refusal why = isolate(); !why.empty()) {
      std::snprintf(me.board.outcome[0].text, sizeof me.board.outcome[0].text, "%s", why.c_str());
      me.board.flag[0] = 1;
      return;
    }
    CapturedStderr log;
    large_calls(me);
    EXPECT_EQ(log.text(), "");
  });
  ranks.expect_all_well();
  if (ranks.board().flag[0] != 0) GTEST_SKIP() << "this machine does not allow it: " << ranks.outcome(0).text;
}

TEST(Isolation, UserNamespaceForEachRank) {
  isolated_ranks([] { return ::unshare(CLONE_NEWUSER) == 0 ? Refusal() : refusal("unshare"); });
}
TEST(Isolation, NotDumpable) {
  isolated_ranks([] { return ::prctl(PR_SET_DUMPABLE, 0) == 0 ? Refusal() : refusal("prctl"); });
}
TEST(Isolation, LittleLockedMemory) {
  isolated_ranks([] {
    const rlimit limit{64 << 10, 64 << 10};
    return ::setrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? Refusal() : refusal("setrlimit");
  });
}

TEST(Isolation, DeathIsSeenAcrossUserNamespaces) {
  Ranks ranks(3);
  ranks.start_all([](Rank& me) {
    if (::unshare(CLONE_NEWUSER) != 0) {
      me.board.flag[0] = 1;
      return;
    }
    hocketComm_t comm = me.meet();
    ++me.progress();
    hocketResult_t result = hocketSuccess;
    float data[2] = {};
    while (result == hocketSuccess) result = hocketAllReduce(data, data, 2, hocketFloat32, hocketMax, comm, nullptr);
    me.note(result);
    EXPECT_EQ(hocketCommAbort(comm), hocketSuccess);
  });
  ASSERT_TRUE(await([&] {
    const auto& progress = ranks.board().progress;
    return ranks.board().flag[0] != 0 || (progress[0] != 0 && progress[1] != 0 && progress[2] != 0);
  }));
  if (ranks.board().flag[0] != 0) GTEST_SKIP() << "this machine does not allow user namespaces";
  const double killed_at = now();
  ranks.kill(1);
  ranks.expect_all_well();
  for (const int rank : {0, 2}) {
    EXPECT_EQ(ranks.outcome(rank).code, hocketRemoteError);
    EXPECT_TRUE(has(ranks.outcome(rank).text, "rank 1 (pid ")) << ranks.outcome(rank).text;
    EXPECT_LT(ranks.outcome(rank).at - killed_at, 1.0);
  }
}

// ---- Descriptors ----

void limit_descriptors(rlim_t limit) {
  const rlimit both{limit, limit};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &both), 0);
}

bool is_clear_about_descriptors(const std::string& text) { return has(text, "descriptor") && has(text, "limit 64"); }

// Nothing is left but what was there, once the control thread has seen everyone off.
void expect_released(const Holdings& before) {
  EXPECT_TRUE(await([&] { return Holdings::now().threads == before.threads; }, 2s));
  EXPECT_EQ(Holdings::now().descriptors, before.descriptors);
}

// Ranks that are threads of this process and meet by an id.
void threads_meet(int n_ranks, bool may_fail) {
  const Holdings before = Holdings::now();
  hocketUniqueId id;
  ASSERT_EQ(hocketGetUniqueId(&id), hocketSuccess);
  std::vector<hocketComm_t> comms(static_cast<std::size_t>(n_ranks));
  std::vector<std::string> texts(static_cast<std::size_t>(n_ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < n_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      if (hocketCommInitRank(&comms[at], n_ranks, id, rank) != hocketSuccess) {
        texts[at] = hocketGetLastError(nullptr);
        return;
      }
      check_all_reduce(comms[at], 1000, 5);
      destroy(comms[at]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::count_if(texts.begin(), texts.end(), [](const std::string& text) { return !text.empty(); });
  if (failed == 0) {
    std::cout << "[ " << n_ranks << " threads as ranks fit ]" << std::endl;
  } else {
    EXPECT_TRUE(may_fail) << texts[0];
    EXPECT_EQ(failed, n_ranks) << "all or none";
    // Who knocks when nobody can be let in any more learns only that the others gave up.
    EXPECT_TRUE(is_clear_about_descriptors(texts[0])) << texts[0];
    for (const std::string& text : texts)
      EXPECT_TRUE(is_clear_about_descriptors(text) || has(text, "the others gave up")) << text;
    std::cout << "[ " << texts[0] << " ]" << std::endl;
  }
  expect_released(before);
}

TEST(Descriptors, SixteenThreadsAsRanks) {
  if (kSanitized) GTEST_SKIP() << "the runtime of a sanitizer needs descriptors of its own";
  Ranks one(1);
  one.start(0, [](Rank&) {
    ::setenv("HOCKET_INIT_TIMEOUT_MS", "10000", 1);
    limit_descriptors(64);
    threads_meet(16, true);
    threads_meet(2, false);
    threads_meet(48, true);  // cannot fit
    threads_meet(2, false);
  });
  one.expect_all_well();
}

TEST(Descriptors, TwentyCommunicators) {
  if (kSanitized) GTEST_SKIP() << "the runtime of a sanitizer needs descriptors of its own";
  Ranks ranks(2);
  ranks.start_all([](Rank& me) {
    limit_descriptors(64);
    ::setenv("HOCKET_SHM_BYTES", "65536", 1);
    const Holdings before = Holdings::now();
    std::vector<hocketComm_t> comms;
    std::string text;
    for (int i = 0; i < 20 && text.empty(); ++i) {
      hocketComm_t comm = nullptr;
      if (me.try_meet(&comm, i % 8) == hocketSuccess)
        comms.push_back(comm);
      else
        text = hocketGetLastError(nullptr);
    }
    // Rank 1 knocks when it cannot be let in any more: it learns only that rank 0 gave up.
    EXPECT_TRUE(text.empty() || is_clear_about_descriptors(text) || (me.rank == 1 && has(text, "the others gave up"))) << text;
    if (me.rank == 0)
      std::cout << "[ " << comms.size() << " communicators with 64 descriptors" << (text.empty() ? "" : "; then: ") << text << " ]"
                << std::endl;
    EXPECT_GE(comms.size(), 10u);
    for (hocketComm_t comm : comms) check_all_reduce(comm, 1000, 2);
    for (hocketComm_t comm : comms) destroy(comm);
    expect_released(before);
    ASSERT_TRUE(me.board.gather(9, 2));
    hocketComm_t again = me.meet(9);
    check_all_reduce(again, 1000);
    destroy(again);
    expect_released(before);
  });
  ranks.expect_all_well();
}

}  // namespace
}  // namespace hocket::test
