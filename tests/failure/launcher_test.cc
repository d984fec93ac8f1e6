// SPDX-License-Identifier: Apache-2.0
// hocketCommInitFromEnv under the variables of each launcher, set by hand, and under real ones where they are installed.
#include <fcntl.h>

#include <cstdlib>
#include <iostream>
#include <map>

#include "failure/process_ranks.h"

namespace hocket::test {
namespace {

using Variables = std::map<std::string, std::string>;

void set_only(const Variables& variables) {
  for (const char* const name :
       {"HOCKET_RANK", "HOCKET_NRANKS", "HOCKET_LOCAL_RANK", "HOCKET_ROOT", "HOCKET_JOB", "HOCKET_SECRET", "RANK", "WORLD_SIZE",
        "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "SLURM_PROCID",
        "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_NUM_NODES"})
    ::unsetenv(name);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
}

void expect_launch(const std::function<Variables(int rank, int n_ranks)>& variables) {
  constexpr int kRanks = 3;
  Ranks ranks(kRanks);
  ranks.start_all([&](Rank& me) {
    set_only(variables(me.rank, kRanks));
    for (int generation = 0; generation < 3; ++generation) {
      hocketComm_t comm = nullptr;
      ASSERT_EQ(hocketCommInitFromEnv(&comm, nullptr), hocketSuccess) << hocketGetLastError(nullptr);
      int rank = -1, n_ranks = 0;
      EXPECT_EQ(hocketCommUserRank(comm, &rank), hocketSuccess);
      EXPECT_EQ(hocketCommCount(comm, &n_ranks), hocketSuccess);
      EXPECT_EQ(rank, me.rank);
      EXPECT_EQ(n_ranks, kRanks);
      check_all_reduce(comm, 1000);
      destroy(comm);
    }
  });
  ranks.expect_all_well();
}

std::string text(int number) { return std::to_string(number); }

TEST(Launcher, Hocket) {
  expect_launch([](int rank, int n) { return Variables{{"HOCKET_RANK", text(rank)}, {"HOCKET_NRANKS", text(n)}}; });
}
TEST(Launcher, HocketWithAJobName) {
  expect_launch([](int rank, int n) {
    return Variables{{"HOCKET_RANK", text(rank)}, {"HOCKET_NRANKS", text(n)}, {"HOCKET_JOB", "job " + text(::getppid())},
                     {"HOCKET_SECRET", "between us"}};
  });
}
TEST(Launcher, Torchrun) {
  expect_launch([](int rank, int n) {
    return Variables{{"RANK", text(rank)},         {"WORLD_SIZE", text(n)},      {"LOCAL_RANK", text(rank)},
                     {"LOCAL_WORLD_SIZE", text(n)}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", text(::getppid())},
                     {"TORCHELASTIC_RUN_ID", "none"}, {"TORCHELASTIC_RESTART_COUNT", "0"}};
  });
}
TEST(Launcher, OpenMpi) {
  expect_launch([](int rank, int n) {
    return Variables{{"OMPI_COMM_WORLD_RANK", text(rank)},       {"OMPI_COMM_WORLD_SIZE", text(n)},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", text(rank)}, {"OMPI_COMM_WORLD_LOCAL_SIZE", text(n)},
                     {"PMIX_NAMESPACE", "prterun-" + text(::getppid())}};
  });
}
TEST(Launcher, Mpich) {
  expect_launch([](int rank, int n) {
    return Variables{{"PMI_RANK", text(rank)}, {"PMI_SIZE", text(n)}, {"MPI_LOCALRANKID", text(rank)}, {"MPI_LOCALNRANKS", text(n)}};
  });
}
TEST(Launcher, Slurm) {
  expect_launch([](int rank, int n) {
    return Variables{{"SLURM_PROCID", text(rank)}, {"SLURM_NTASKS", text(n)},  {"SLURM_LOCALID", text(rank)},
                     {"SLURM_JOB_ID", text(::getppid())}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}};
  });
}
// The variables of the outer launcher do not confuse those of the inner one.
TEST(Launcher, MpirunInsideSlurm) {
  expect_launch([](int rank, int n) {
    return Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_JOB_ID", "7"},
                     {"PMI_RANK", text(rank)}, {"PMI_SIZE", text(n)}};
  });
}

TEST(Launcher, MalformedVariablesGetASentence) {
  struct Case {
    Variables variables;
    hocketResult_t code;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {{}, hocketInvalidUsage, {"no launcher found", "HOCKET_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "WORLD_SIZE"}},
      {{{"HOCKET_RANK", "0"}}, hocketInvalidUsage, {"HOCKET_RANK is set", "HOCKET_NRANKS is not"}},
      {{{"HOCKET_NRANKS", "2"}}, hocketInvalidUsage, {"HOCKET_NRANKS is set", "HOCKET_RANK is not"}},
      {{{"HOCKET_RANK", "one"}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is 'one'"}},
      {{{"HOCKET_RANK", "-1"}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is '-1'"}},
      {{{"HOCKET_RANK", "0x1"}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is '0x1'"}},
      {{{"HOCKET_RANK", "1 "}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is '1 '"}},
      {{{"HOCKET_RANK", "99999999999"}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is '99999999999'"}},
      {{{"HOCKET_RANK", "2"}, {"HOCKET_NRANKS", "2"}}, hocketInvalidArgument, {"HOCKET_RANK is 2", "HOCKET_NRANKS is 2"}},
      {{{"HOCKET_RANK", "0"}, {"HOCKET_NRANKS", "0"}}, hocketInvalidArgument, {"HOCKET_NRANKS is 0"}},
      {{{"HOCKET_RANK", "0"}, {"HOCKET_NRANKS", "2"}, {"HOCKET_ROOT", "tcp:1.2.3.4"}}, hocketInvalidArgument, {"HOCKET_ROOT is 'tcp:1.2.3.4'"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "\xff\x01"}}, hocketInvalidArgument, {"WORLD_SIZE is '\\xff\\x01'"}},
      {{{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}, hocketInvalidUsage, {"several hosts"}},
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_NODES", "2"}}, hocketInvalidUsage, {"SLURM_STEP_NUM_NODES is 2"}},
      {{{"HOCKET_RANK", "0"}, {"HOCKET_NRANKS", "2"}, {"HOCKET_TIMEOUT_MS", "soon"}}, hocketInvalidArgument, {"HOCKET_TIMEOUT_MS", "soon"}},
  };
  for (const Case& one : cases) {
    Ranks ranks(1);
    ranks.start(0, [&](Rank&) {
      set_only(one.variables);
      hocketComm_t comm = nullptr;
      EXPECT_EQ(hocketCommInitFromEnv(&comm, nullptr), one.code);
      const std::string said = hocketGetLastError(nullptr);
      for (const std::string& part : one.parts) EXPECT_TRUE(has(said, part)) << "no '" << part << "' in: " << said;
      EXPECT_EQ(comm, nullptr);
      EXPECT_EQ(hocketCommInitFromEnv(nullptr, nullptr), hocketInvalidArgument);
    });
    ranks.expect_all_well();
  }
}

TEST(Launcher, ARankAloneNamesTheMissing) {
  Ranks ranks(1);
  ranks.start(0, [](Rank& me) {
    set_only({{"HOCKET_RANK", "0"}, {"HOCKET_NRANKS", "3"}});
    hocketConfig_t config = HOCKET_CONFIG_INITIALIZER;
    config.initTimeoutMs = 300;
    hocketComm_t comm = nullptr;
    EXPECT_EQ(me.note(hocketCommInitFromEnv(&comm, &config)), hocketErrorTimeout);
    EXPECT_TRUE(has(me.board.outcome[0].text, "missing: rank 1, rank 2")) << me.board.outcome[0].text;
  });
  ranks.expect_all_well();
}

// ---- Real launchers ----

// What each rank runs, in the process that the launcher made of this binary.
TEST(Launched, DISABLED_Rank) {
  hocketComm_t comm = nullptr;
  ASSERT_EQ(hocketCommInitFromEnv(&comm, nullptr), hocketSuccess) << hocketGetLastError(nullptr);
  int rank = -1, n_ranks = 0;
  hocketCommUserRank(comm, &rank);
  hocketCommCount(comm, &n_ranks);
  check_all_reduce(comm, 100000, 3);
  destroy(comm);
  if (!HasFailure()) std::cout << "launched rank " + text(rank) + " of " + text(n_ranks) + " is fine" << std::endl;
}

void run_under(const std::string& launcher, const std::vector<std::string>& options) {
  const char* const home = std::getenv("HOME");
  const std::string program = std::string(home != nullptr ? home : "/root") + "/.cache/hocket-peers/" + launcher + "/bin/mpiexec";
  if (::access(program.c_str(), X_OK) != 0) GTEST_SKIP() << program << " is not installed";
  std::array<char, 4096> self{};
  ASSERT_GT(::readlink("/proc/self/exe", self.data(), self.size() - 1), 0);
  const int output = ::memfd_create("output", 0);
  Ranks host(1);
  host.start(0, [&](Rank&) {
    ::dup2(output, 1);
    ::dup2(output, 2);
    set_only({{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}});
    ::unsetenv("GTEST_FILTER");
    std::vector<std::string> arguments{program, "-n", "2"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {self.data(), "--gtest_filter=Launched.*", "--gtest_also_run_disabled_tests"});
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    ::execv(program.c_str(), pointers.data());
    ::_exit(127);
  });
  host.expect_all_well(60s);
  std::string said(static_cast<std::size_t>(::lseek(output, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(output, said.data(), said.size(), 0), static_cast<ssize_t>(said.size()));
  ::close(output);
  for (const char* const rank : {"launched rank 0 of 2 is fine", "launched rank 1 of 2 is fine"})
    EXPECT_TRUE(has(said, rank)) << said;
}

TEST(RealLauncher, OpenMpi) { run_under("openmpi", {"--oversubscribe"}); }
TEST(RealLauncher, Mpich) { run_under("mpich", {}); }
TEST(RealLauncher, IntelMpi) { run_under("impi", {}); }

}  // namespace
}  // namespace hocket::test
