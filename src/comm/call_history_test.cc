// SPDX-License-Identifier: Apache-2.0
#include "comm/call_history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace hocket {
namespace {

CallRecord record_of(std::uint64_t sequence) {
  CallRecord record;
  record.sequence = sequence;
  record.collective = static_cast<std::uint8_t>(sequence % 11);
  record.vector_form = static_cast<std::uint8_t>(sequence % 2);
  record.datatype = static_cast<std::uint8_t>(sequence % 15);
  record.op = static_cast<std::int32_t>(sequence * 3);
  record.root = static_cast<std::int32_t>(sequence % 7);
  record.count = sequence * 1000003;
  return record;
}

TEST(CallHistory, EmptyAtFirst) {
  const CallHistory history;
  EXPECT_EQ(history.current(), 0u);
  for (std::uint64_t sequence : {0u, 1u, 64u, 1000u}) EXPECT_FALSE(history.find(sequence));
}

TEST(CallHistory, KeepsEveryField) {
  CallHistory history;
  CallRecord record = record_of(5);
  record.root = -1;
  record.op = -2147483647;
  record.count = ~std::uint64_t{0};
  history.add(record);
  EXPECT_EQ(history.current(), 5u);
  ASSERT_TRUE(history.find(5));
  EXPECT_EQ(*history.find(5), record);
}

TEST(CallHistory, RemembersTheLastCalls) {
  CallHistory history;
  for (std::uint64_t sequence = 1; sequence <= 1000; ++sequence) {
    history.add(record_of(sequence));
    EXPECT_EQ(history.current(), sequence);
    ASSERT_TRUE(history.find(sequence));
    EXPECT_EQ(*history.find(sequence), record_of(sequence));
    const std::uint64_t before = sequence > 20 ? sequence - 20 : sequence;
    ASSERT_TRUE(history.find(before));
    EXPECT_EQ(*history.find(before), record_of(before));
    EXPECT_FALSE(history.find(sequence + 1)) << "not called yet";
  }
  EXPECT_FALSE(history.find(1)) << "long ago";
}

TEST(CallHistory, ReaderNeverSeesHalfARecord) {
  CallHistory history;
  std::atomic<bool> stop{false};
  std::uint64_t found = 0, wrong = 0;
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const std::uint64_t current = history.current();
      for (const std::uint64_t sequence : {current, current + 1, current + 64, current > 63 ? current - 63 : 1}) {
        const auto record = history.find(sequence);
        if (!record) continue;
        ++found;
        wrong += *record == record_of(sequence) ? 0 : 1;
      }
    }
  });
  std::uint64_t sequence = 0;
  for (; sequence < 200000;) history.add(record_of(++sequence));
  // On one CPU the reader may not have had a turn yet: go on until it had one.
  while (history.current() < 400000) history.add(record_of(++sequence));
  std::this_thread::yield();
  stop.store(true, std::memory_order_relaxed);
  reader.join();
  EXPECT_EQ(wrong, 0u) << "of " << found;
}

}  // namespace
}  // namespace hocket
