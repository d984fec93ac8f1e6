// SPDX-License-Identifier: Apache-2.0
// All ranks are killed at a random moment, again and again: nothing of them is left on the machine.
#include <iostream>
#include <random>

#include "failure/confined.h"

namespace hocket::test {
namespace {

// What a rank does when it is killed: init, calls of all sizes, destroy, over and over.
void busy_life(Rank& me) {
  for (int round = 0;; ++round) {
    hocketComm_t comm = nullptr;
    if (me.try_meet(&comm, round % 8) != hocketSuccess) return;
    void* mapped = nullptr;
    hocketMemAlloc(&mapped, std::size_t{1} << 20);
    std::vector<float> data(std::size_t{1} << 18);
    for (int i = 0; i < 20; ++i) {
      const std::size_t count = i % 2 == 0 ? 2 : data.size();
      auto* const buffer = i % 4 == 3 ? static_cast<float*>(mapped) : data.data();
      if (hocketAllReduce(buffer, buffer, count, hocketFloat32, hocketSum, comm, nullptr) != hocketSuccess) return;
    }
    hocketMemFree(mapped);
    if (hocketCommDestroy(comm) != hocketSuccess) return;
    ++me.progress();
  }
}

void crashes(int rounds) {
  const auto seed = std::random_device()();
  std::cout << "[ seed " << seed << " ]" << std::endl;
  confined([] { return enter_namespaces(CLONE_NEWNET); }, [&] {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // a process that a rank left behind becomes a child of this one
    std::mt19937 random(seed);
    const auto files_before = entries("/dev/shm").size();
    const int own_before = shared_memory_files();
    const Holdings before = Holdings::now();
    int during_init = 0;
    for (int round = 0; round < rounds; ++round) {
      Ranks ranks(4);
      ranks.start_all(busy_life);
      const auto moment = Clock::now() + std::chrono::microseconds(random() % 150000);  // when it happens is the point
      std::this_thread::sleep_until(moment);
      std::array<int, 4> order{0, 1, 2, 3};
      std::shuffle(order.begin(), order.end(), random);
      for (const int rank : order) ranks.signal(rank, SIGKILL);
      during_init += ranks.board().progress[0] == 0 ? 1 : 0;
      for (const int rank : order) ranks.kill(rank);
      EXPECT_TRUE(await([] { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }, 2s)) << "a stray process";
      std::ifstream table("/proc/net/unix");
      for (std::string line; std::getline(table, line);) EXPECT_FALSE(has(line, "@hocket")) << "round " << round << ": " << line;
    }
    EXPECT_EQ(shared_memory_files(), own_before);
    EXPECT_EQ(Holdings::now().descriptors, before.descriptors);
    std::cout << "[ " << rounds << " rounds, " << during_init << " in the first communicator; /dev/shm had " << files_before
              << " entries of others and has " << entries("/dev/shm").size() << " ]" << std::endl;
    // The machine is as usable as before.
    Ranks ranks(4);
    ranks.start_all([](Rank& me) {
      hocketComm_t comm = me.meet();
      check_all_reduce(comm, 1000);
      destroy(comm);
    });
    ranks.expect_all_well();
  }, 180s);
}

TEST(Crash, OfAllRanksLeavesNothing) { crashes(10); }
TEST(LongCrash, OfAllRanksLeavesNothing) { crashes(50); }

}  // namespace
}  // namespace hocket::test
