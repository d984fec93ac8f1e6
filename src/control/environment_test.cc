// SPDX-License-Identifier: Apache-2.0
#include "control/environment.h"

#include <map>

#include "control/meeting_place.h"
#include "control/test_ranks.h"
#include "control/unix_socket.h"

namespace hocket::control {
namespace {

using Variables = std::map<std::string, std::string>;

Surroundings surroundings_of(const Variables& variables) {
  Surroundings surroundings;
  surroundings.variable = [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  surroundings.user = 1000;
  surroundings.parent = 77;
  return surroundings;
}

Result<Launch> launch(const Variables& variables) { return launch_from(surroundings_of(variables)); }

std::string id_text(const Result<Launch>& launch) { return std::string(launch->id.internal, sizeof(launch->id.internal)); }

const Variables kTorchrun{{"RANK", "3"},        {"WORLD_SIZE", "4"},     {"LOCAL_RANK", "3"},        {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "a"}, {"MASTER_PORT", "2950"}, {"TORCHELASTIC_RUN_ID", "x"}};
const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"PMIX_NAMESPACE", "prterun-1"}};
const Variables kMpich{{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}};
const Variables kSrun{{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "5"}, {"SLURM_JOB_ID", "9"},
                      {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_NODES", "1"}};
const Variables kPlain{{"HOCKET_RANK", "1"}, {"HOCKET_NRANKS", "3"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(Environment, EachLauncherIsUnderstood) {
  struct Case {
    Variables variables;
    int rank, n_ranks;
    const char* launcher;
  };
  for (const Case& c : {Case{kTorchrun, 3, 4, "torchrun"}, Case{kOpenMpi, 1, 2, "Open MPI"}, Case{kMpich, 0, 2, "MPICH"},
                        Case{kSrun, 5, 8, "srun"}, Case{kPlain, 1, 3, "HOCKET_RANK"},
                        Case{with(kSrun, kOpenMpi), 1, 2, "Open MPI"}, Case{with(kSrun, kPlain), 1, 3, "HOCKET_RANK"}}) {
    const auto found = launch(c.variables);
    ASSERT_TRUE(found) << found.error().text;
    EXPECT_EQ(found->rank, c.rank);
    EXPECT_EQ(found->n_ranks, c.n_ranks);
    EXPECT_EQ(found->launcher, c.launcher);
    EXPECT_EQ(found->local_rank, c.rank);
    EXPECT_TRUE(decode(found->id));
  }
}

TEST(Environment, RanksOfOneJobDeriveTheSameIdAndOthersDoNot) {
  const std::string id = id_text(launch(kTorchrun));
  EXPECT_EQ(id_text(launch(with(kTorchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}}))), id);
  EXPECT_NE(id_text(launch(with(kTorchrun, {{"MASTER_PORT", "1"}}))), id);
  EXPECT_NE(id_text(launch(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "y"}}))), id);
  EXPECT_NE(id_text(launch(with(kTorchrun, {{"HOCKET_SECRET", "s"}}))), id);
  EXPECT_NE(id_text(launch(with(kTorchrun, {{"HOCKET_JOB", "j"}}))), id);
  Surroundings other_user = surroundings_of(kTorchrun);
  other_user.user = 1001;
  EXPECT_NE(id_text(launch_from(other_user)), id);
  Surroundings second = surroundings_of(kTorchrun);
  second.generation = 1;
  EXPECT_NE(id_text(launch_from(second)), id);
  Surroundings other_parent = surroundings_of(kMpich);
  other_parent.parent = 78;
  EXPECT_NE(id_text(launch_from(other_parent)), id_text(launch(kMpich)));
}

TEST(Environment, RootFixesTheName) {
  const auto found = launch(with(kPlain, {{"HOCKET_ROOT", "unix:here"}, {"HOCKET_SECRET", "s"}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(decode(found->id)->name, "here");
  const auto other_secret = launch(with(kPlain, {{"HOCKET_ROOT", "unix:here"}, {"HOCKET_SECRET", "t"}}));
  EXPECT_NE(decode(found->id)->secret, decode(other_secret->id)->secret);
  EXPECT_EQ(decode(found->id)->meeting, decode(other_secret->id)->meeting) << "so that the ranks meet and can say so";
  for (const std::string root : {"tcp://1.2.3.4:5", "unix:", "here"}) {
    const auto refused = launch(with(kPlain, {{"HOCKET_ROOT", root}}));
    ASSERT_FALSE(refused) << root;
    EXPECT_EQ(refused.error().code, hocketInvalidArgument);
    EXPECT_NE(refused.error().text.find("HOCKET_ROOT is '" + root), std::string::npos) << refused.error().text;
  }
}

TEST(Environment, BadValuesAreNamed) {
  const auto text_of = [](const Variables& variables) {
    const auto found = launch(variables);
    return found ? "accepted" : found.error().text;
  };
  for (const std::string bad : {"x", "-1", "1.5", "99999999999999999999", " 1", "\xff\n"}) {
    EXPECT_NE(text_of(with(kTorchrun, {{"RANK", bad}})).find("RANK is '"), std::string::npos) << bad;
    EXPECT_NE(text_of(with(kTorchrun, {{"LOCAL_RANK", bad}})).find("LOCAL_RANK is '"), std::string::npos) << bad;
  }
  EXPECT_NE(text_of(with(kTorchrun, {{"RANK", "4"}})).find("RANK is 4 but WORLD_SIZE is 4"), std::string::npos);
  EXPECT_NE(text_of(with(kTorchrun, {{"WORLD_SIZE", "8"}})).find("several hosts"), std::string::npos);
  EXPECT_NE(text_of(with(kSrun, {{"SLURM_STEP_NUM_NODES", "2"}})).find("several hosts"), std::string::npos);
  EXPECT_NE(text_of({{"RANK", "1"}}).find("RANK is set ('1') but WORLD_SIZE is not"), std::string::npos);
  EXPECT_NE(text_of(with(kTorchrun, {{"HOCKET_NRANKS", "4"}})).find("HOCKET_NRANKS is set ('4') but HOCKET_RANK is not"),
            std::string::npos);
  const std::string nothing = text_of({});
  for (const char* const name : {"WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "HOCKET_RANK"}) {
    EXPECT_NE(nothing.find(name), std::string::npos) << nothing;
  }
}

}  // namespace
}  // namespace hocket::control

namespace hocket::test {
namespace {

// A name of this run's own: others may run the same test at the same time.
std::string name_for(const char* test) { return fmt::format("hocket-{}-{}", test, ::getpid()); }

void set_rank(int rank, int n_ranks) {
  ::setenv("HOCKET_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("HOCKET_NRANKS", std::to_string(n_ranks).c_str(), 1);
}

Result<std::unique_ptr<ControlLink>> join_from_environment(int timeout_ms = 10000) {
  const auto launch = launch_from_environment();
  if (!launch) return tl::make_unexpected(launch.error());
  JoinOptions options;
  options.n_ranks = launch->n_ranks;
  options.rank = launch->rank;
  options.id = launch->id;
  options.timeout_ms = timeout_ms;
  return join(options);
}

TEST(JoinFromEnvironment, WorksRepeatedlyAndInAnyOrder) {
  for (const std::string& root : {std::string(), "unix:" + name_for("environment")}) {
    Children children;
    SharedBoard board;
    for (int rank = 2; rank >= 0; --rank) {
      children.start([&, rank] {
        set_rank(rank, 3);
        ::setenv("HOCKET_ROOT", root.c_str(), 1);
        // Rank 0 comes last: the others retry until it is there.
        if (rank == 0) wait_until([&] { return board->value[0] == 2; });
        if (rank != 0) ++board->value[0];
        for (int i = 0; i < 3; ++i) {
          const auto link = join_from_environment();
          ASSERT_TRUE(link) << link.error().text;
        }
      });
    }
    children.expect_all_well();
  }
}

TEST(JoinFromEnvironment, ANameInUseIsAnErrorAtOnce) {
  Children children;
  const std::string name = name_for("in-use");
  for (int job = 0; job < 2; ++job) {
    children.start([&, job] {
      set_rank(0, 2);
      ::setenv("HOCKET_ROOT", ("unix:" + name).c_str(), 1);
      if (job == 0) {
        const auto link = join_from_environment(1500);
        ASSERT_FALSE(link);
        EXPECT_NE(link.error().text.find("missing: rank 1"), std::string::npos) << link.error().text;
      } else {
        ASSERT_TRUE(wait_until([&] { return control::connect_to(name).has_value(); }));
        const auto start = Clock::now();
        const auto link = join_from_environment();
        ASSERT_FALSE(link);
        EXPECT_NE(link.error().text.find("unix:@" + name), std::string::npos) << link.error().text;
        EXPECT_NE(link.error().text.find("Address already in use (98)"), std::string::npos) << link.error().text;
        EXPECT_LT(Clock::now() - start, 1s);
      }
    });
  }
  children.expect_all_well();
}

TEST(JoinFromEnvironment, AnotherSecretIsNamed) {
  Children children;
  const std::string name = name_for("secret");
  for (int rank = 0; rank < 2; ++rank) {
    children.start([&, rank] {
      set_rank(rank, 2);
      ::setenv("HOCKET_ROOT", ("unix:" + name).c_str(), 1);
      ::setenv("HOCKET_SECRET", rank == 0 ? "this" : "that", 1);
      const auto link = join_from_environment(1000);
      ASSERT_FALSE(link);
      EXPECT_NE(link.error().text.find(rank == 0 ? "missing: rank 1" : "HOCKET_SECRET"), std::string::npos) << link.error().text;
    });
  }
  children.expect_all_well();
}

TEST(JoinFromEnvironment, MissingRankZeroIsNamed) {
  Children children;
  children.start([&] {
    set_rank(1, 2);
    const auto link = join_from_environment(300);
    ASSERT_FALSE(link);
    EXPECT_EQ(link.error().code, hocketErrorTimeout);
    EXPECT_NE(link.error().text.find("timed out after 0.3 s; missing: rank 0"), std::string::npos) << link.error().text;
  });
  children.expect_all_well();
}

}  // namespace
}  // namespace hocket::test
