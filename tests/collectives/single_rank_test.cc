// SPDX-License-Identifier: Apache-2.0
// A communicator of one rank (E13): every call is a copy, and it needs neither descriptors nor threads nor transport memory.
#include <dirent.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collectives/call.h"

namespace hocket::test {
namespace {

int entries(const char* directory) {
  DIR* const dir = ::opendir(directory);
  if (dir == nullptr) return -1;
  int count = 0;
  while (::readdir(dir) != nullptr) ++count;
  ::closedir(dir);
  return count;
}

long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  return -1;
}

TEST(SingleRank, NeedsNothing) {
  std::int64_t in[100], out[100];
  for (int i = 0; i < 100; ++i) in[i] = i - 50;
  const auto round = [&] {
    hocketComm_t comm = nullptr;
    ok(hocketCommInitAll(&comm, 1, nullptr));
    ok(hocketAllReduce(in, out, 100, hocketInt64, hocketSum, comm, nullptr));
    EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
    EXPECT_FALSE(nlohmann::json::parse(describe(comm)).contains("transports"));
    return comm;
  };
  // Warm up: the logger, the tables, the allocator.
  for (int i = 0; i < 3; ++i) ok(hocketCommDestroy(round()));
  const int descriptors = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  const long resident = resident_kib();
  std::vector<hocketComm_t> live;
  for (int i = 0; i < 100; ++i) live.push_back(round());
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries("/proc/self/task"), threads);
  // A hundred live communicators: far below one slot each.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(resident_kib() - resident, 100 * 100);
#endif
  for (const hocketComm_t comm : live) ok(hocketCommDestroy(comm));
}

TEST(SingleRank, SendToSelfInAGroup) {
  const LocalRanks ranks(1);
  std::vector<std::int32_t> first(100000), second(3, 7), got_first(100000), got_second(3);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int32_t>(i);
  hocketGroupStart();
  ok(hocketRecv(got_first.data(), first.size(), hocketInt32, 0, ranks[0], nullptr));
  ok(hocketSend(first.data(), first.size(), hocketInt32, 0, ranks[0], nullptr));
  ok(hocketSend(second.data(), second.size(), hocketInt32, 0, ranks[0], nullptr));
  ok(hocketRecv(got_second.data(), second.size(), hocketInt32, 0, ranks[0], nullptr));
  ok(hocketGroupEnd());
  EXPECT_EQ(first, got_first);
  EXPECT_EQ(second, got_second);
}

TEST(SingleRank, SendToSelfWithoutAPartnerIsRefused) {
  const LocalRanks ranks(1);
  std::int32_t word = 0, two[2];
  refused(hocketSend(&word, 1, hocketInt32, 0, ranks[0], nullptr), hocketInvalidUsage, "group");
  hocketGroupStart();
  ok(hocketSend(&word, 1, hocketInt32, 0, ranks[0], nullptr));
  refused(hocketGroupEnd(), hocketInvalidUsage, "counterpart");
  hocketGroupStart();
  ok(hocketSend(&word, 1, hocketInt32, 0, ranks[0], nullptr));
  ok(hocketRecv(two, 2, hocketInt32, 0, ranks[0], nullptr));
  refused(hocketGroupEnd(), hocketInvalidArgument, "self");
  run_calls(ranks, {{.kind = Kind::all_reduce, .count = 10}, {.kind = Kind::ring_shift, .count = 10}});
}

TEST(SingleRank, ByUniqueId) {
  hocketUniqueId id;
  hocketComm_t comm = nullptr;
  ASSERT_TRUE(ok(hocketGetUniqueId(&id)));
  ASSERT_TRUE(ok(hocketCommInitRank(&comm, 1, id, 0)));
  float in = 2.5f, out = 0;
  ok(hocketAllReduce(&in, &out, 1, hocketFloat32, hocketAvg, comm, nullptr));
  EXPECT_EQ(out, 2.5f);
  ok(hocketCommDestroy(comm));
}

}  // namespace
}  // namespace hocket::test
