// SPDX-License-Identifier: Apache-2.0
#include "control/service.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <system_error>

#include "control/meetings.h"
#include "control/unix_socket.h"

namespace hocket::control {

// Counts the uses of the service of this process.
struct Keeper {
  std::mutex mutex;
  Service* service = nullptr;
  int uses = 0;

  static Keeper& get() {
    // Never destroyed: other static objects may still hold uses while the process ends.
    static Keeper* const keeper = [] {
      auto* made = new Keeper;
      // A fork()ed child has no control thread: it starts anew and leaves the parent's objects alone.
      pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                     [] {
                       get().service = nullptr;
                       get().uses = 0;
                       get().mutex.unlock();
                     });
      return made;
    }();
    return *keeper;
  }

  // With the mutex held and no use left. Never waits for a thread that wants the mutex: who runs there holds a use.
  void end() {
    std::unique_ptr<Service> ended(std::exchange(service, nullptr));
    ended->stop();
    ended->thread_.join();
  }
};

Result<ServiceUse> ServiceUse::start() {
  Keeper& keeper = Keeper::get();
  const std::lock_guard lock(keeper.mutex);
  if (keeper.service == nullptr) {
    auto made = Service::make();
    if (!made) return tl::make_unexpected(std::move(made).error());
    keeper.service = made->release();
  }
  ++keeper.uses;
  return ServiceUse(keeper.service);
}

ServiceUse ServiceUse::again() const {
  const std::lock_guard lock(Keeper::get().mutex);
  ++Keeper::get().uses;
  return ServiceUse(service_);
}

ServiceUse::~ServiceUse() {
  if (service_ == nullptr) return;
  Keeper& keeper = Keeper::get();
  const std::lock_guard lock(keeper.mutex);
  if (keeper.service != service_ || --keeper.uses > 0) return;
  if (!service_->on_thread()) {
    keeper.end();
    return;
  }
  // A meeting was the last to need the thread, which cannot join itself: it cleans up behind itself.
  keeper.service = nullptr;
  service_->stop();
  service_->ends_itself_ = true;
  service_->thread_.detach();
}

void Watch::listen_to(std::uint32_t events) {
  if (service_ == nullptr) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token_;
  ::epoll_ctl(service_->epoll_.get(), EPOLL_CTL_MOD, fd_, &event);
}

void Watch::reset() {
  Service* service = std::exchange(service_, nullptr);
  if (service == nullptr) return;
  ::epoll_ctl(service->epoll_.get(), EPOLL_CTL_DEL, fd_, nullptr);
  service->watched_.erase(token_);
}

void Timer::reset() {
  Service* service = std::exchange(service_, nullptr);
  if (service != nullptr) service->timers_.erase(key_);
}

bool ServiceUse::in_this_process() const {
  const std::lock_guard lock(Keeper::get().mutex);
  return Keeper::get().service == service_;
}

namespace {
thread_local const Service* service_of_this_thread = nullptr;
}

bool Service::on_thread() const { return service_of_this_thread == this; }

Service::Service() : meetings_(std::make_unique<Meetings>(*this)) {}
Service::~Service() = default;

Result<std::unique_ptr<Service>> Service::make() {
  std::unique_ptr<Service> service(new Service);
  service->epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (service->epoll_) service->wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!service->wake_) {
    if (is_descriptor_limit(errno)) return tl::make_unexpected(descriptor_limit_error("the control thread", 2));
    return fail_errno(errno, "cannot start the control thread");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  if (::epoll_ctl(service->epoll_.get(), EPOLL_CTL_ADD, service->wake_.get(), &event) != 0) {
    return fail_errno(errno, "cannot start the control thread");
  }
  // Signals belong to the program's own threads: this one inherits a mask that blocks them all.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = 0;
  try {
    service->thread_ = std::thread([raw = service.get()] {
      raw->loop();
      if (raw->ends_itself_) delete raw;
    });
  } catch (const std::system_error& failure) {
    error = failure.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail_errno(error, "cannot start the control thread; check the limit of processes (ulimit -u)");
  pthread_setname_np(service->thread_.native_handle(), "hocket-control");
  return service;
}

void Service::wake() {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the thread is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
}

void Service::post(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() == 1) wake();
}

void Service::run(const Task& task) {
  if (on_thread()) return task();
  std::mutex mutex;
  std::condition_variable done_changed;
  bool done = false;
  post([&] {
    task();
    at_end_of_round_.push_back([&] {
      const std::lock_guard lock(mutex);
      done = true;
      done_changed.notify_one();
    });
  });
  std::unique_lock lock(mutex);
  done_changed.wait(lock, [&] { return done; });
}

void Service::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wake();
}

Result<Watch> Service::watch(int fd, std::uint32_t events, OnReady on_ready) {
  const std::uint64_t token = next_token_++;
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno(errno, "cannot watch a control connection");
  watched_.emplace(token, std::make_shared<const OnReady>(std::move(on_ready)));
  return Watch(this, fd, token);
}

Timer Service::at(Clock::time_point when, Task task) {
  const Timer::Key key{when, next_token_++};
  timers_.emplace(key, std::move(task));
  return Timer(this, key);
}

int Service::until_next_timer_ms() const {
  if (timers_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60000));
}

void Service::run_timers() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const Task task = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    task();
  }
}

// What dies may bury more.
void Service::clear_graveyard() {
  while (!graveyard_.empty()) {
    const std::vector<std::shared_ptr<void>> dead = std::exchange(graveyard_, {});
  }
}

void Service::end_round() {
  clear_graveyard();
  for (const Task& task : std::exchange(at_end_of_round_, {})) task();
}

// False when it is time to end; then all tasks are taken and no one may wake this thread any more.
bool Service::take_tasks(std::vector<Task>& tasks) {
  const std::lock_guard lock(mutex_);
  tasks.swap(tasks_);
  if (stopping_ && tasks.empty()) {
    wake_.reset();
    return false;
  }
  return true;
}

void Service::loop() {
  service_of_this_thread = this;
  std::array<epoll_event, 64> events;
  std::vector<Task> tasks;
  while (take_tasks(tasks)) {
    for (const Task& task : tasks) task();
    const bool busy = !tasks.empty();
    tasks.clear();
    run_timers();
    end_round();
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), busy ? 0 : until_next_timer_ms());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const std::uint64_t token = event.data.u64;
      if (token == 0) {
        std::uint64_t ignored = 0;
        [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &ignored, sizeof(ignored));
        continue;
      }
      const auto found = watched_.find(token);
      if (found == watched_.end()) continue;  // removed earlier in this round
      const std::shared_ptr<const OnReady> on_ready = found->second;
      (*on_ready)(event.events);
    }
    end_round();
  }
  meetings_.reset();
  clear_graveyard();
  epoll_.reset();
}

}  // namespace hocket::control
