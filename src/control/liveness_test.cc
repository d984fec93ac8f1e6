// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "control/test_ranks.h"

namespace hocket::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }

// What a rank of a test process has.
struct Rank {
  Recorder recorder;
  std::unique_ptr<ControlLink> link;
  Rank(Board& board, int n_ranks, int rank) {
    auto joined = join_by_board(board, n_ranks, rank);
    EXPECT_TRUE(joined) << joined.error().text;
    link = std::move(*joined);
    link->start(&recorder);
    ++board.value[0];
    wait_until([&] { return board.value[0] >= n_ranks; });
  }
  ~Rank() { link.reset(); }  // before the recorder that it tells
};

void wait_for_ever() {
  for (;;) ::pause();
}

// value[0]: ranks that have joined. value[1]: pid of the victim. value[2]: when it was killed.
void kill_one_of_three(int victim, bool with_child) {
  SharedBoard board;
  Children children;
  pid_t victim_pid = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t pid = children.start([&, rank] {
      Rank self(*board, 3, rank);
      if (rank == victim) {
        // The child keeps this rank's end of every connection open.
        if (with_child && ::fork() == 0) {
          board->value[4] = ::getpid();
          wait_for_ever();
        }
        board->value[3] = 1;
        wait_for_ever();
      }
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, hocketRemoteError);
      EXPECT_TRUE(has(failure->text, fmt::format("rank {} (pid {}, host ", victim, board->value[1].load()))) << failure->text;
      EXPECT_TRUE(has(failure->text, ") died")) << failure->text;
      EXPECT_TRUE(self.link->has_left(victim));
      EXPECT_FALSE(self.link->has_left(rank));
      const double seconds = static_cast<double>(self.recorder.failed_at().time_since_epoch().count() - board->value[2]) / 1e9;
      std::cout << "[ rank " << rank << " knew after " << seconds * 1e3 << " ms ]" << std::endl;
      EXPECT_LT(seconds, 1.0);
    });
    if (rank == victim) victim_pid = pid;
  }
  ASSERT_TRUE(wait_until([&] { return board->value[0] >= 3 && board->value[3] == 1 && (!with_child || board->value[4] != 0); }));
  board->value[1] = victim_pid;
  board->value[2] = now_ns();
  children.kill(victim_pid);
  children.expect_all_well();
  if (with_child) ::kill(static_cast<pid_t>(board->value[4].load()), SIGKILL);
}

TEST(Liveness, ADeadRankIsNamedToTheOthers) { kill_one_of_three(1, false); }
TEST(Liveness, ADeadRankZeroIsNamedToTheOthers) { kill_one_of_three(0, false); }
TEST(Liveness, AChildOfADeadRankHidesNothing) { kill_one_of_three(1, true); }
TEST(Liveness, AChildOfADeadRankZeroHidesNothing) { kill_one_of_three(0, true); }

TEST(Liveness, AForkedChildThatEndsHurtsNobody) {
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < 2; ++rank) {
    children.start([&, rank] {
      Rank self(*board, 2, rank);
      const pid_t child = ::fork();
      if (child == 0) {
        self.link.reset();  // what exit() would do to a static communicator
        ::_exit(0);
      }
      int status = -1;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
      ++board->value[1];
      ASSERT_TRUE(wait_until([&] { return board->value[1] == 2; }));
      // Still attached, still asked and answered.
      self.recorder.enter(all_reduce_call(1, 8 + static_cast<std::uint64_t>(rank)));
      ++board->value[2];
      ASSERT_TRUE(wait_until([&] { return board->value[2] == 2; }));
      if (rank == 1) self.link->report_stall(1, {0}, 1000);
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, hocketErrorMismatch) << failure->text;
      ++board->value[3];
      wait_until([&] { return board->value[3] == 2; });
    });
  }
  children.expect_all_well();
}

TEST(Liveness, GoodbyeIsNoFailureUntilSomeoneWaits) {
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < 3; ++rank) {
    children.start([&, rank] {
      Rank self(*board, 3, rank);
      if (rank == 1) return;  // says good-bye
      EXPECT_TRUE(wait_until([&] { return self.link->has_left(1); }));
      EXPECT_FALSE(self.recorder.failure());
      self.recorder.enter(all_reduce_call(7, 1));
      if (rank == 2) self.link->report_stall(7, {1}, 1000);
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, hocketRemoteError);
      EXPECT_TRUE(has(failure->text, "rank 1 (pid ")) << failure->text;
      EXPECT_TRUE(has(failure->text, "has destroyed its communicator; call 7 AllReduce(count 1, Float32, Sum) cannot complete"))
          << failure->text;
      ++board->value[1];
      wait_until([&] { return board->value[1] == 2; });
    });
  }
  children.expect_all_well();
}

TEST(Liveness, TheOthersGoOnWithoutRankZero) {
  SharedBoard board;
  Children children;
  pid_t last = 0;
  for (int rank = 0; rank < 3; ++rank) {
    last = children.start([&, rank] {
      Rank self(*board, 3, rank);
      if (rank == 0) return;
      EXPECT_TRUE(wait_until([&] { return self.link->has_left(0); }));
      EXPECT_FALSE(self.recorder.failure());
      ++board->value[1];
      if (rank == 2) wait_for_ever();
      ASSERT_TRUE(wait_until([&] { return board->value[1] == 2; }));
      self.recorder.enter(all_reduce_call(1, 1));
      self.link->report_stall(1, {2}, 1000);
      const std::string text = self.recorder.wait_for_explanation();
      EXPECT_TRUE(has(text, "rank 2 (pid ") && has(text, "cannot be asked because rank 0")) << text;
      board->value[2] = 1;
      ASSERT_TRUE(wait_until([&] { return board->value[2] == 2; }));
      self.link->report_stall(1, {2}, 2000);
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_TRUE(has(failure->text, "rank 2 (pid ") && has(failure->text, "died")) << failure->text;
      EXPECT_TRUE(self.link->has_left(2));
    });
  }
  ASSERT_TRUE(wait_until([&] { return board->value[2] == 1; }));
  children.kill(last);
  board->value[2] = 2;
  children.expect_all_well();
}

TEST(Liveness, WaitingForRankZeroThatLeftIsAFailure) {
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < 2; ++rank) {
    children.start([&, rank] {
      Rank self(*board, 2, rank);
      if (rank == 0) return;
      self.recorder.enter(all_reduce_call(3, 1));
      EXPECT_TRUE(wait_until([&] { return self.link->has_left(0); }));
      self.link->report_stall(3, {0}, 1000);
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_TRUE(has(failure->text, "has destroyed its communicator; call 3 AllReduce")) << failure->text;
    });
  }
  children.expect_all_well();
}

TEST(Liveness, AFailureIsToldToTheOthersEvenWhenItsRankLeavesAtOnce) {
  for (const int failing : {0, 1}) {
    SharedBoard board;
    Children children;
    for (int rank = 0; rank < 3; ++rank) {
      children.start([&, rank] {
        Rank self(*board, 3, rank);
        if (rank == failing) {
          self.link->broadcast_failure({hocketRemoteError, "rank aborted the communicator"});
          return;
        }
        const auto failure = self.recorder.wait_for_failure();
        ASSERT_TRUE(failure);
        EXPECT_EQ(failure->text, "rank aborted the communicator");
        ++board->value[1];
        wait_until([&] { return board->value[1] == 2; });
      });
    }
    children.expect_all_well();
  }
}

TEST(InquiryAcrossProcesses, AStoppedRankDoesNotAnswer) {
  SharedBoard board;
  Children children;
  pid_t stopped = 0;
  for (int rank = 0; rank < 3; ++rank) {
    stopped = children.start([&, rank] {
      Rank self(*board, 3, rank);
      if (rank == 2) wait_for_ever();
      if (rank == 1) {
        EXPECT_TRUE(wait_until([&] { return board->value[1] == 2; }));
        return;
      }
      ASSERT_TRUE(wait_until([&] { return board->value[1] == 1; }));
      self.recorder.enter(all_reduce_call(1, 1));
      const auto start = Clock::now();
      self.link->report_stall(1, {1, 2}, 1000);
      const std::string text = self.recorder.wait_for_explanation();
      EXPECT_LT(Clock::now() - start, 1s);
      EXPECT_TRUE(has(text, "rank 1 (pid ") && has(text, "has not come to call 1: it is not in a call and has made none; rank 2 (pid "))
          << text;
      EXPECT_TRUE(has(text, "does not answer (stopped?)")) << text;
      // Leaving does not wait for the stopped one.
      const auto leaving = Clock::now();
      self.link.reset();
      EXPECT_LT(Clock::now() - leaving, 500ms);
      board->value[1] = 2;
    });
  }
  ASSERT_TRUE(wait_until([&] { return board->value[0] >= 3; }));
  ::kill(stopped, SIGSTOP);
  board->value[1] = 1;
  ASSERT_TRUE(wait_until([&] { return board->value[1] == 2; }));
  children.kill(stopped);
  children.expect_all_well();
}

TEST(InquiryAcrossProcesses, DifferentCallsAreNamedToEveryoneSoon) {
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < 4; ++rank) {
    children.start([&, rank] {
      Rank self(*board, 4, rank);
      CallRecord call = all_reduce_call(7, 1000);
      if (rank == 2) call.collective = 3, call.count = 250;
      self.recorder.enter(call);
      ++board->value[1];
      ASSERT_TRUE(wait_until([&] { return board->value[1] == 4; }));
      const auto start = Clock::now();
      self.link->report_stall(7, {(rank + 1) % 4}, 1000);
      const auto failure = self.recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      if (rank == 0) {
        std::cout << "[ verdict after " << std::chrono::duration<double, std::milli>(self.recorder.failed_at() - start).count()
                  << " ms ]" << std::endl;
      }
      EXPECT_LT(self.recorder.failed_at() - start, 1s);
      EXPECT_EQ(failure->code, hocketErrorMismatch);
      EXPECT_EQ(failure->text,
                "call 7: ranks 0,1,3 called AllReduce(count 1000, Float32, Sum), rank 2 called AllGather(count 250, Float32); "
                "every rank makes the same calls in the same order");
      ++board->value[2];
      wait_until([&] { return board->value[2] == 4; });
    });
  }
  children.expect_all_well();
}

// ---- Memory of another process ----

int test_allocation = -1;  // of allocation 5

UniqueFd look_up(std::uint64_t allocation) {
  return allocation == 5 ? UniqueFd(::dup(test_allocation)) : UniqueFd();
}

TEST(FetchAllocation, BringsTheMemoryOfAnotherRank) {
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < 3; ++rank) {
    children.start([&, rank] {
      Rank self(*board, 3, rank);
      test_allocation = ::memfd_create("test", MFD_CLOEXEC);
      const std::string mine = fmt::format("rank {}", rank);
      ASSERT_EQ(::write(test_allocation, mine.data(), mine.size()), static_cast<ssize_t>(mine.size()));
      set_allocation_lookup(look_up);
      ++board->value[1];
      ASSERT_TRUE(wait_until([&] { return board->value[1] == 3; }));
      for (int other = 0; other < 3; ++other) {
        const auto memory = self.link->fetch_allocation(other, 5, 5000);
        ASSERT_TRUE(memory) << memory.error().text;
        char text[7] = {};
        EXPECT_EQ(::pread(memory->get(), text, 6, 0), 6);
        EXPECT_EQ(text, fmt::format("rank {}", other));
      }
      const auto none = self.link->fetch_allocation((rank + 1) % 3, 6, 5000);
      ASSERT_FALSE(none);
      EXPECT_TRUE(has(none.error().text, "has no allocation 6")) << none.error().text;
      EXPECT_FALSE(self.link->fetch_allocation(99, 5, 1000));
      ++board->value[2];
      wait_until([&] { return board->value[2] == 3; });
    });
  }
  children.expect_all_well();
}

// ---- All ranks in one process ----

TEST(JoinLocally, ServesManyRanks) {
  constexpr int kRanks = 300;
  const int descriptors = count_descriptors();
  const int threads = count_threads();
  {
    std::vector<Recorder> recorders(kRanks);
    auto links = join_locally(kRanks);
    ASSERT_TRUE(links);
    EXPECT_LE(count_descriptors(), descriptors + 2) << "no sockets";
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_FALSE((*links)[static_cast<std::size_t>(rank)]->take_shared_memory());
      (*links)[static_cast<std::size_t>(rank)]->start(&recorders[static_cast<std::size_t>(rank)]);
      if (rank != 17) recorders[static_cast<std::size_t>(rank)].enter(all_reduce_call(1, 4));
    }
    (*links)[3]->report_stall(1, {17}, 1000);
    EXPECT_TRUE(has(recorders[3].wait_for_explanation(), "has not come to call 1"));
    recorders[17].enter(all_reduce_call(1, 5));
    for (int rank = 0; rank < kRanks; ++rank) (*links)[static_cast<std::size_t>(rank)]->report_stall(1, {17}, 2000);
    for (Recorder& recorder : recorders) {
      const auto failure = recorder.wait_for_failure();
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, hocketErrorMismatch);
      EXPECT_TRUE(has(failure->text, "ranks 0-16,18-299 called AllReduce(count 4, Float32, Sum), rank 17 called")) << failure->text;
    }
  }
  EXPECT_EQ(count_descriptors(), descriptors);
  EXPECT_EQ(count_threads(), threads);
}

TEST(JoinLocally, FailuresGoodbyesAndMismatchesWorkAsBetweenProcesses) {
  Recorder recorders[3];
  auto links = join_locally(3);
  ASSERT_TRUE(links);
  for (int rank = 0; rank < 3; ++rank) (*links)[static_cast<std::size_t>(rank)]->start(&recorders[rank]);
  (*links)[1].reset();
  EXPECT_TRUE((*links)[0]->has_left(1));
  EXPECT_FALSE((*links)[0]->has_left(2));
  recorders[0].enter_point_to_point();
  (*links)[0]->report_stall(0, {1}, 1000);
  const auto failure = recorders[2].wait_for_failure();
  ASSERT_TRUE(failure);
  EXPECT_TRUE(has(failure->text, "has destroyed its communicator; the point-to-point call that waits for it cannot complete"))
      << failure->text;

  Recorder others[2];
  auto pair = join_locally(2);
  for (int rank = 0; rank < 2; ++rank) (*pair)[static_cast<std::size_t>(rank)]->start(&others[rank]);
  (*pair)[0]->report_mismatch(1, {hocketErrorMismatch, "8 bytes came, 4 fit"});
  for (Recorder& other : others) EXPECT_EQ(other.wait_for_failure().value_or(Error{}).text, "8 bytes came, 4 fit");
  (*pair)[0].reset();
  (*pair)[1].reset();
  links->clear();
}

}  // namespace
}  // namespace hocket::test
