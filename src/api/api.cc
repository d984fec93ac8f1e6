// SPDX-License-Identifier: Apache-2.0
// One short noexcept function per C entry point: fill a request or check the pointers, call one C++ function, turn an Error
// into a code and keep its text.
#include <cstring>
#include <new>
#include <string>

#include "comm/group.h"
#include "comm/memory.h"
#include "comm/registry.h"
#include "hocket/hocket.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;

// How long destroy waits for work on streams and for a call in another thread before it gives up on them.
constexpr milliseconds kDrainLimit{5000};
constexpr milliseconds kAbortLimit{1000};

std::string& thread_error() {
  thread_local std::string text;
  return text;
}

hocketResult_t finish(const Status& status) {
  if (status) [[likely]]
    return hocketSuccess;
  thread_error() = status.error().text;
  return status.error().code;
}

// Runs `body`, which returns a Status; no exception passes the C boundary.
template <class Body>
hocketResult_t guarded(Body&& body) noexcept {
  try {
    return finish(body());
  } catch (const std::bad_alloc&) {
    return hocketSystemError;  // no memory for a text either
  } catch (const std::exception& error) {
    return finish(fail(hocketInternalError, "unexpected exception: {}", error.what()));
  } catch (...) {
    return hocketInternalError;
  }
}

tl::unexpected<Error> null_argument(const char* function, const char* argument) {
  return fail(hocketInvalidArgument, "{}: {} is NULL", function, argument);
}

Result<std::shared_ptr<Communicator>> pin(const char* function, hocketComm_t comm) {
  auto communicator = communicators().pin(comm);
  if (communicator == nullptr)
    return fail(hocketInvalidArgument, "{}: communicator {} is not a live communicator (never made, destroyed, or made before "
                "a fork)", function, fmt::ptr(static_cast<void*>(comm)));
  return communicator;
}

// Exclusive use for functions that change the communicator.
Result<CommunicatorTable::Guard> take(const char* function, hocketComm_t comm) {
  HandleState state = HandleState::dead;
  auto guard = communicators().take(comm, state);
  if (guard) return guard;
  if (state == HandleState::busy)
    return fail(hocketInvalidUsage, "{}: another thread is inside a call on this communicator", function);
  return tl::make_unexpected(pin(function, nullptr).error());
}

Status check_size(const char* function, int n_ranks, int rank) {
  if (n_ranks < 1 || n_ranks > (1 << 20))
    return fail(hocketInvalidArgument, "{}: {} ranks; a communicator has 1 to {} ranks", function, n_ranks, 1 << 20);
  if (rank < 0 || rank >= n_ranks)
    return fail(hocketInvalidArgument, "{}: rank {} of {} ranks; ranks are 0 to {}", function, rank, n_ranks, n_ranks - 1);
  return {};
}

tl::unexpected<Error> too_many(const char* function) {
  return fail(hocketSystemError, "{}: too many live communicators in this process; destroy some", function);
}

Status init_rank(const char* function, hocketComm_t* comm, int n_ranks, const hocketUniqueId& id, int rank,
                 const hocketConfig_t* config) {
  if (comm == nullptr) return null_argument(function, "comm");
  *comm = nullptr;
  HOCKET_TRY(check_size(function, n_ranks, rank));
  auto settings = read_settings(config);
  if (!settings) return tl::make_unexpected(settings.error());
  auto made = std::make_shared<Communicator>(rank, n_ranks, std::move(*settings));
  CommunicatorTable::Guard guard;
  // Stored before the wait, so that another thread can abort it.
  void* const handle = communicators().insert(made, &guard);
  if (handle == nullptr) return too_many(function);
  __atomic_store_n(comm, static_cast<hocketComm_t>(handle), __ATOMIC_RELEASE);
  Status status = made->connect(id);
  guard.release();
  if (status) return {};
  communicators().retire(handle, kAbortLimit);
  __atomic_store_n(comm, static_cast<hocketComm_t>(nullptr), __ATOMIC_RELEASE);
  return tl::make_unexpected(std::move(status).error().with_context(fmt::format("{}: rank {} of {}", function, rank, n_ranks)));
}

Status init_all(const char* function, hocketComm_t* comms, int n_ranks, const hocketConfig_t* config) {
  if (comms == nullptr) return null_argument(function, "comms");
  HOCKET_TRY(check_size(function, n_ranks, 0));
  const auto settings = read_settings(config);
  if (!settings) return tl::make_unexpected(settings.error());
  std::vector<std::shared_ptr<Communicator>> made;
  for (int rank = 0; rank < n_ranks; ++rank) made.push_back(std::make_shared<Communicator>(rank, n_ranks, *settings));
  HOCKET_TRY(Communicator::connect_all(made));
  for (int rank = 0; rank < n_ranks; ++rank) {
    comms[rank] = static_cast<hocketComm_t>(communicators().insert(made[static_cast<std::size_t>(rank)]));
    if (comms[rank] != nullptr) continue;
    while (rank-- > 0) communicators().retire(comms[rank], kAbortLimit);
    return too_many(function);
  }
  return {};
}

Status destroy(hocketComm_t comm) {
  auto communicator = pin("hocketCommDestroy", comm);
  if (!communicator) return tl::make_unexpected(communicator.error());
  Status status;
  if (!(*communicator)->state() || !(*communicator)->drain(kDrainLimit)) {
    const auto left = (*communicator)->pending();
    (*communicator)->abort();
    if (left != 0)
      status = fail(hocketInvalidUsage, "hocketCommDestroy: destroyed with {} calls pending on streams; synchronise the "
                    "streams first", left);
  }
  if (!communicators().retire(comm, kAbortLimit))
    return fail(hocketInvalidUsage, "hocketCommDestroy: another thread is inside a call on this communicator; let it return, "
                "or use hocketCommAbort");
  return status;
}

Status abort(hocketComm_t comm) {
  auto communicator = pin("hocketCommAbort", comm);
  if (!communicator) return tl::make_unexpected(communicator.error());
  (*communicator)->abort();
  // An init that ends with this error retires the handle itself.
  if (!communicators().retire(comm, kAbortLimit) && communicators().pin(comm) != nullptr)
    return fail(hocketInvalidUsage, "hocketCommAbort: a call on this communicator has not returned within {} ms; is it in a "
                "user-defined reduction?", kAbortLimit.count());
  return {};
}

// Fills a request in place and submits it.
template <class Fill>
hocketResult_t call(Collective collective, hocketComm_t comm, hocketStream_t stream, Fill&& fill) noexcept {
  return guarded([&] {
    Request request;
    request.collective = collective;
    fill(request);
    return submit(comm, stream, request);
  });
}

void set_buffers(Request& request, const void* send, void* recv, std::size_t count, hocketDataType_t datatype) {
  request.send = static_cast<const std::byte*>(send);
  request.recv = static_cast<std::byte*>(recv);
  request.count = count;
  request.datatype = datatype;
}

}  // namespace
}  // namespace hocket

using namespace hocket;

extern "C" {

// ---- Library ----

hocketResult_t hocketGetVersion(int* version) noexcept {
  return guarded([&]() -> Status {
    if (version == nullptr) return null_argument("hocketGetVersion", "version");
    *version = HOCKET_VERSION_CODE;
    return {};
  });
}

const char* hocketGetErrorString(hocketResult_t result) noexcept {
  switch (result) {
    case hocketSuccess: return "success";
    case hocketUnhandledCudaError: return "unhandled CUDA error";
    case hocketSystemError: return "system error";
    case hocketInternalError: return "internal error";
    case hocketInvalidArgument: return "invalid argument";
    case hocketInvalidUsage: return "invalid usage";
    case hocketRemoteError: return "remote error";
    case hocketInProgress: return "in progress";
    case hocketErrorMismatch: return "mismatched calls";
    case hocketErrorTimeout: return "time limit passed";
    case hocketNumResults: break;
  }
  return "unknown result code";
}

const char* hocketGetLastError(hocketComm_t comm) noexcept {
  std::string& text = thread_error();
  guarded([&]() -> Status {
    if (comm == nullptr) return {};
    if (const auto communicator = communicators().pin(comm))
      if (const Status state = communicator->state(); !state) text = state.error().text;
    return {};
  });
  return text.c_str();
}

// ---- Life cycle ----

hocketResult_t hocketGetUniqueId(hocketUniqueId* uniqueId) noexcept {
  return guarded([&]() -> Status {
    if (uniqueId == nullptr) return null_argument("hocketGetUniqueId", "uniqueId");
    const auto id = make_unique_id();
    if (!id) return tl::make_unexpected(id.error());
    *uniqueId = *id;
    return {};
  });
}

hocketResult_t hocketCommInitRank(hocketComm_t* comm, int nranks, hocketUniqueId commId, int rank) noexcept {
  return guarded([&] { return init_rank("hocketCommInitRank", comm, nranks, commId, rank, nullptr); });
}

hocketResult_t hocketCommInitRankConfig(hocketComm_t* comm, int nranks, hocketUniqueId commId, int rank,
                                        hocketConfig_t* config) noexcept {
  return guarded([&] { return init_rank("hocketCommInitRankConfig", comm, nranks, commId, rank, config); });
}

hocketResult_t hocketCommInitAll(hocketComm_t* comms, int ndev, const int*) noexcept {
  return guarded([&] { return init_all("hocketCommInitAll", comms, ndev, nullptr); });
}

hocketResult_t hocketCommInitAllConfig(hocketComm_t* comms, int ndev, const int*, hocketConfig_t* config) noexcept {
  return guarded([&] { return init_all("hocketCommInitAllConfig", comms, ndev, config); });
}

hocketResult_t hocketCommInitFromEnv(hocketComm_t* comm, hocketConfig_t* config) noexcept {
  return guarded([&]() -> Status {
    if (comm == nullptr) return null_argument("hocketCommInitFromEnv", "comm");
    const auto launch = launch_from_environment();
    if (!launch) return tl::make_unexpected(launch.error());
    return init_rank("hocketCommInitFromEnv", comm, launch->n_ranks, launch->id, launch->rank, config);
  });
}

hocketResult_t hocketCommFinalize(hocketComm_t comm) noexcept {
  return guarded([&]() -> Status {
    auto communicator = pin("hocketCommFinalize", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    auto guard = take("hocketCommFinalize", comm);
    if (!guard) return tl::make_unexpected(guard.error());
    (*guard)->finalize();
    guard->release();
    if (!(*communicator)->drain(kDrainLimit))
      return fail(hocketInProgress, "hocketCommFinalize: {} calls are still pending on streams", (*communicator)->pending());
    return (*communicator)->state();
  });
}

hocketResult_t hocketCommDestroy(hocketComm_t comm) noexcept {
  return guarded([&] { return destroy(comm); });
}

hocketResult_t hocketCommAbort(hocketComm_t comm) noexcept {
  return guarded([&] { return abort(comm); });
}

hocketResult_t hocketCommSplit(hocketComm_t, int, int, hocketComm_t*, hocketConfig_t*) noexcept {
  return guarded([]() -> Status {
    return fail(hocketInvalidUsage, "hocketCommSplit: not in this version; make a new communicator of those ranks with a new "
                "unique id");
  });
}

hocketResult_t hocketCommShrink(hocketComm_t, int*, int, hocketComm_t*, hocketConfig_t*, int) noexcept {
  return guarded([]() -> Status {
    return fail(hocketInvalidUsage, "hocketCommShrink: not in this version; abort, then make a new communicator of the "
                "remaining ranks with a new unique id");
  });
}

hocketResult_t hocketCommGetAsyncError(hocketComm_t comm, hocketResult_t* asyncError) noexcept {
  return guarded([&]() -> Status {
    if (asyncError == nullptr) return null_argument("hocketCommGetAsyncError", "asyncError");
    const auto communicator = pin("hocketCommGetAsyncError", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    const Status state = (*communicator)->state();
    *asyncError = state ? hocketSuccess : state.error().code;
    return {};
  });
}

hocketResult_t hocketCommCount(hocketComm_t comm, int* count) noexcept {
  return guarded([&]() -> Status {
    if (count == nullptr) return null_argument("hocketCommCount", "count");
    const auto communicator = pin("hocketCommCount", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    *count = (*communicator)->n_ranks();
    return {};
  });
}

hocketResult_t hocketCommUserRank(hocketComm_t comm, int* rank) noexcept {
  return guarded([&]() -> Status {
    if (rank == nullptr) return null_argument("hocketCommUserRank", "rank");
    const auto communicator = pin("hocketCommUserRank", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    *rank = (*communicator)->rank();
    return {};
  });
}

hocketResult_t hocketCommCuDevice(hocketComm_t comm, int* device) noexcept {
  return guarded([&]() -> Status {
    if (device == nullptr) return null_argument("hocketCommCuDevice", "device");
    const auto communicator = pin("hocketCommCuDevice", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    *device = -1;
    return {};
  });
}

hocketResult_t hocketCommDescribe(hocketComm_t comm, char* text, size_t* length) noexcept {
  return guarded([&]() -> Status {
    if (length == nullptr) return null_argument("hocketCommDescribe", "length");
    auto guard = take("hocketCommDescribe", comm);
    if (!guard) return tl::make_unexpected(guard.error());
    const std::string json = (*guard)->describe();
    const std::size_t room = *length;
    *length = json.size() + 1;
    if (text == nullptr) return {};
    if (room < json.size() + 1)
      return fail(hocketInvalidArgument, "hocketCommDescribe: the text needs {} bytes, the buffer has {}", json.size() + 1, room);
    std::memcpy(text, json.c_str(), json.size() + 1);
    return {};
  });
}

// ---- Memory ----

hocketResult_t hocketMemAlloc(void** ptr, size_t size) noexcept {
  return guarded([&]() -> Status {
    if (ptr == nullptr) return null_argument("hocketMemAlloc", "ptr");
    const auto memory = allocate_memory(size);
    if (!memory) return tl::make_unexpected(memory.error());
    *ptr = *memory;
    return {};
  });
}

hocketResult_t hocketMemFree(void* ptr) noexcept {
  return guarded([&]() -> Status {
    if (ptr == nullptr) return {};
    return free_memory(ptr);
  });
}

hocketResult_t hocketCommRegister(hocketComm_t comm, void* buff, size_t size, void** handle) noexcept {
  return guarded([&]() -> Status {
    if (handle == nullptr) return null_argument("hocketCommRegister", "handle");
    if (buff == nullptr && size != 0) return null_argument("hocketCommRegister", "buff");
    const auto communicator = pin("hocketCommRegister", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    *handle = buff;
    return {};
  });
}

hocketResult_t hocketCommDeregister(hocketComm_t comm, void*) noexcept {
  return guarded([&]() -> Status {
    const auto communicator = pin("hocketCommDeregister", comm);
    if (!communicator) return tl::make_unexpected(communicator.error());
    return {};
  });
}

// ---- Operations ----

hocketResult_t hocketRedOpCreatePreMulSum(hocketRedOp_t* op, void* scalar, hocketDataType_t datatype,
                                          hocketScalarResidence_t residence, hocketComm_t comm) noexcept {
  return guarded([&]() -> Status {
    if (op == nullptr) return null_argument("hocketRedOpCreatePreMulSum", "op");
    auto guard = take("hocketRedOpCreatePreMulSum", comm);
    if (!guard) return tl::make_unexpected(guard.error());
    const auto made = (*guard)->custom_ops().add_premultiplied(scalar, datatype, residence);
    if (!made) return tl::make_unexpected(made.error());
    *op = *made;
    return {};
  });
}

hocketResult_t hocketRedOpCreateUser(hocketRedOp_t* op, hocketUserReduceFn fn, void* userData, hocketComm_t comm) noexcept {
  return guarded([&]() -> Status {
    if (op == nullptr) return null_argument("hocketRedOpCreateUser", "op");
    auto guard = take("hocketRedOpCreateUser", comm);
    if (!guard) return tl::make_unexpected(guard.error());
    const auto made = (*guard)->custom_ops().add_user(fn, userData);
    if (!made) return tl::make_unexpected(made.error());
    *op = *made;
    return {};
  });
}

hocketResult_t hocketRedOpDestroy(hocketRedOp_t op, hocketComm_t comm) noexcept {
  return guarded([&]() -> Status {
    auto guard = take("hocketRedOpDestroy", comm);
    if (!guard) return tl::make_unexpected(guard.error());
    return (*guard)->custom_ops().remove(op);
  });
}

// ---- Collectives ----

hocketResult_t hocketAllReduce(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                               hocketRedOp_t op, hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::all_reduce, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, count, datatype);
    request.op = op;
  });
}

hocketResult_t hocketBroadcast(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype, int root,
                               hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::broadcast, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, count, datatype);
    request.root = root;
  });
}

hocketResult_t hocketBcast(void* buff, size_t count, hocketDataType_t datatype, int root, hocketComm_t comm,
                           hocketStream_t stream) noexcept {
  return hocketBroadcast(buff, buff, count, datatype, root, comm, stream);
}

hocketResult_t hocketReduce(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype, hocketRedOp_t op,
                            int root, hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::reduce, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, count, datatype);
    request.op = op;
    request.root = root;
  });
}

hocketResult_t hocketAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, hocketDataType_t datatype,
                               hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::all_gather, comm, stream,
              [&](Request& request) { set_buffers(request, sendbuff, recvbuff, sendcount, datatype); });
}

hocketResult_t hocketReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, hocketDataType_t datatype,
                                   hocketRedOp_t op, hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::reduce_scatter, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, recvcount, datatype);
    request.op = op;
  });
}

hocketResult_t hocketAlltoAll(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                              hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::all_to_all, comm, stream,
              [&](Request& request) { set_buffers(request, sendbuff, recvbuff, count, datatype); });
}

hocketResult_t hocketGather(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype, int root,
                            hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::gather, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, count, datatype);
    request.root = root;
  });
}

hocketResult_t hocketScatter(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype, int root,
                             hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::scatter, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, count, datatype);
    request.root = root;
  });
}

hocketResult_t hocketBarrier(hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::barrier, comm, stream, [](Request&) {});
}

hocketResult_t hocketAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t recvcounts[],
                                const size_t displs[], hocketDataType_t datatype, hocketComm_t comm,
                                hocketStream_t stream) noexcept {
  return call(Collective::all_gather, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, sendcount, datatype);
    request.vector_form = true;
    request.recv_counts = recvcounts;
    request.recv_displs = displs;
  });
}

hocketResult_t hocketReduceScatterV(const void* sendbuff, void* recvbuff, const size_t recvcounts[],
                                    hocketDataType_t datatype, hocketRedOp_t op, hocketComm_t comm,
                                    hocketStream_t stream) noexcept {
  return call(Collective::reduce_scatter, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, 0, datatype);
    request.vector_form = true;
    request.op = op;
    request.send_counts = recvcounts;
  });
}

hocketResult_t hocketAlltoAllV(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[], void* recvbuff,
                               const size_t recvcounts[], const size_t rdispls[], hocketDataType_t datatype,
                               hocketComm_t comm, hocketStream_t stream) noexcept {
  return call(Collective::all_to_all, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, 0, datatype);
    request.vector_form = true;
    request.send_counts = sendcounts;
    request.send_displs = sdispls;
    request.recv_counts = recvcounts;
    request.recv_displs = rdispls;
  });
}

hocketResult_t hocketGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t recvcounts[],
                             const size_t displs[], hocketDataType_t datatype, int root, hocketComm_t comm,
                             hocketStream_t stream) noexcept {
  return call(Collective::gather, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, sendcount, datatype);
    request.vector_form = true;
    request.root = root;
    request.recv_counts = recvcounts;
    request.recv_displs = displs;
  });
}

hocketResult_t hocketScatterV(const void* sendbuff, const size_t sendcounts[], const size_t displs[], void* recvbuff,
                              size_t recvcount, hocketDataType_t datatype, int root, hocketComm_t comm,
                              hocketStream_t stream) noexcept {
  return call(Collective::scatter, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, recvbuff, recvcount, datatype);
    request.vector_form = true;
    request.root = root;
    request.send_counts = sendcounts;
    request.send_displs = displs;
  });
}

hocketResult_t hocketSend(const void* sendbuff, size_t count, hocketDataType_t datatype, int peer, hocketComm_t comm,
                          hocketStream_t stream) noexcept {
  return call(Collective::send, comm, stream, [&](Request& request) {
    set_buffers(request, sendbuff, nullptr, count, datatype);
    request.root = peer;
  });
}

hocketResult_t hocketRecv(void* recvbuff, size_t count, hocketDataType_t datatype, int peer, hocketComm_t comm,
                          hocketStream_t stream) noexcept {
  return call(Collective::recv, comm, stream, [&](Request& request) {
    set_buffers(request, nullptr, recvbuff, count, datatype);
    request.root = peer;
  });
}

// ---- Groups and streams ----

hocketResult_t hocketGroupStart(void) noexcept {
  group_start();
  return hocketSuccess;
}

hocketResult_t hocketGroupEnd(void) noexcept {
  return guarded([] { return group_end(); });
}

hocketResult_t hocketStreamCreate(hocketStream_t* stream) noexcept {
  return guarded([&]() -> Status {
    if (stream == nullptr) return null_argument("hocketStreamCreate", "stream");
    *stream = static_cast<hocketStream_t>(streams().insert(std::make_shared<Stream>()));
    return {};
  });
}

hocketResult_t hocketStreamSynchronize(hocketStream_t stream) noexcept {
  return guarded([&]() -> Status {
    const auto pinned = streams().pin(stream);
    if (pinned == nullptr) return fail(hocketInvalidArgument, "hocketStreamSynchronize: not a live host stream");
    return pinned->synchronize();
  });
}

hocketResult_t hocketStreamQuery(hocketStream_t stream) noexcept {
  hocketResult_t result = hocketSuccess;
  const hocketResult_t status = guarded([&]() -> Status {
    const auto pinned = streams().pin(stream);
    if (pinned == nullptr) return fail(hocketInvalidArgument, "hocketStreamQuery: not a live host stream");
    if (!pinned->idle()) result = hocketInProgress;
    return {};
  });
  return status == hocketSuccess ? result : status;
}

hocketResult_t hocketStreamDestroy(hocketStream_t stream) noexcept {
  return guarded([&]() -> Status {
    const auto pinned = streams().pin(stream);
    if (pinned == nullptr) return fail(hocketInvalidArgument, "hocketStreamDestroy: not a live host stream");
    Status status = pinned->synchronize();
    if (!streams().retire(stream, kAbortLimit)) return fail(hocketInvalidUsage, "hocketStreamDestroy: destroyed twice");
    return status;
  });
}

}  // extern "C"
