// SPDX-License-Identifier: Apache-2.0
// Calls that progress together on one thread: the contents of a group, on one or several communicators.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace hocket {

class Batch final : public WaitMonitor {
 public:
  void clear();
  // `request` outlives run().
  void add(Communicator* communicator, Request* request);
  // Runs everything to its end; the first error.
  Status run();

  // WaitMonitor
  Status check(std::chrono::steady_clock::duration waited) override;

 private:
  struct PointToPoint {
    Request* request = nullptr;
    Execution* execution = nullptr;
    bool done = false;
    int looks = 0;  // at the fast path, before the general one takes over
  };
  // The calls of one communicator: its collectives one after the other, its sends and receives all at once except that
  // those of one peer and direction keep their order.
  struct Queue {
    Communicator* communicator = nullptr;
    std::vector<Request*> collectives;
    std::size_t next = 0;
    Execution* collective = nullptr;
    std::vector<PointToPoint> messages;
    std::size_t messages_left = 0;
    bool failed = false;

    bool done() const { return failed || (collective == nullptr && next == collectives.size() && messages_left == 0); }
  };

  static Status copy_own_messages(Queue& queue);
  static Result<bool> advance(Queue& queue);
  static Result<bool> advance_collective(Queue& queue);
  static Result<bool> advance_messages(Queue& queue);
  static bool try_small(Communicator& communicator, PointToPoint& message);
  static bool in_order(const Queue& queue, std::size_t index);
  bool could_advance() const;
  void fail_queue(Queue& queue, const Error& error);

  static constexpr int kLooks = 1000;

  std::vector<Queue> queues_;
  std::size_t n_queues_ = 0;
  Status result_;
};

}  // namespace hocket
