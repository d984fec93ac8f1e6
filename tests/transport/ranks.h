// SPDX-License-Identifier: Apache-2.0
// Ranks for tests of transports and of what runs on them: threads over anonymous memory, or forked processes over a memfd.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/doorbell.h"
#include "base/mapping.h"
#include "base/unique_fd.h"
#include "fault/fault_transport.h"
#include "shm/layout.h"
#include "shm/shm_transport.h"

namespace hocket {

// Longer than any wait that is not a defect, on a busy machine under a sanitizer.
inline constexpr std::chrono::seconds kTestLimit{60};

// One way to connect ranks.
struct Kind {
  std::string name;
  bool processes = false;
  bool crowded = false;
  std::optional<FaultOptions> fault;

  // How many rings lie one behind the other between two ranks.
  std::uint64_t rings_in_row() const { return fault ? 3 : 1; }
};
inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

struct Dimensions {
  int n_ranks = 2;
  int channels = 1;
  int slot_bytes = 512;

  ShmLayout layout() const {
    Settings settings;
    settings.channels = channels;
    settings.slot_bytes = slot_bytes;
    return ShmLayout(n_ranks, settings);
  }
};

// Behind the rings in the memory that ranks share.
struct Board {
  std::atomic<std::uint32_t> finished;
  std::atomic<std::uint32_t> stuck;
  std::array<std::atomic<std::uint64_t>, 64> marks;
};

inline std::unique_ptr<Transport> make_transport(const Kind& kind, int rank, int n_ranks, const ShmLayout& layout,
                                                 std::shared_ptr<Mapping> memory) {
  std::unique_ptr<Transport> transport = std::make_unique<ShmTransport>(rank, n_ranks, layout, std::move(memory));
  if (!kind.fault) return transport;
  FaultOptions options = *kind.fault;
  options.seed = options.seed * 1000 + static_cast<std::uint64_t>(rank);
  return std::make_unique<FaultTransport>(std::move(transport), options);
}

// One rank, as a test's body sees it.
class Rank {
 public:
  Rank(const Kind& kind, const Dimensions& dimensions, int rank, const std::shared_ptr<Mapping>& memory)
      : kind_(kind), rank_(rank), n_ranks_(dimensions.n_ranks), layout_(dimensions.layout()), memory_(memory) {
    transport_ = make_transport(kind, rank_, n_ranks_, layout_, memory_);
    bells_ =
        Doorbells(layout_.sleepers(memory_->data()), layout_.bells(memory_->data()), rank_, n_ranks_, kind.crowded);
  }

  int rank() const { return rank_; }
  int n_ranks() const { return n_ranks_; }
  const Kind& kind() const { return kind_; }
  const ShmLayout& layout() const { return layout_; }
  Transport& transport() { return *transport_; }
  Doorbells& bells() { return bells_; }
  std::uint32_t sleepers() const { return layout_.sleepers(memory_->data())->count.load(std::memory_order_seq_cst); }
  Board& board() { return *reinterpret_cast<Board*>(memory_->data() + layout_.total_bytes()); }

  // Words that all ranks share, for a test to order its parts by.
  void set_mark(std::size_t index, std::uint64_t value) {
    board().marks[index].store(value, std::memory_order_release);
  }
  std::uint64_t mark(std::size_t index) { return board().marks[index].load(std::memory_order_acquire); }
  void await_mark(std::size_t index, std::uint64_t value) {
    until("a mark", [&] { return mark(index) >= value; });
  }

  bool pump() {
    const auto moved = transport_->pump();
    if (!moved) throw std::runtime_error(moved.error().text);
    if (*moved) bells_.ring();
    return *moved;
  }

  // Waits for a condition; throws, and so ends the body on every rank, when it does not come.
  template <class Condition>
  void until(const char* what, Condition&& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kTestLimit;
    for (std::uint64_t looks = 0; !condition(); ++looks) {
      if (pump()) continue;
      if (looks % 16 != 15) continue;
      ::sched_yield();
      if (board().stuck.load(std::memory_order_relaxed) != 0) throw std::runtime_error("another rank failed");
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error(std::string("waited too long for ") + what);
    }
  }

  // The same, asleep whenever the condition does not hold. A transport that is pumped cannot sleep for long; with the
  // others, a sleep that is not ended by its peer shows.
  template <class Condition>
  void sleep_until(const char* what, Condition&& condition) {
    constexpr std::chrono::milliseconds kLongSleep{10000}, kShortSleep{1};
    const auto limit = kind_.fault ? kShortSleep : kLongSleep;
    const auto ready = [&] { return (pump(), condition()) || board().stuck.load(std::memory_order_relaxed) != 0; };
    const auto deadline = std::chrono::steady_clock::now() + kTestLimit;
    while (!ready()) {
      const auto start = std::chrono::steady_clock::now();
      bells_.sleep(limit, ready);
      const auto now = std::chrono::steady_clock::now();
      if (!kind_.fault && now - start >= limit)
        throw std::runtime_error(std::string("nobody woke the wait for ") + what);
      if (now > deadline) throw std::runtime_error(std::string("waited too long for ") + what);
    }
    if (!condition()) throw std::runtime_error("another rank failed");
  }

  void run(const std::function<void(Rank&)>& body) {
    try {
      body(*this);
      board().finished.fetch_add(1, std::memory_order_acq_rel);
      // What this rank sent may still lie in rings of its own.
      until("the other ranks' end",
            [&] { return board().finished.load(std::memory_order_acquire) == static_cast<std::uint32_t>(n_ranks_); });
    } catch (const std::exception& error) {
      board().stuck.store(1, std::memory_order_relaxed);
      bells_.ring();
      ADD_FAILURE() << kind_.name << ", rank " << rank_ << " of " << n_ranks_ << ": " << error.what();
    }
  }

 private:
  Kind kind_;
  int rank_;
  int n_ranks_;
  ShmLayout layout_;
  std::shared_ptr<Mapping> memory_;
  std::unique_ptr<Transport> transport_;
  Doorbells bells_;
};

inline void run_threads(const Kind& kind, const Dimensions& dimensions, const std::function<void(Rank&)>& body) {
  auto mapping = Mapping::anonymous(dimensions.layout().total_bytes() + sizeof(Board));
  ASSERT_TRUE(mapping) << mapping.error().text;
  const auto memory = std::make_shared<Mapping>(std::move(*mapping));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < dimensions.n_ranks; ++rank)
    threads.emplace_back([&, rank] { Rank(kind, dimensions, rank, memory).run(body); });
  for (std::thread& thread : threads) thread.join();
}

// In the child: never returns. Failures print here; the parent learns of them by the exit code.
[[noreturn]] inline void run_child(const Kind& kind, const Dimensions& dimensions, int rank, int fd,
                                   const std::function<void(Rank&)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  auto memory = Mapping::shared(fd, dimensions.layout().total_bytes() + sizeof(Board));
  if (memory) Rank(kind, dimensions, rank, std::make_shared<Mapping>(std::move(*memory))).run(body);
  std::fflush(nullptr);
  ::_exit(memory && !testing::Test::HasFailure() ? 0 : 1);
}

inline void run_processes(const Kind& kind, const Dimensions& dimensions, const std::function<void(Rank&)>& body) {
  const UniqueFd fd(::memfd_create("hocket-test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(fd.get(), static_cast<off_t>(dimensions.layout().total_bytes() + sizeof(Board))), 0);
  std::fflush(nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < dimensions.n_ranks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_child(kind, dimensions, rank, fd.get(), body);
    children.push_back(child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(::waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << kind.name << ": rank " << rank << " failed, status " << status;
  }
}

// Runs `body` once per rank.
inline void run_ranks(const Kind& kind, const Dimensions& dimensions, const std::function<void(Rank&)>& body) {
  register_for_membarrier();
  if (kind.processes)
    run_processes(kind, dimensions, body);
  else
    run_threads(kind, dimensions, body);
}

}  // namespace hocket
