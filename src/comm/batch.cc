// SPDX-License-Identifier: Apache-2.0
#include "comm/batch.h"

#include <algorithm>
#include <cstring>

namespace hocket {

void Batch::clear() {
  n_queues_ = 0;
  result_ = {};
}

void Batch::add(Communicator* communicator, Request* request) {
  const auto end = queues_.begin() + static_cast<std::ptrdiff_t>(n_queues_);
  auto queue = std::find_if(queues_.begin(), end, [&](const Queue& q) { return q.communicator == communicator; });
  if (queue == end) {
    if (n_queues_ == queues_.size()) queues_.emplace_back();
    queue = queues_.begin() + static_cast<std::ptrdiff_t>(n_queues_++);
    queue->communicator = communicator;
    queue->collectives.clear();
    queue->messages.clear();
    queue->next = 0;
    queue->collective = nullptr;
    queue->failed = false;
  }
  if (request->point_to_point())
    queue->messages.push_back({request, nullptr, false, 0});
  else
    queue->collectives.push_back(request);
}

Status Batch::run() {
  bool crowded = false;
  for (std::size_t i = 0; i < n_queues_; ++i) {
    Queue& queue = queues_[i];
    queue.messages_left = queue.messages.size();
    crowded |= queue.communicator->wait_policy().crowded;
    if (const Status status = copy_own_messages(queue); !status) {
      queue.failed = true;  // nothing was sent: the communicator stays usable
      if (result_) result_ = status;
    }
  }
  if (n_queues_ == 0) return result_;
  WaitPolicy policy = queues_[0].communicator->wait_policy();
  policy.crowded = crowded;
  Waiter waiter(policy, queues_[0].communicator->bells(), *this);
  for (;;) {
    bool moved = false, left = false;
    for (std::size_t i = 0; i < n_queues_; ++i) {
      Queue& queue = queues_[i];
      if (queue.done()) continue;
      const auto advanced = advance(queue);
      if (!advanced)
        fail_queue(queue, advanced.error());
      else
        moved |= *advanced;
      left |= !queue.done();
    }
    if (!left) return result_;
    if (moved)
      waiter.progressed();
    else
      // Failures are handled per communicator in check(); the wait itself goes on while any communicator is left.
      static_cast<void>(waiter.pause([&] { return could_advance(); }));
  }
}

// Messages to oneself: the k-th send is the k-th receive.
Status Batch::copy_own_messages(Queue& queue) {
  const int me = queue.communicator->rank();
  const auto next = [&](std::size_t from, Collective kind) {
    while (from < queue.messages.size() &&
           (queue.messages[from].request->root != me || queue.messages[from].request->collective != kind))
      ++from;
    return from;
  };
  std::size_t send = next(0, Collective::send), recv = next(0, Collective::recv);
  for (; send < queue.messages.size() && recv < queue.messages.size();
       send = next(send + 1, Collective::send), recv = next(recv + 1, Collective::recv)) {
    const Request& from = *queue.messages[send].request;
    const Request& to = *queue.messages[recv].request;
    if (from.count != to.count || from.datatype != to.datatype)
      return fail(hocketInvalidArgument, "hocketSend to self: {} elements of {} meet a receive of {} elements of {}",
                  from.count, datatype_name(from.datatype), to.count, datatype_name(to.datatype));
    if (from.count != 0) std::memmove(to.recv, from.send, from.count * element_bytes(from.datatype));
    queue.messages[send].done = queue.messages[recv].done = true;
    queue.messages_left -= 2;
  }
  if (send < queue.messages.size() || recv < queue.messages.size())
    return fail(hocketInvalidUsage, "{} to self without its counterpart in the same group",
                send < queue.messages.size() ? "hocketSend" : "hocketRecv");
  return {};
}

Result<bool> Batch::advance(Queue& queue) {
  const auto collective = advance_collective(queue);
  if (!collective) return collective;
  if (queue.messages_left == 0) return collective;
  const auto messages = advance_messages(queue);
  if (!messages) return messages;
  return *collective || *messages;
}

Result<bool> Batch::advance_collective(Queue& queue) {
  bool moved = false;
  while (queue.collective == nullptr && queue.next < queue.collectives.size()) {
    const auto execution = queue.communicator->begin(*queue.collectives[queue.next]);
    if (!execution) return tl::make_unexpected(execution.error());
    ++queue.next;
    queue.collective = *execution;
    moved = true;
  }
  if (queue.collective == nullptr) return moved;
  moved |= queue.collective->advance();
  if (queue.collective->done()) {
    queue.communicator->finish(queue.collective);
    queue.collective = nullptr;
  }
  return moved;
}

// No earlier unfinished message of the same peer and direction.
bool Batch::in_order(const Queue& queue, std::size_t index) {
  const Request& mine = *queue.messages[index].request;
  for (std::size_t i = 0; i < index; ++i) {
    const Request& other = *queue.messages[i].request;
    if (!queue.messages[i].done && other.root == mine.root && other.collective == mine.collective) return false;
  }
  return true;
}

// Small messages that were sent before go without an execution while they need not wait long.
bool Batch::try_small(Communicator& communicator, PointToPoint& message) {
  if (message.looks >= kLooks) return false;
  HotCall* const hot = communicator.find_hot(*message.request);
  if (hot == nullptr) {
    message.looks = kLooks;
    return false;
  }
  ++message.looks;
  return communicator.try_hot_message(*hot, *message.request);
}

Result<bool> Batch::advance_messages(Queue& queue) {
  bool moved = false;
  for (std::size_t i = 0; i < queue.messages.size(); ++i) {
    PointToPoint& message = queue.messages[i];
    if (message.done) continue;
    if (message.execution == nullptr) {
      if (!in_order(queue, i)) continue;
      if (try_small(*queue.communicator, message)) {
        message.done = true;
        --queue.messages_left;
        moved = true;
        continue;
      }
      if (message.looks < kLooks) continue;
      const auto execution = queue.communicator->begin(*message.request);
      if (!execution) return tl::make_unexpected(execution.error());
      message.execution = *execution;
      moved = true;
    }
    if (message.execution != nullptr) {
      moved |= message.execution->advance();
      if (!message.execution->done()) continue;
      queue.communicator->finish(message.execution);
    }
    message.done = true;
    --queue.messages_left;
  }
  return moved;
}

bool Batch::could_advance() const {
  for (std::size_t i = 0; i < n_queues_; ++i) {
    const Queue& queue = queues_[i];
    if (queue.done()) continue;
    if (!queue.communicator->state()) return true;
    if (queue.collective != nullptr && queue.collective->could_advance()) return true;
    for (const PointToPoint& message : queue.messages)
      if (!message.done && message.execution != nullptr && message.execution->could_advance()) return true;
  }
  return false;
}

void Batch::fail_queue(Queue& queue, const Error& error) {
  const bool refused = queue.communicator->state().has_value() && error.code == hocketInvalidArgument;
  const Error told = refused ? error : queue.communicator->end_with(error);
  if (queue.collective != nullptr) queue.communicator->finish(queue.collective);
  for (const PointToPoint& message : queue.messages)
    if (!message.done && message.execution != nullptr) queue.communicator->finish(message.execution);
  queue.collective = nullptr;
  queue.failed = true;
  if (result_) result_ = tl::make_unexpected(told);
}

Status Batch::check(std::chrono::steady_clock::duration waited) {
  for (std::size_t i = 0; i < n_queues_; ++i) {
    Queue& queue = queues_[i];
    if (queue.done()) continue;
    if (const Status status = queue.communicator->check(waited); !status) fail_queue(queue, status.error());
  }
  return {};
}

}  // namespace hocket
