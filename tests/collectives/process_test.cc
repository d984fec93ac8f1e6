// SPDX-License-Identifier: Apache-2.0
// Ranks that are processes: the same results, the caller's surroundings untouched (G5), and one CPU for all (F6).
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <cstring>
#include <memory>
#include <new>

#include "collectives/call.h"

namespace hocket::test {
namespace {

// A place that all processes of a test see.
template <class T>
class Shared {
 public:
  Shared() : value_(new (::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) T()) {}
  ~Shared() { ::munmap(value_, sizeof(T)); }
  T* operator->() const { return value_; }

 private:
  T* const value_;
};

// Every kind of call, as rank `rank` of `n` processes; every process prepares all ranks' inputs, which depend on the seed only.
void check_own_part(int rank, int n, hocketComm_t comm, std::uint64_t seed) {
  for (int k = 0; k < kKindCount; ++k)
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{4097}, std::size_t{60000}}) {
      const std::uint64_t bits = hash(seed, k, count);
      Call call{.kind = kind_at(k),
                .root = static_cast<int>(bits % static_cast<std::uint64_t>(n)),
                .count = count,
                .seed = bits};
      call.type = kAllTypes[(bits >> 8) % std::size(kAllTypes)];
      call.in_place = has_in_place(call.kind) && (bits >> 16) % 2 == 0;
      call.memory = (bits >> 17) % 3 == 0 ? Memory::shared : Memory::ordinary;
      if (vector_form(call.kind)) call.counts = random_counts(call.kind, n, count, 40, bits);
      const PreparedCall prepared(call, n);
      if (!ok(prepared.issue(rank, comm))) return;
      const std::string wrong = prepared.wrong_at(rank);
      if (wrong.empty()) continue;
      ADD_FAILURE() << wrong;
      return;
    }
}

class Processes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Processes, ::testing::Values(1, 2, 3, 5, 7, 8));

TEST_P(Processes, EveryCollective) {
  const int n = GetParam();
  const std::uint64_t seed = draw_seed();
  run_processes(n, config(), [&](int rank, hocketComm_t comm) { check_own_part(rank, n, comm, seed); });
}

// E14: the odd and the even ranks of 7 processes, with reversed order, beside the communicator of all.
TEST(ProcessGroups, OddAndEvenWithReversedKeys) {
  constexpr int kRanks = 7;
  struct Ids {
    std::atomic<int> ready{0};
    hocketUniqueId id[2];
  };
  const Shared<Ids> ids;
  const std::uint64_t seed = draw_seed();
  run_processes(kRanks, config(), [&](int rank, hocketComm_t world) {
    const int half = rank % 2, n = half == 0 ? 4 : 3;
    const int mine = n - 1 - rank / 2;
    if (mine == 0) {
      ok(hocketGetUniqueId(&ids->id[half]));
      ids->ready.fetch_add(1, std::memory_order_release);
    }
    ASSERT_TRUE(wait_until([&] { return ids->ready.load(std::memory_order_acquire) == 2; }));
    hocketComm_t part = nullptr;
    ASSERT_TRUE(ok(hocketCommInitRank(&part, n, ids->id[half], mine)));
    check_own_part(mine, n, part, seed);
    check_own_part(rank, kRanks, world, seed + 1);
    ok(hocketCommDestroy(part));
  });
}

// ---- G5 ----

struct Surroundings {
  cpu_set_t cpus;
  sigset_t signals;
  rlimit files, locked, stack, core;
  char directory[4096];
  std::string locale;
  mode_t mask;

  static Surroundings now() {
    Surroundings s{};
    ::sched_getaffinity(0, sizeof s.cpus, &s.cpus);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &s.signals);
    ::getrlimit(RLIMIT_NOFILE, &s.files);
    ::getrlimit(RLIMIT_MEMLOCK, &s.locked);
    ::getrlimit(RLIMIT_STACK, &s.stack);
    ::getrlimit(RLIMIT_CORE, &s.core);
    EXPECT_NE(::getcwd(s.directory, sizeof s.directory), nullptr);
    s.locale = std::setlocale(LC_ALL, nullptr);
    s.mask = ::umask(0);
    ::umask(s.mask);
    return s;
  }
};

void expect_same(const Surroundings& a, const Surroundings& b) {
  EXPECT_TRUE(CPU_EQUAL(&a.cpus, &b.cpus));
  for (int signal = 1; signal < NSIG; ++signal)
    EXPECT_EQ(sigismember(&a.signals, signal), sigismember(&b.signals, signal));
  for (const auto limit : {&Surroundings::files, &Surroundings::locked, &Surroundings::stack, &Surroundings::core}) {
    EXPECT_EQ((a.*limit).rlim_cur, (b.*limit).rlim_cur);
    EXPECT_EQ((a.*limit).rlim_max, (b.*limit).rlim_max);
  }
  EXPECT_STREQ(a.directory, b.directory);
  EXPECT_EQ(a.locale, b.locale);
  EXPECT_EQ(a.mask, b.mask);
}

TEST(Surroundings, AreLeftAsTheyWere) {
  const Shared<std::atomic<int>> made;
  const Shared<hocketUniqueId> id;
  const auto rank_body = [&](int rank) {
    // Nothing is at its default.
    cpu_set_t one;
    CPU_ZERO(&one);
    cpu_set_t allowed;
    ::sched_getaffinity(0, sizeof allowed, &allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &allowed)) {
        CPU_SET(cpu, &one);
        break;
      }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    ASSERT_EQ(::chdir("/tmp"), 0);
    std::setlocale(LC_ALL, "C.UTF-8");
    ::umask(027);
    const Surroundings before = Surroundings::now();
    if (rank == 0) {
      ok(hocketGetUniqueId(id.operator->()));
      made->store(1, std::memory_order_release);
    }
    ASSERT_TRUE(wait_until([&] { return made->load(std::memory_order_acquire) == 1; }));
    hocketComm_t comm = nullptr;
    ASSERT_TRUE(ok(hocketCommInitRank(&comm, 2, *id.operator->(), rank)));
    expect_same(before, Surroundings::now());
    float in = 1, out = 0;
    ok(hocketAllReduce(&in, &out, 1, hocketFloat32, hocketSum, comm, nullptr));
    EXPECT_EQ(out, 2);
    ok(hocketCommDestroy(comm));
    hocketComm_t all[3];
    ok(hocketCommInitAll(all, 3, nullptr));
    expect_same(before, Surroundings::now());
    for (const hocketComm_t c : all) ok(hocketCommDestroy(c));
    expect_same(before, Surroundings::now());
  };
  const pid_t first = start_child([&] { rank_body(0); });
  const pid_t second = start_child([&] { rank_body(1); });
  expect_child_well(first);
  expect_child_well(second);
}

// ---- F6 ----

void stay_on_one_cpu() {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int last = -1;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) last = cpu;
  CPU_ZERO(&allowed);
  CPU_SET(last, &allowed);
  ASSERT_EQ(::sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

TEST(OneCpu, ThreadRanks) {
  expect_child_well(start_child([] {
    stay_on_one_cpu();
    const LocalRanks ranks(2);
    EXPECT_NE(describe(ranks[0]).find("\"crowded\": true"), std::string::npos);
    run_calls(ranks, {{.kind = Kind::all_reduce, .count = 1},
                      {.kind = Kind::all_reduce, .count = 100000},
                      {.kind = Kind::ring_shift, .count = 100000},
                      {.kind = Kind::all_to_all, .count = 1000}});
  }));
}

TEST(OneCpu, ProcessRanks) {
  expect_child_well(start_child([] {
    stay_on_one_cpu();
    run_processes(2, config(), [](int rank, hocketComm_t comm) { check_own_part(rank, 2, comm, 1); });
  }));
}

}  // namespace
}  // namespace hocket::test
