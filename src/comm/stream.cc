// SPDX-License-Identifier: Apache-2.0
#include "comm/stream.h"

#include <csignal>

namespace hocket {

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void Stream::enqueue(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
}

bool Stream::idle() {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && !running_;
}

Status Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty() && !running_; });
  return std::exchange(first_error_, Status{});
}

void Stream::work() {
  // The application's signals are for the application's threads.
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !jobs_.empty() || closing_; });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = true;
    lock.unlock();
    Status status = job();
    lock.lock();
    if (!status && first_error_) first_error_ = std::move(status);
    running_ = false;
    changed_.notify_all();
  }
}

}  // namespace hocket
