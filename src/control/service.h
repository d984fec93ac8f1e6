// SPDX-License-Identifier: Apache-2.0
// The one control thread of a process: it sleeps in epoll_wait and runs what others ask of it. It starts with the first
// ServiceUse and ends with the last. All state of the control plane lives on this thread and has no locks; other threads
// come in through post() and run().
//
// Invariants: nothing that runs here blocks. A descriptor is unwatched before it is closed (a fork()ed child may hold a copy
// that keeps it in the epoll set). An object that may be in the middle of a call is bury()ed instead of deleted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"

namespace hocket::control {

class Meetings;
class Service;

using Clock = std::chrono::steady_clock;  // CLOCK_MONOTONIC

// Keeps the control thread alive. Releasing the last one ends and joins it; released on the thread itself, the thread ends
// after the current round. A copy that a fork()ed child inherited does nothing.
class ServiceUse {
 public:
  static Result<ServiceUse> start();

  ServiceUse() = default;
  ServiceUse(ServiceUse&& other) noexcept : service_(std::exchange(other.service_, nullptr)) {}
  ServiceUse& operator=(ServiceUse&& other) noexcept {
    std::swap(service_, other.service_);
    return *this;
  }
  ~ServiceUse();

  ServiceUse again() const;  // one more use of the same
  bool in_this_process() const;  // false in a fork()ed child: then leave everything alone
  Service* operator->() const { return service_; }
  Service& operator*() const { return *service_; }
  explicit operator bool() const { return service_ != nullptr; }

 private:
  explicit ServiceUse(Service* service) : service_(service) {}
  Service* service_ = nullptr;
};

// A descriptor in the epoll set, until destroyed. Declare it after the owner of the descriptor.
class Watch {
 public:
  Watch() = default;
  Watch(Watch&& other) noexcept : service_(std::exchange(other.service_, nullptr)), fd_(other.fd_), token_(other.token_) {}
  Watch& operator=(Watch&& other) noexcept {
    std::swap(service_, other.service_);
    std::swap(fd_, other.fd_);
    std::swap(token_, other.token_);
    return *this;
  }
  ~Watch() { reset(); }

  void listen_to(std::uint32_t events);  // EPOLLIN | EPOLLOUT ...
  void reset();
  explicit operator bool() const { return service_ != nullptr; }

 private:
  friend class Service;
  Watch(Service* service, int fd, std::uint64_t token) : service_(service), fd_(fd), token_(token) {}
  Service* service_ = nullptr;
  int fd_ = -1;
  std::uint64_t token_ = 0;
};

// A call at a later time, unless destroyed before.
class Timer {
 public:
  Timer() = default;
  Timer(Timer&& other) noexcept : service_(std::exchange(other.service_, nullptr)), key_(other.key_) {}
  Timer& operator=(Timer&& other) noexcept {
    std::swap(service_, other.service_);
    std::swap(key_, other.key_);
    return *this;
  }
  ~Timer() { reset(); }
  void reset();

 private:
  friend class Service;
  using Key = std::pair<Clock::time_point, std::uint64_t>;
  Timer(Service* service, Key key) : service_(service), key_(key) {}
  Service* service_ = nullptr;
  Key key_{};
};

class Service {
 public:
  using Task = std::function<void()>;
  using OnReady = std::function<void(std::uint32_t events)>;

  ~Service();

  // Any thread. post() returns at once; tasks run in the order of their post(). run() returns when the round in which the
  // task ran is over: what it buried is gone.
  void post(Task task);
  void run(const Task& task);

  // On the control thread only.
  Result<Watch> watch(int fd, std::uint32_t events, OnReady on_ready);
  Timer at(Clock::time_point when, Task task);
  Timer after(std::chrono::milliseconds delay, Task task) { return at(Clock::now() + delay, std::move(task)); }
  // Destroys it at the end of this round.
  template <class Owner>
  void bury(Owner owner) {
    graveyard_.push_back(std::shared_ptr<void>(std::move(owner)));
  }
  Meetings& meetings() { return *meetings_; }

  bool on_thread() const;

 private:
  friend class ServiceUse;
  friend class Timer;
  friend class Watch;
  friend struct Keeper;

  static Result<std::unique_ptr<Service>> make();
  Service();
  void stop();
  void loop();
  bool take_tasks(std::vector<Task>& tasks);
  void wake();
  int until_next_timer_ms() const;
  void run_timers();
  void clear_graveyard();
  void end_round();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::mutex mutex_;  // guards tasks_, stopping_ and, at the end, wake_
  std::vector<Task> tasks_;
  bool stopping_ = false;

  // shared_ptr: the table and a call in progress, which may remove its own entry.
  std::unordered_map<std::uint64_t, std::shared_ptr<const OnReady>> watched_;
  std::map<Timer::Key, Task> timers_;
  std::uint64_t next_token_ = 1;
  std::vector<std::shared_ptr<void>> graveyard_;
  std::vector<Task> at_end_of_round_;
  std::unique_ptr<Meetings> meetings_;
  std::thread thread_;
  bool ends_itself_ = false;  // control thread only
};

}  // namespace hocket::control
