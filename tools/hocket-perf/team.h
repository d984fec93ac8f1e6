// SPDX-License-Identifier: Apache-2.0
// How the tool's own threads agree with each other, apart from what they measure: one member per thread that makes
// calls.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "hocket/hocket.h"
#include "shared_memory.h"

namespace hocket::perf {

// Every function but member() and size() is called by all members, in the same order.
class Team {
 public:
  static constexpr std::size_t kSlotBytes = 4096;

  virtual ~Team() = default;
  virtual int member() const = 0;
  virtual int size() const = 0;
  virtual void barrier() = 0;
  // A barrier after which each member runs on a CPU of its own, where that is this team's to arrange.
  virtual void barrier_apart() { barrier(); }
  // out[k] becomes what member k gave; at most kSlotBytes.
  virtual void all_gather(const void* mine, std::size_t bytes, void* out) = 0;

  template <class T>
  std::vector<T> all_gather(const T& mine) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kSlotBytes);
    std::vector<T> out(static_cast<std::size_t>(size()));
    all_gather(&mine, sizeof(T), out.data());
    return out;
  }
  // What member 0 has.
  template <class T>
  T share(const T& mine) {
    return all_gather(mine).front();
  }
  std::uint64_t sum(std::uint64_t mine);
  // Replaces each value by the largest of all members.
  void max(std::span<double> values);
};

// Members are threads of processes forked from the one that made the board. Needs nothing of the library under test.
class SharedBoard {
 public:
  SharedBoard(int n_members, int n_cpus);
  std::unique_ptr<Team> join(int member) const;

 private:
  int n_members_;
  int n_cpus_;
  SharedMemory memory_;  // a barrier, then a place per member
};

// Members are the ranks of a communicator, anywhere.
std::unique_ptr<Team> make_communicator_team(hocketComm_t comm, int rank, int n_ranks);

}  // namespace hocket::perf
