// SPDX-License-Identifier: Apache-2.0
#include "comm/group.h"

#include <algorithm>
#include <deque>
#include <future>

#include "comm/batch.h"

namespace hocket {
namespace {

// What one thread has collected since its outermost group start. Keeps its memory from group to group.
struct Group {
  struct Member {
    const void* handle = nullptr;
    CommunicatorTable::Guard guard;  // held until the group ends
  };
  struct Call {
    Communicator* communicator = nullptr;
    const void* handle = nullptr;
    Request request;
  };

  std::vector<Member> members;
  std::vector<Call> calls;
  std::vector<const void*> streams;  // those named by calls, without duplicates
  Status first_error;
  Batch batch;

  void clear() {
    calls.clear();
    streams.clear();
    members.clear();
    batch.clear();
  }
};

Group& thread_group() {
  thread_local Group group;
  return group;
}

// Asked at every call, so without the lazy construction of the group itself.
[[gnu::tls_model("initial-exec")]] constinit thread_local int group_depth = 0;

tl::unexpected<Error> refuse_handle(HandleState state, const void* handle) {
  if (state == HandleState::busy)
    return fail(hocketInvalidUsage, "communicator {}: another thread is inside a call on it; one thread at a time uses a "
                "communicator, make one per thread", fmt::ptr(handle));
  return fail(hocketInvalidArgument, "communicator {}: not a live communicator (never made, destroyed, or made before a fork)",
              fmt::ptr(handle));
}

Status check_call(const Communicator& communicator, Request& request) {
  if (communicator.finalized())
    return fail(hocketInvalidUsage, "{}: the communicator was finalized; only destroy and queries are left", request.function());
  // ReduceScatterV names this rank's count only in the list.
  if (request.vector_form && request.collective == Collective::reduce_scatter && request.send_counts != nullptr)
    request.count = request.send_counts[communicator.rank()];
  return validate(request, communicator.rank(), communicator.n_ranks());
}

// A blocking call: after the work that streams still have for the communicator.
Status run_now(Communicator& communicator, Request& request) {
  if (!communicator.streams_used()) return communicator.run(request);
  communicator.await_ticket(communicator.draw_ticket());
  Status status = communicator.run(request);
  communicator.pass_ticket();
  return status;
}

// Work of one or more communicators that a stream runs later: keeps all it needs alive.
struct StreamJob {
  struct Call {
    std::shared_ptr<Communicator> communicator;
    Request request;
  };
  std::vector<std::pair<std::shared_ptr<Communicator>, std::uint64_t>> tickets;  // each communicator once
  std::deque<Call> calls;

  void add(std::shared_ptr<Communicator> communicator, Request request) {
    communicator->use_streams();
    const auto same = [&](const auto& t) { return t.first == communicator; };
    if (std::none_of(tickets.begin(), tickets.end(), same)) tickets.emplace_back(communicator, communicator->draw_ticket());
    request.own_counts(communicator->n_ranks());
    calls.push_back({std::move(communicator), std::move(request)});
  }

  Status run() {
    for (const auto& [communicator, ticket] : tickets) communicator->await_ticket(ticket);
    Batch batch;
    for (Call& call : calls) batch.add(call.communicator.get(), &call.request);
    const Status status = batch.run();
    for (const auto& [communicator, ticket] : tickets) communicator->pass_ticket();
    return status;
  }
};

Result<std::shared_ptr<Stream>> pin_stream(const void* handle) {
  auto stream = streams().pin(handle);
  if (stream == nullptr)
    return fail(hocketInvalidArgument, "stream {}: not a live host stream; make it with hocketStreamCreate",
                fmt::ptr(handle));
  return stream;
}

Status collect(Group& group, const void* handle, const void* stream, Request& request) {
  auto member = std::find_if(group.members.begin(), group.members.end(), [&](const auto& m) { return m.handle == handle; });
  if (member == group.members.end()) {
    HandleState state = HandleState::dead;
    auto guard = communicators().take(handle, state);
    if (!guard) return refuse_handle(state, handle);
    group.members.push_back({handle, std::move(guard)});
    member = group.members.end() - 1;
  }
  if (request.vector_form || member->guard->find_hot(request) == nullptr) HOCKET_TRY(check_call(*member->guard, request));
  if (stream != nullptr && std::find(group.streams.begin(), group.streams.end(), stream) == group.streams.end()) {
    if (auto pinned = pin_stream(stream); !pinned) return tl::make_unexpected(pinned.error());
    group.streams.push_back(stream);
  }
  group.calls.push_back({member->guard.get(), handle, std::move(request)});
  if (group.calls.back().request.vector_form) group.calls.back().request.own_counts(member->guard->n_ranks());
  return {};
}

Status run_group_now(Group& group) {
  for (auto& call : group.calls) group.batch.add(call.communicator, &call.request);
  for (auto& member : group.members)
    if (member.guard->streams_used()) member.guard->await_ticket(member.guard->draw_ticket());
  Status status = group.batch.run();
  for (auto& member : group.members)
    if (member.guard->streams_used()) member.guard->pass_ticket();
  return status;
}

// The whole group is one job of the first stream; the others wait for it, so that each keeps its order.
Status enqueue_group(Group& group) {
  auto job = std::make_shared<StreamJob>();
  for (auto& call : group.calls) job->add(communicators().pin(call.handle), std::move(call.request));
  auto finished = std::make_shared<std::promise<void>>();
  std::shared_future<void> done = finished->get_future();
  for (std::size_t i = 1; i < group.streams.size(); ++i) {
    auto stream = pin_stream(group.streams[i]);
    if (!stream) return tl::make_unexpected(stream.error());
    (*stream)->enqueue([done] {
      done.wait();
      return Status{};
    });
  }
  auto first = pin_stream(group.streams[0]);
  if (!first) return tl::make_unexpected(first.error());
  (*first)->enqueue([job, finished] {
    Status status = job->run();
    finished->set_value();
    return status;
  });
  return {};
}

}  // namespace

Status submit(const void* handle, const void* stream, Request& request) {
  if (group_depth > 0) {
    Group& group = thread_group();
    Status status = collect(group, handle, stream, request);
    if (!status && group.first_error) group.first_error = status;
    return status;
  }
  HandleState state = HandleState::dead;
  const auto guard = communicators().take(handle, state);
  if (!guard) [[unlikely]]
    return refuse_handle(state, handle);
  if (stream == nullptr && !guard->streams_used() && !request.vector_form)
    if (HotCall* const hot = guard->find_hot(request)) return guard->run_hot(*hot, request);
  HOCKET_TRY(check_call(*guard, request));
  if (request.point_to_point() && request.root == guard->rank())
    return fail(hocketInvalidUsage, "{} to self outside a group; put the send and the receive into one group",
                request.function());
  if (stream == nullptr) return run_now(*guard, request);
  HOCKET_TRY(guard->state());
  auto pinned = pin_stream(stream);
  if (!pinned) return tl::make_unexpected(pinned.error());
  auto job = std::make_shared<StreamJob>();
  job->add(communicators().pin(handle), std::move(request));
  (*pinned)->enqueue([job = std::move(job)] { return job->run(); });
  return {};
}

void group_start() { ++group_depth; }

Status group_end() {
  if (group_depth == 0) return fail(hocketInvalidUsage, "hocketGroupEnd without hocketGroupStart in this thread");
  if (--group_depth > 0) return {};
  Group& group = thread_group();
  // A group with a refused call sends nothing: ranks whose group was right learn of it from the stall inspector.
  Status status = std::exchange(group.first_error, Status{});
  if (status && !group.calls.empty()) status = group.streams.empty() ? run_group_now(group) : enqueue_group(group);
  group.clear();
  return status;
}

}  // namespace hocket
