// SPDX-License-Identifier: Apache-2.0
// Host streams: jobs in order on a thread of the stream's own.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace hocket {

class Stream {
 public:
  using Job = std::function<Status()>;

  Stream() : worker_([this] { work(); }) {}
  ~Stream();

  void enqueue(Job job);
  // All jobs are done.
  bool idle();
  // Waits for all jobs; their first error since the last call.
  Status synchronize();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool running_ = false;
  bool closing_ = false;
  Status first_error_;
  std::thread worker_;  // last: starts when the rest is there
};

}  // namespace hocket
