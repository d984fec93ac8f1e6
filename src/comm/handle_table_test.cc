// SPDX-License-Identifier: Apache-2.0
#include "comm/handle_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace hocket {
namespace {

using std::chrono::milliseconds;

struct Object {
  explicit Object(int n = 0) : number(n) { alive.fetch_add(1); }
  ~Object() { alive.fetch_sub(1); }
  int number;
  int uses = 0;  // guarded by the handle
  static inline std::atomic<int> alive{0};
};
using Table = HandleTable<Object>;

HandleState state_of(Table& table, const void* handle) {
  HandleState state = HandleState::live;
  table.take(handle, state);
  return state;
}

TEST(HandleTable, TakesWhatWasInserted) {
  Table table;
  void* handle = table.insert(std::make_shared<Object>(7));
  HandleState state = HandleState::dead;
  const auto guard = table.take(handle, state);
  ASSERT_TRUE(guard);
  EXPECT_EQ(state, HandleState::live);
  EXPECT_EQ(guard->number, 7);
  EXPECT_EQ((*guard).number, 7);
}

TEST(HandleTable, BusyWhileTaken) {
  Table table;
  void* handle = table.insert(std::make_shared<Object>());
  HandleState state = HandleState::dead;
  {
    auto guard = table.take(handle, state);
    EXPECT_EQ(state_of(table, handle), HandleState::busy);
    EXPECT_NE(table.pin(handle), nullptr) << "pinning does not take";
    auto moved = std::move(guard);
    EXPECT_FALSE(guard);
    EXPECT_EQ(state_of(table, handle), HandleState::busy);
    moved.release();
    EXPECT_EQ(state_of(table, handle), HandleState::live);
  }
  EXPECT_EQ(state_of(table, handle), HandleState::live);
}

TEST(HandleTable, CanStartOutTaken) {
  Table table;
  Table::Guard guard;
  void* handle = table.insert(std::make_shared<Object>(), &guard);
  ASSERT_TRUE(guard);
  EXPECT_EQ(state_of(table, handle), HandleState::busy);
  guard.release();
  EXPECT_EQ(state_of(table, handle), HandleState::live);
}

TEST(HandleTable, WhatWasNeverAHandleIsDead) {
  Table table;
  table.insert(std::make_shared<Object>());
  int local = 0;
  for (const void* handle :
       {static_cast<const void*>(nullptr), static_cast<const void*>(&local), reinterpret_cast<const void*>(1),
        reinterpret_cast<const void*>(8192), reinterpret_cast<const void*>(8193),
        reinterpret_cast<const void*>(~std::uintptr_t{0}), reinterpret_cast<const void*>(std::uintptr_t{1} << 63)}) {
    EXPECT_EQ(state_of(table, handle), HandleState::dead) << handle;
    EXPECT_EQ(table.pin(handle), nullptr) << handle;
    EXPECT_FALSE(table.retire(handle, milliseconds(0))) << handle;
  }
}

TEST(HandleTable, StaleHandlesStayDeadWhenSlotsAreReused) {
  Table table;
  std::set<const void*> seen;
  std::vector<const void*> stale;
  for (int i = 0; i < 1000; ++i) {
    void* handle = table.insert(std::make_shared<Object>(i));
    EXPECT_TRUE(seen.insert(handle).second) << "handles never repeat";
    EXPECT_TRUE(table.retire(handle, milliseconds(0)));
    stale.push_back(handle);
  }
  void* live = table.insert(std::make_shared<Object>(-1));
  for (const void* handle : stale) {
    EXPECT_EQ(state_of(table, handle), HandleState::dead);
    EXPECT_EQ(table.pin(handle), nullptr);
    EXPECT_FALSE(table.retire(handle, milliseconds(0))) << "a second end";
  }
  EXPECT_EQ(state_of(table, live), HandleState::live);
}

TEST(HandleTable, RetireWaitsForTheCallInProgress) {
  Table table;
  void* handle = table.insert(std::make_shared<Object>());
  HandleState state = HandleState::dead;
  auto guard = table.take(handle, state);
  EXPECT_FALSE(table.retire(handle, milliseconds(5))) << "still in use at the limit";
  EXPECT_EQ(state_of(table, handle), HandleState::busy) << "and not ended by the attempt";
  std::atomic<bool> ended{false};
  std::thread other([&] { ended = table.retire(handle, std::chrono::seconds(30)); });
  guard.release();
  other.join();
  EXPECT_TRUE(ended);
  EXPECT_EQ(state_of(table, handle), HandleState::dead);
}

TEST(HandleTable, ObjectDiesWithItsLastOwner) {
  const int before = Object::alive;
  Table table;
  void* handle = table.insert(std::make_shared<Object>(3));
  std::shared_ptr<Object> pinned = table.pin(handle);
  ASSERT_NE(pinned, nullptr);
  EXPECT_TRUE(table.retire(handle, milliseconds(0)));
  EXPECT_EQ(Object::alive, before + 1);
  EXPECT_EQ(pinned->number, 3);
  pinned.reset();
  EXPECT_EQ(Object::alive, before);
}

TEST(HandleTable, FullTableGivesNull) {
  Table table;
  std::vector<void*> handles;
  for (;;) {
    void* handle = table.insert(std::make_shared<Object>());
    if (handle == nullptr) break;
    handles.push_back(handle);
    ASSERT_LE(handles.size(), 100000u);
  }
  EXPECT_GE(handles.size(), 1000u);
  EXPECT_EQ(state_of(table, handles.front()), HandleState::live);
  EXPECT_EQ(state_of(table, handles.back()), HandleState::live);
  ASSERT_TRUE(table.retire(handles[500], milliseconds(0)));
  EXPECT_NE(table.insert(std::make_shared<Object>()), nullptr) << "a place came free";
  EXPECT_EQ(table.insert(std::make_shared<Object>()), nullptr);
}

TEST(HandleTable, AfterAForkNothingOfTheParentIsUsable) {
  Table table;
  void* handle = table.insert(std::make_shared<Object>());
  table.invalidate_all();
  EXPECT_EQ(state_of(table, handle), HandleState::dead);
  EXPECT_EQ(table.pin(handle), nullptr);
  void* fresh = table.insert(std::make_shared<Object>());
  EXPECT_EQ(state_of(table, fresh), HandleState::live);
}

TEST(HandleTable, OneCallAtATimeFromManyThreads) {
  Table table;
  void* handle = table.insert(std::make_shared<Object>());
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        HandleState state = HandleState::dead;
        if (auto guard = table.take(handle, state)) {
          ++guard->uses;  // a race if two threads had it
          done.fetch_add(1);
        } else {
          EXPECT_EQ(state, HandleState::busy);
          std::this_thread::yield();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  HandleState state = HandleState::dead;
  EXPECT_EQ(table.take(handle, state)->uses, done.load());
}

TEST(HandleTable, MakingUsingAndEndingAtOnce) {
  const int before = Object::alive;
  {
    Table table;
    std::vector<std::thread> threads;
    std::atomic<const void*> shared{nullptr};
    for (int t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < 1500; ++i) {
          void* mine = table.insert(std::make_shared<Object>(t));
          ASSERT_NE(mine, nullptr);
          HandleState state = HandleState::dead;
          { EXPECT_EQ(table.take(mine, state)->number, t) << "nobody else has this handle yet"; }
          // Another thread's handle, which may die at any moment.
          const void* other = shared.exchange(mine);
          if (auto guard = table.take(other, state)) guard->uses += 1;
          const auto pinned = table.pin(other);
          EXPECT_TRUE(pinned == nullptr || pinned->number >= 0);
          EXPECT_TRUE(other == nullptr || table.retire(other, std::chrono::seconds(30)))
              << "each has one owner at the end";
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(table.retire(shared.load(), milliseconds(0)));
  }
  EXPECT_EQ(Object::alive, before);
}

}  // namespace
}  // namespace hocket
