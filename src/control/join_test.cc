// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "control/auth.h"
#include "control/link.h"
#include "control/meetings.h"
#include "control/test_ranks.h"
#include "control/unix_socket.h"

namespace hocket::test {
namespace {

JoinOptions options_of(int n_ranks, int rank, const hocketUniqueId& id, int timeout_ms = 10000) {
  JoinOptions options;
  options.n_ranks = n_ranks;
  options.rank = rank;
  options.id = id;
  options.timeout_ms = timeout_ms;
  return options;
}

class JoinByCount : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, JoinByCount, ::testing::Values(1, 2, 3, 8));

TEST_P(JoinByCount, ProcessesMeetAndShareMemory) {
  const int n_ranks = GetParam();
  SharedBoard board;
  Children children;
  for (int rank = 0; rank < n_ranks; ++rank) {
    children.start([&, rank] {
      JoinOptions options;
      options.shared_bytes = 1 << 20;
      auto link = join_by_board(*board, n_ranks, rank, options);
      ASSERT_TRUE(link) << link.error().text;
      ASSERT_EQ(static_cast<int>((*link)->ranks().size()), n_ranks);
      EXPECT_EQ((*link)->ranks()[static_cast<std::size_t>(rank)].pid, ::getpid());
      const UniqueFd memory = (*link)->take_shared_memory();
      struct stat info {};
      ASSERT_EQ(::fstat(memory.get(), &info), 0);
      EXPECT_EQ(info.st_size, 1 << 20);
      EXPECT_GE(info.st_blocks * 512, 1 << 20) << "the bytes are reserved";
      // Each rank marks a byte; all see all marks.
      auto* bytes = static_cast<std::atomic<unsigned char>*>(
          ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));
      ASSERT_NE(bytes, MAP_FAILED);
      bytes[rank] = static_cast<unsigned char>(rank + 1);
      for (int other = 0; other < n_ranks; ++other) {
        EXPECT_TRUE(wait_until([&] { return bytes[other].load() == other + 1; }));
      }
    });
  }
  children.expect_all_well();
}

TEST_P(JoinByCount, ThreadsMeet) {
  const int n_ranks = GetParam();
  const auto id = make_unique_id();
  ASSERT_TRUE(id);
  std::vector<std::thread> threads;
  std::atomic<int> joined{0};
  for (int rank = 0; rank < n_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto link = join(options_of(n_ranks, rank, *id));
      ASSERT_TRUE(link) << link.error().text;
      ++joined;
      wait_until([&] { return joined == n_ranks; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(joined, n_ranks);
}


bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Every rank as a thread, with its own options and version; the errors by rank, empty where the join went well.
struct Attempt {
  JoinOptions options;
  std::uint32_t version = HOCKET_VERSION_CODE;
};
std::vector<Error> join_all(const std::vector<Attempt>& attempts) {
  std::vector<Error> errors(attempts.size(), Error{hocketSuccess, ""});
  std::vector<std::thread> threads;
  std::atomic<std::size_t> done{0};
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    threads.emplace_back([&, i] {
      auto link = control::join_as(attempts[i].options, attempts[i].version);
      if (!link) errors[i] = link.error();
      ++done;
      wait_until([&] { return done == attempts.size(); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

hocketUniqueId new_id() {
  const auto id = make_unique_id();
  EXPECT_TRUE(id);
  return *id;
}

// Whether the rank sits at the meeting, which this process holds.
bool has_come(const hocketUniqueId& id, int rank) {
  auto use = control::ServiceUse::start();
  bool found = false;
  (*use)->run([&] {
    const control::Centre* const centre = (*use)->meetings().find(control::decode(id)->meeting);
    found = centre != nullptr && centre->is_here(rank);
  });
  return found;
}

TEST(Join, MissingRanksAreNamedToEveryone) {
  const auto id = new_id();
  const auto start = Clock::now();
  const auto errors = join_all({{options_of(4, 0, id, 300)}, {options_of(4, 2, id, 5000)}});
  EXPECT_LT(Clock::now() - start, 3s);
  for (const Error& error : errors) {
    EXPECT_EQ(error.code, hocketErrorTimeout);
    EXPECT_TRUE(has(error.text, "init of 4 ranks timed out after 0.3 s; missing: rank 1, rank 3; check that")) << error.text;
  }
}

TEST(Join, MissingRanksAreNamedWhileTheMeetingWaitsForRankZero) {
  const auto id = new_id();
  const auto errors = join_all({{options_of(3, 1, id, 200)}});
  EXPECT_TRUE(has(errors[0].text, "missing: rank 0, rank 2")) << errors[0].text;
}

TEST(Join, DifferencesAreToldToEveryone) {
  struct Case {
    const char* part;
    std::function<void(Attempt&)> change;  // of rank 1
  };
  for (const Case& c : {
           Case{"rank 1 runs Hocket 0.1.1, rank 0 runs 0.1.0", [](Attempt& a) { a.version = HOCKET_VERSION_CODE + 1; }},
           Case{"rank 1 has n_ranks 3, rank 0 has n_ranks 2", [](Attempt& a) { a.options.n_ranks = 3; }},
           Case{"rank 1 has slot_bytes=2, rank 0 has slot_bytes=1", [](Attempt& a) { a.options.settings = "a=1\nslot_bytes=2\n"; }},
           Case{"rank 1 has no slot_bytes, rank 0 has slot_bytes=1", [](Attempt& a) { a.options.settings = "a=1\n"; }},
           Case{"rank 1 has 5 bytes of shared memory, rank 0 has 0", [](Attempt& a) { a.options.shared_bytes = 5; }},
       }) {
    const auto id = new_id();
    Attempt zero{options_of(2, 0, id)};
    Attempt one{options_of(2, 1, id)};
    zero.options.settings = one.options.settings = "a=1\nslot_bytes=1\n";
    c.change(one);
    // Rank 0 first: the other then is the one that differs.
    std::vector<Error> errors(2, Error{hocketSuccess, ""});
    std::thread first([&] { errors[0] = join_all({zero})[0]; });
    wait_until([&] { return has_come(id, 0); });
    errors[1] = join_all({one})[0];
    first.join();
    for (const Error& error : errors) EXPECT_TRUE(has(error.text, c.part)) << error.text;
  }
}

TEST(Join, ARankThatComesTwiceIsToldToEveryone) {
  const auto id = new_id();
  std::vector<Error> first;
  std::thread others([&] { first = join_all({{options_of(3, 0, id)}, {options_of(3, 1, id)}}); });
  EXPECT_TRUE(wait_until([&] { return has_come(id, 0) && has_come(id, 1); }));
  std::vector<Error> errors = join_all({{options_of(3, 1, id)}});
  others.join();
  errors.insert(errors.end(), first.begin(), first.end());
  for (const Error& error : errors) EXPECT_TRUE(has(error.text, "rank 1 came twice")) << error.text;
}

TEST(Join, WrongArgumentsAreRefusedAtOnce) {
  const auto id = new_id();
  EXPECT_EQ(join(options_of(0, 0, id)).error().code, hocketInvalidArgument);
  EXPECT_EQ(join(options_of(2, 2, id)).error().code, hocketInvalidArgument);
  EXPECT_EQ(join(options_of(2, -1, id)).error().code, hocketInvalidArgument);
  EXPECT_EQ(join(options_of(2, 0, hocketUniqueId{})).error().code, hocketInvalidArgument);
  EXPECT_TRUE(end_meeting(id));
  EXPECT_FALSE(end_meeting(hocketUniqueId{}));
}

TEST(Join, AnotherSecretIsRefusedAndHoldsUpNobody) {
  const auto id = new_id();
  auto place = *control::decode(id);
  place.secret[0] ^= 1;
  const auto wrong = join(options_of(2, 1, control::encode(place)));
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(has(wrong.error().text, "does not know the secret")) << wrong.error().text;
  for (const Error& error : join_all({{options_of(2, 0, id)}, {options_of(2, 1, id)}})) EXPECT_EQ(error.code, hocketSuccess) << error.text;
}

TEST(Join, AnIdIsUsedOnce) {
  const auto id = new_id();
  join_all({{options_of(2, 0, id)}, {options_of(2, 1, id)}});
  const auto again = join(options_of(2, 1, id));
  ASSERT_FALSE(again);
  EXPECT_TRUE(has(again.error().text, "the id was used before")) << again.error().text;
}

TEST(Join, AbortEndsItSoonAndTellsTheOthers) {
  const auto id = new_id();
  std::atomic<bool> cancel{false};
  Attempt zero{options_of(3, 0, id, 0)};
  Attempt one{options_of(3, 1, id, 0)};
  one.options.cancel = &cancel;
  Clock::time_point cancelled;
  std::thread canceller([&] {
    wait_until([&] { return has_come(id, 0) && has_come(id, 1); });
    cancelled = Clock::now();
    cancel = true;
  });
  const auto errors = join_all({zero, one});
  canceller.join();
  EXPECT_LT(Clock::now() - cancelled, 500ms);
  EXPECT_TRUE(has(errors[1].text, "aborted")) << errors[1].text;
  EXPECT_TRUE(has(errors[0].text, "gave up its init: aborted")) << errors[0].text;
}

TEST(Join, TheIdMayComeFromAnyProcess) {
  // Made by rank 2, or by a process that is no rank.
  for (const int maker : {2, 3}) {
    SharedBoard board;
    Children children;
    for (int rank = 0; rank < 4; ++rank) {
      children.start([&, rank] {
        const int threads_before = count_threads();
        if (rank == maker) board->publish(new_id());
        if (rank < 3) {
          JoinOptions options = options_of(3, rank, board->wait_for_id());
          options.shared_bytes = 4096;
          auto link = join(options);
          ASSERT_TRUE(link) << link.error().text;
          EXPECT_TRUE((*link)->take_shared_memory());
        }
        ++board->value[0];
        wait_until([&] { return board->value[0] == 4; });
        EXPECT_TRUE(wait_until([&] { return count_threads() == threads_before; })) << "the meeting ends when all were sent on";
      });
    }
    children.expect_all_well();
  }
}

TEST(Join, ADeathDuringInitIsToldToEveryone) {
  SharedBoard board;
  Children children;
  pid_t victim = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t pid = children.start([&, rank] {
      if (rank == 2) return;  // never comes
      std::thread watcher;
      if (rank == 0) {
        watcher = std::thread([&] { 
          const auto id = board->wait_for_id();
          board->value[1] = wait_until([&] { return has_come(id, 0) && has_come(id, 1); });
        });
      }
      const auto link = join_by_board(*board, 3, rank);
      if (watcher.joinable()) watcher.join();
      ASSERT_FALSE(link);
      EXPECT_EQ(link.error().code, hocketRemoteError);
      EXPECT_TRUE(has(link.error().text, fmt::format("rank 1 (pid {}", board->value[0].load()))) << link.error().text;
      EXPECT_TRUE(has(link.error().text, "died during init")) << link.error().text;
    });
    if (rank == 1) board->value[0] = victim = pid;
  }
  ASSERT_TRUE(wait_until([&] { return board->value[1] == 1; }));
  children.kill(victim);
  children.expect_all_well();
}

TEST(Join, MemoryThatIsNotThereIsAnErrorForEveryone) {
  const auto id = new_id();
  Attempt zero{options_of(2, 0, id)};
  Attempt one{options_of(2, 1, id)};
  zero.options.shared_bytes = one.options.shared_bytes = std::size_t{1} << 60;
  for (const Error& error : join_all({zero, one})) {
    EXPECT_EQ(error.code, hocketSystemError);
    EXPECT_TRUE(has(error.text, "1152921504606846976 bytes")) << error.text;
  }
}

TEST(Join, TooFewDescriptorsIsASentenceAndLeaksNothing) {
  Children children;
  children.start([] {
    for (int limit = count_descriptors() + 1; limit < count_descriptors() + 40; ++limit) {
      const int before = count_descriptors();
      const rlimit limits{static_cast<rlim_t>(limit), 4096};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limits), 0);
      std::vector<Error> errors{Error{hocketSuccess, ""}};
      const auto id = make_unique_id();
      if (!id) {
        errors[0] = id.error();
      } else {
        std::vector<Attempt> attempts;
        for (int rank = 0; rank < 6; ++rank) {
          attempts.push_back({options_of(6, rank, *id)});
          attempts.back().options.shared_bytes = 4096;
        }
        errors = join_all(attempts);
      }
      bool named = false;
      for (const Error& error : errors) {
        EXPECT_EQ(error.code == hocketSuccess, errors[0].code == hocketSuccess) << "init is atomic";
        named = named || has(error.text, fmt::format("limit {} for all of this process; raise it (ulimit -n)", limit));
      }
      EXPECT_TRUE(named || errors[0].code == hocketSuccess) << errors[0].text;
      const rlimit wide{4096, 4096};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &wide), 0);
      if (id) static_cast<void>(end_meeting(*id));
      EXPECT_TRUE(wait_until([&] { return count_descriptors() == before; })) << "limit " << limit;
    }
  });
  children.expect_all_well(60s);
}

TEST(Join, NothingIsLeftAfterManyTimes) {
  SharedBoard board;
  Children children;
  constexpr int kTimes = 200;
  for (int rank = 0; rank < 2; ++rank) {
    children.start([&, rank] {
      const int threads_before = count_threads();
      int descriptors = 0;
      for (int i = 1; i <= kTimes; ++i) {
        if (rank == 0) {
          wait_until([&] { return board->value[1] == i - 1; });
          board->id = new_id();
          board->value[0] = i;
        }
        wait_until([&] { return board->value[0] == i; });
        {
          auto link = join(options_of(2, rank, board->id));
          ASSERT_TRUE(link) << link.error().text;
          if (rank == 1) board->value[1] = i;
        }
        if (i == 3) descriptors = count_descriptors();
      }
      EXPECT_EQ(count_descriptors(), descriptors);
      EXPECT_EQ(count_threads(), threads_before) << "the control thread has ended";
    });
  }
  children.expect_all_well(60s);
}

TEST(Join, LeavesTheCallerAsItWas) {
  sigset_t before, after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  join_all({{options_of(2, 0, new_id(), 50)}});
  auto links = join_locally(2);
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
}

// ---- Strangers ----

enum class Prod { silent, one_byte, random, half_closed };

// Connects and misbehaves; the connection stays open until the value is destroyed.
Result<UniqueFd> prod(const std::string& name, Prod how) {
  auto socket = control::connect_to(name);
  if (!socket) return fail_errno(socket.error(), "connect");
  std::vector<std::uint8_t> bytes(how == Prod::random ? 64 << 10 : 1);
  control::fill_random(bytes);
  if (how == Prod::one_byte || how == Prod::random) control::send_some(socket->get(), bytes, -1);
  if (how == Prod::half_closed) ::shutdown(socket->get(), SHUT_WR);
  return std::move(*socket);
}
constexpr Prod kAllProds[] = {Prod::silent, Prod::one_byte, Prod::random, Prod::half_closed};

TEST(Strangers, HoldUpNobodyDuringInit) {
  const auto id = new_id();
  const std::string name = control::decode(id)->name;
  std::vector<UniqueFd> open;
  Error zero{hocketSuccess, ""};
  std::thread rank_0([&] { zero = join_all({{options_of(2, 0, id)}})[0]; });
  for (int i = 0; i < 20; ++i) {
    for (const Prod how : kAllProds) {
      auto socket = prod(name, how);
      ASSERT_TRUE(socket) << socket.error().text;
      open.push_back(std::move(*socket));
    }
  }
  const auto start = Clock::now();
  const Error one = join_all({{options_of(2, 1, id)}})[0];
  rank_0.join();
  EXPECT_LT(Clock::now() - start, 1s);
  EXPECT_EQ(zero.code, hocketSuccess) << zero.text;
  EXPECT_EQ(one.code, hocketSuccess) << one.text;
  EXPECT_FALSE(prod(name, Prod::silent)) << "nobody listens when all are there";
}

TEST(Strangers, HoldUpNobodyAfterwards) {
  const auto other = new_id();  // keeps the process listening
  const auto id = new_id();
  Recorder recorders[2];
  std::unique_ptr<ControlLink> links[2];
  std::thread second([&] { links[1] = std::move(*join(options_of(2, 1, id))); });
  links[0] = std::move(*join(options_of(2, 0, id)));
  second.join();
  std::vector<UniqueFd> open;
  for (const Prod how : kAllProds) open.push_back(std::move(*prod(control::decode(other)->name, how)));
  for (int rank = 0; rank < 2; ++rank) links[rank]->start(&recorders[rank]);
  recorders[0].enter(all_reduce_call(1, 8));
  links[0]->report_stall(1, {1}, 1000);
  EXPECT_TRUE(has(recorders[0].wait_for_explanation(1s), "has not come to call 1"));
  // The impatient ones are dropped at once, the silent ones after five seconds.
  char byte;
  EXPECT_TRUE(wait_until([&] { return ::recv(open[2].get(), &byte, 1, MSG_DONTWAIT) <= 0 && errno != EAGAIN; }, 2s));
  EXPECT_TRUE(wait_until([&] { return ::recv(open[3].get(), &byte, 1, MSG_DONTWAIT) == 0; }, 2s));
  EXPECT_TRUE(wait_until([&] { return ::recv(open[0].get(), &byte, 1, MSG_DONTWAIT) == 0; }, 8s));
  EXPECT_TRUE(end_meeting(other));
}

}  // namespace
}  // namespace hocket::test
