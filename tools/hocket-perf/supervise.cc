// SPDX-License-Identifier: Apache-2.0
#include "supervise.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "errors.h"
#include "stats.h"

namespace hocket::perf {
namespace {

// Longer than it takes the library to name a dead rank to the others, and to print it.
constexpr auto kGrace = std::chrono::seconds(3);

struct Child {
  pid_t pid;
  int process;
};

// SIGCHLD stays pending until sigtimedwait() takes it.
class BlockedChildSignal {
 public:
  BlockedChildSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~BlockedChildSignal() { restore(); }
  BlockedChildSignal(const BlockedChildSignal&) = delete;
  BlockedChildSignal& operator=(const BlockedChildSignal&) = delete;

  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  void wait(std::chrono::milliseconds limit) const {
    const timespec time{limit.count() / 1000, limit.count() % 1000 * 1'000'000};
    sigtimedwait(&set_, nullptr, &time);
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

std::string ranks_text(int process, int ranks_per_process) {
  const int first = process * ranks_per_process;
  return ranks_per_process == 1 ? fmt::format("rank {}", first)
                                : fmt::format("ranks {}-{}", first, first + ranks_per_process - 1);
}

// How a child ended: its exit code, or kExitError for a signal. Says what nobody else has said.
int explain_end(const Child& child, int status, int ranks_per_process, bool killed_by_us) {
  const std::string who = fmt::format("{} (pid {})", ranks_text(child.process, ranks_per_process), child.pid);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    if (killed_by_us && signal == SIGKILL) {
      fmt::print(stderr, "hocket-perf: {} did not end by itself and was killed\n", who);
    } else {
      fmt::print(stderr, "hocket-perf: {} was killed by signal {} ({})\n", who, signal, strsignal(signal));
    }
    return kExitError;
  }
  const int code = WEXITSTATUS(status);
  if (code > kExitWrong) fmt::print(stderr, "hocket-perf: {} ended with exit code {}\n", who, code);
  return code;
}

class Children {
 public:
  explicit Children(int ranks_per_process) : ranks_per_process_(ranks_per_process) {}

  void add(pid_t pid, int process) { alive_.push_back({pid, process}); }
  bool any() const { return !alive_.empty(); }
  int outcome() const { return outcome_; }

  // Buries those that have ended.
  void reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      const auto child = std::find_if(alive_.begin(), alive_.end(), [&](const Child& c) { return c.pid == pid; });
      if (child == alive_.end()) continue;
      const int code = explain_end(*child, status, ranks_per_process_, killed_);
      alive_.erase(child);
      if (code == kExitOk || code == kExitWrong) {
        outcome_ = outcome_ == kExitOk ? code : outcome_;
        continue;
      }
      outcome_ = kExitError;
      kill_at_ = std::min(kill_at_, Clock::now() + kGrace);
    }
  }

  void kill_when_grace_is_over() {
    if (!killed_ && Clock::now() >= kill_at_) kill_all();
  }

  void kill_all() {
    for (const Child& child : alive_) kill(child.pid, SIGKILL);
    killed_ = true;
  }

 private:
  int ranks_per_process_;
  std::vector<Child> alive_;
  int outcome_ = kExitOk;
  bool killed_ = false;
  Clock::time_point kill_at_ = Clock::time_point::max();
};

[[noreturn]] void run_child(int process, pid_t parent, const std::function<int(int)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitError);  // it died before the line above
  const int code = body(process);
  std::fflush(nullptr);
  std::exit(code);
}

}  // namespace

int supervise(int n_processes, int ranks_per_process, const std::function<int(int)>& body) {
  std::fflush(nullptr);  // or each child would print what is still buffered
  const BlockedChildSignal child_signal;
  const pid_t parent = getpid();
  Children children(ranks_per_process);
  for (int process = 0; process < n_processes; ++process) {
    const pid_t pid = fork();
    if (pid == 0) {
      child_signal.restore();
      run_child(process, parent, body);
    }
    if (pid < 0) {
      const int error = errno;
      children.kill_all();
      end_with_error(
          fmt::format("cannot fork process {} of {}: {} ({})", process, n_processes, std::strerror(error), error));
    }
    children.add(pid, process);
  }
  while (true) {
    children.reap();
    if (!children.any()) return children.outcome();
    children.kill_when_grace_is_over();
    child_signal.wait(std::chrono::milliseconds(200));
  }
}

}  // namespace hocket::perf
