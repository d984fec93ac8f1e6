// SPDX-License-Identifier: Apache-2.0
// Others knock at a listening socket, or sit at its name: a log line each, and the ranks go on.
#include <poll.h>
#include <sys/un.h>

#include <cstddef>
#include <iostream>
#include <random>

#include "failure/confined.h"

namespace hocket::test {
namespace {

sockaddr_un address_of(const std::string& name, socklen_t& bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof address.sun_path - 1));
  bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

class Socket {
 public:
  Socket() : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool connect_to(const std::string& name) const {
    socklen_t bytes = 0;
    const sockaddr_un address = address_of(name, bytes);
    return ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0;
  }
  bool listen_at(const std::string& name) const {
    socklen_t bytes = 0;
    const sockaddr_un address = address_of(name, bytes);
    return ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 && ::listen(fd_, 8) == 0;
  }
  void send(const std::string& text) const {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t now_sent = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (now_sent <= 0) return;
      sent += static_cast<std::size_t>(now_sent);
    }
  }
  void half_close() const { ::shutdown(fd_, SHUT_WR); }
  bool is_closed_by_peer_within(std::chrono::milliseconds limit) const {
    pollfd poll{fd_, POLLIN | POLLRDHUP, 0};
    return ::poll(&poll, 1, static_cast<int>(limit.count())) == 1;
  }

 private:
  int fd_;
};

// Everything a scanner may do at each name; the connections stay open as long as the result.
std::vector<Socket> prod(const std::vector<std::string>& names, std::mt19937& random) {
  std::vector<Socket> open;
  for (const std::string& name : names) {
    for (int kind = 0; kind < 4; ++kind) {
      Socket socket;
      if (!socket.connect_to(name)) continue;  // the door has just closed
      std::string text;
      if (kind == 1) text = "x";
      if (kind == 2)
        while (text.size() < 65536) text.push_back(static_cast<char>(random()));
      if (kind == 3) text = "GET / HTTP/1.0\r\n";
      socket.send(text);
      if (kind == 3) socket.half_close();
      open.push_back(std::move(socket));
    }
  }
  return open;
}

constexpr const char* kDropped = "dropped a connection to ";

TEST(Stranger, DuringInitIsDropped) {
  confined([] { return enter_namespaces(CLONE_NEWNET); }, [] {
    Ranks ranks(3);
    ranks.start_all([](Rank& me) {
      CapturedStderr log;
      ASSERT_TRUE(me.rank != 2 || await([&] { return me.board.flag[0] > 0; }));
      hocketComm_t comm = me.meet();
      check_all_reduce(comm, 1000, 10);
      destroy(comm);
      me.progress() = log.lines_with("\n");
      EXPECT_EQ(log.lines_with("\n"), log.lines_with(kDropped)) << log.text();
      if (me.rank == 0) std::cout << log.text() << std::flush;
    });
    ASSERT_TRUE(await([] { return !listening_names().empty(); }));
    std::mt19937 random(1);
    const auto open = prod(listening_names(), random);
    EXPECT_GE(open.size(), 4u);
    ranks.board().flag[0] = static_cast<std::int64_t>(open.size());
    ranks.expect_all_well();
    const auto lines = ranks.board().progress[0] + ranks.board().progress[1] + ranks.board().progress[2];
    EXPECT_GE(lines, 2);  // garbage and the half-close are known at once, silence only later
    EXPECT_LE(lines, static_cast<std::int64_t>(open.size()));
  });
}

TEST(Stranger, DuringCallsDelaysNobody) {
  confined([] { return enter_namespaces(CLONE_NEWNET); }, [] {
    Ranks ranks(2);
    ranks.start_all([](Rank& me) {
      CapturedStderr log;
      hocketComm_t comm = me.meet();
      hocketUniqueId next;
      EXPECT_EQ(hocketGetUniqueId(&next), hocketSuccess);  // keeps the door of this process open
      float data[3] = {};
      for (;;) {
        std::fill(data, data + 3, me.rank == 0 && me.board.flag[0] == 1 ? 1.0f : 0.0f);  // rank 0 says when to end
        ASSERT_EQ(hocketAllReduce(data, data, 3, hocketFloat32, hocketSum, comm, nullptr), hocketSuccess)
            << hocketGetLastError(nullptr);
        ++me.progress();
        if (data[2] != 0) break;
      }
      destroy(comm);
      me.board.flag[static_cast<std::size_t>(2 + me.rank)] = log.lines_with("\n");
      EXPECT_EQ(log.lines_with("\n"), log.lines_with(kDropped)) << log.text();
    });
    ASSERT_TRUE(await([&] { return ranks.board().progress[0] > 100 && listening_names().size() == 2; }));
    std::mt19937 random(2);
    std::vector<Socket> held;
    std::int64_t n_prods = 0;
    const auto before = ranks.board().progress[0].load();
    const double start = now();
    for (int round = 0; round < 10; ++round) {
      auto open = prod(listening_names(), random);
      n_prods += static_cast<std::int64_t>(open.size());
      if (round == 0) held = std::move(open);
      const auto seen = ranks.board().progress[0].load();
      EXPECT_TRUE(await([&] { return ranks.board().progress[0] > seen + 10; }, 2s)) << "calls do not go on";
    }
    std::cout << "[ " << n_prods << " strangers in " << now() - start << " s, " << ranks.board().progress[0] - before
              << " calls meanwhile ]" << std::endl;
    ranks.board().flag[0] = 1;
    ranks.expect_all_well();
    EXPECT_LE(ranks.board().flag[2] + ranks.board().flag[3], n_prods);
  });
}

TEST(LongStranger, WhoSaysNothingIsPutOut) {
  confined([] { return enter_namespaces(CLONE_NEWNET); }, [] {
    Ranks ranks(1);
    ranks.start(0, [](Rank& me) {
      hocketUniqueId id;
      EXPECT_EQ(hocketGetUniqueId(&id), hocketSuccess);
      EXPECT_TRUE(await([&] { return me.board.flag[0] == 1; }));
    });
    ASSERT_TRUE(await([] { return listening_names().size() == 1; }));
    Socket silent;
    ASSERT_TRUE(silent.connect_to(listening_names().front()));
    EXPECT_TRUE(silent.is_closed_by_peer_within(8s));
    ranks.board().flag[0] = 1;
    ranks.expect_all_well();
  });
}

// ---- A name that is taken ----

void set_launch(int rank, int n_ranks, const std::string& name) {
  ::setenv("HOCKET_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("HOCKET_NRANKS", std::to_string(n_ranks).c_str(), 1);
  ::setenv("HOCKET_ROOT", ("unix:" + name).c_str(), 1);
}

TEST(TakenName, IsToldAtOnce) {
  const std::string name = "test-of-a-taken-name-" + std::to_string(::getpid());
  const Socket squatter;
  ASSERT_TRUE(squatter.listen_at(name));
  Ranks ranks(2);
  ranks.start_all([&](Rank& me) {
    set_launch(me.rank, 2, name);
    ::setenv("HOCKET_INIT_TIMEOUT_MS", "1500", 1);
    hocketComm_t comm = nullptr;
    me.enter();
    me.note(hocketCommInitFromEnv(&comm, nullptr));
    EXPECT_EQ(comm, nullptr);
  });
  ranks.expect_all_well();
  const Outcome& rank_0 = ranks.outcome(0);
  EXPECT_EQ(rank_0.code, hocketSystemError) << rank_0.text;
  EXPECT_TRUE(has(rank_0.text, "unix:@" + name) && has(rank_0.text, "Address already in use")) << rank_0.text;
  EXPECT_LT(rank_0.at - ranks.board().entered[0], 0.5);
  // The other meets the squatter, who never proves the secret.
  const Outcome& rank_1 = ranks.outcome(1);
  EXPECT_NE(rank_1.code, hocketSuccess);
  EXPECT_TRUE(has(rank_1.text, name)) << rank_1.text;
  EXPECT_LT(rank_1.at - ranks.board().entered[1], 4.0);
  std::cout << "[ rank 0: " << rank_0.text << " ]\n[ rank 1: " << rank_1.text << " ]" << std::endl;
}

TEST(TakenName, MayBeUsedAgainOnceFree) {
  const std::string name = "test-of-a-name-used-twice-" + std::to_string(::getpid());
  for (int turn = 0; turn < 2; ++turn) {
    Ranks ranks(2);
    ranks.start_all([&](Rank& me) {
      set_launch(me.rank, 2, name);
      hocketComm_t comm = nullptr;
      ASSERT_EQ(hocketCommInitFromEnv(&comm, nullptr), hocketSuccess) << hocketGetLastError(nullptr);
      check_all_reduce(comm);
      destroy(comm);
    });
    ranks.expect_all_well();
  }
}

}  // namespace
}  // namespace hocket::test
