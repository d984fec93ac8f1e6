// SPDX-License-Identifier: Apache-2.0
#include "enqueue/request.h"

#include <algorithm>
#include <numeric>

namespace hocket {
namespace {

// Bytes from the first to past the last element that a call touches in one buffer.
struct Span {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;

  bool overlaps(const Span& other) const {
    if (bytes == 0 || other.bytes == 0) return false;
    const auto a = reinterpret_cast<std::uintptr_t>(begin), b = reinterpret_cast<std::uintptr_t>(other.begin);
    return a < b + other.bytes && b < a + bytes;
  }
};

tl::unexpected<Error> refuse(const Request& request, const std::string& text) {
  return fail(hocketInvalidArgument, "{}: {}", request.function(), text);
}

// Elements of `n` blocks that follow one another.
Result<std::size_t> repeated(const Request& request, std::size_t n) {
  std::size_t elements = 0, bytes = 0;
  if (__builtin_mul_overflow(request.count, n, &elements) ||
      __builtin_mul_overflow(elements, element_bytes(request.datatype), &bytes) || bytes > PTRDIFF_MAX)
    return refuse(request, fmt::format("count {} of {} for {} ranks overflows the address space", request.count,
                                       datatype_name(request.datatype), n));
  return elements;
}

// Extent of a buffer with listed blocks; refuses overflow and blocks that overlap where the buffer is written.
Result<std::size_t> listed(const Request& request, const char* what, const std::size_t* counts, const std::size_t* displs,
                           int n_ranks, bool written) {
  if (counts == nullptr) return refuse(request, fmt::format("{} counts are NULL", what));
  std::vector<std::pair<std::size_t, std::size_t>> blocks;
  std::size_t end_of_all = 0, running = 0;
  for (int i = 0; i < n_ranks; ++i) {
    const std::size_t begin = displs != nullptr ? displs[i] : running;
    std::size_t end = 0, bytes = 0;
    if (__builtin_add_overflow(begin, counts[i], &end) ||
        __builtin_mul_overflow(end, element_bytes(request.datatype), &bytes) || bytes > PTRDIFF_MAX)
      return refuse(request, fmt::format("{} count {} at displacement {} of rank {} overflows the address space", what,
                                         counts[i], begin, i));
    running = end;
    if (counts[i] == 0) continue;
    end_of_all = std::max(end_of_all, end);
    if (written && displs != nullptr) blocks.emplace_back(begin, end);
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < blocks.size(); ++i)
    if (blocks[i].first < blocks[i - 1].second)
      return refuse(request, fmt::format("{} blocks overlap at element {}; every rank's block needs its own place", what,
                                         blocks[i].first));
  return end_of_all;
}

Status check_buffer(const Request& request, const char* name, const void* pointer, std::size_t elements) {
  if (elements == 0) return {};
  if (pointer == nullptr) return refuse(request, fmt::format("{} is NULL but the call moves {} elements", name, elements));
  const std::size_t size = element_bytes(request.datatype);
  if (reinterpret_cast<std::uintptr_t>(pointer) % size != 0)
    return refuse(request, fmt::format("{} {} is not aligned to {} bytes, the size of a {}; move the buffer", name,
                                       fmt::ptr(pointer), size, datatype_name(request.datatype)));
  return {};
}

Result<BufferUse> use_of(const Request& r, int rank, int n_ranks) {
  BufferUse use;
  const auto n = static_cast<std::size_t>(n_ranks);
  const auto me = static_cast<std::size_t>(rank);
  const auto one = repeated(r, 1);
  if (!one) return tl::make_unexpected(one.error());
  const bool is_root = r.root == rank;
  switch (r.collective) {
    case Collective::all_reduce:
      use.send_elements = use.recv_elements = r.count;
      break;
    case Collective::broadcast:
      use.send_elements = is_root ? r.count : 0;
      use.recv_elements = r.count;
      break;
    case Collective::reduce:
      use.send_elements = r.count;
      use.recv_elements = is_root ? r.count : 0;
      break;
    case Collective::all_gather:
    case Collective::gather: {
      use.send_elements = r.count;
      const bool receives = r.collective == Collective::all_gather || is_root;
      if (receives) {
        const auto whole = r.vector_form ? listed(r, "receive", r.recv_counts, r.recv_displs, n_ranks, true) : repeated(r, n);
        if (!whole) return tl::make_unexpected(whole.error());
        use.recv_elements = *whole;
        if (r.vector_form && r.recv_counts[me] != r.count)
          return refuse(r, fmt::format("sendcount {} differs from recvcounts[{}] = {}, this rank's own block", r.count, rank,
                                       r.recv_counts[me]));
        use.in_place_recv_offset =
            r.vector_form ? (r.recv_displs != nullptr ? r.recv_displs[me]
                                                      : std::accumulate(r.recv_counts, r.recv_counts + me, std::size_t{0}))
                          : me * r.count;
      }
      use.in_place_rule = r.vector_form ? "sendbuff == recvbuff + displs[rank]" : "sendbuff == recvbuff + rank * sendcount";
      break;
    }
    case Collective::reduce_scatter:
    case Collective::scatter: {
      use.recv_elements = r.count;
      const bool sends = r.collective == Collective::reduce_scatter || is_root;
      if (sends) {
        const auto whole = r.vector_form ? listed(r, "send", r.send_counts, r.send_displs, n_ranks, false) : repeated(r, n);
        if (!whole) return tl::make_unexpected(whole.error());
        use.send_elements = *whole;
        if (r.vector_form && r.send_counts[me] != r.count)
          return refuse(r, fmt::format("recvcount {} differs from sendcounts[{}] = {}, this rank's own block", r.count, rank,
                                       r.send_counts[me]));
        use.in_place_send_offset =
            r.vector_form ? (r.send_displs != nullptr ? r.send_displs[me]
                                                      : std::accumulate(r.send_counts, r.send_counts + me, std::size_t{0}))
                          : me * r.count;
      }
      use.in_place_rule = r.vector_form ? "recvbuff == the start of this rank's block in sendbuff"
                                          : "recvbuff == sendbuff + rank * recvcount";
      break;
    }
    case Collective::all_to_all: {
      const auto send = r.vector_form ? listed(r, "send", r.send_counts, r.send_displs, n_ranks, false) : repeated(r, n);
      if (!send) return tl::make_unexpected(send.error());
      const auto recv = r.vector_form ? listed(r, "receive", r.recv_counts, r.recv_displs, n_ranks, true) : repeated(r, n);
      if (!recv) return tl::make_unexpected(recv.error());
      if (r.vector_form && r.send_counts[me] != r.recv_counts[me])
        return refuse(r, fmt::format("sendcounts[{0}] = {1} differs from recvcounts[{0}] = {2}, this rank's block to itself",
                                     rank, r.send_counts[me], r.recv_counts[me]));
      use.send_elements = *send;
      use.recv_elements = *recv;
      use.has_in_place = false;
      break;
    }
    case Collective::send:
      use.send_elements = r.count;
      break;
    case Collective::recv:
      use.recv_elements = r.count;
      break;
    case Collective::barrier:
      break;
  }
  return use;
}

Status check_overlap(const Request& request, const BufferUse& use) {
  const std::size_t size = element_bytes(request.datatype);
  const Span send{request.send, use.send_elements * size};
  const Span recv{request.recv, use.recv_elements * size};
  if (!send.overlaps(recv)) return {};
  if (!use.has_in_place)
    return refuse(request, "sendbuff and recvbuff overlap; this call has no in-place form, use two buffers");
  if (request.send + use.in_place_send_offset * size == request.recv + use.in_place_recv_offset * size) return {};
  return refuse(request, fmt::format("sendbuff {} and recvbuff {} overlap but are not in place; in place means {}",
                                     fmt::ptr(request.send), fmt::ptr(request.recv), use.in_place_rule));
}

Status check_names(const Request& request, int n_ranks) {
  if (!is_datatype(request.datatype))
    return refuse(request, fmt::format("datatype {} is unknown; see hocketDataType_t", static_cast<int>(request.datatype)));
  if (request.reduction()) {
    const int op = request.op;
    if (op < 0) return refuse(request, fmt::format("operation {} is unknown; see hocketRedOp_t", op));
    if (op < kBuiltinOpCount && !supports(request.op, request.datatype))
      return refuse(request, fmt::format("operation {} is not defined for {}", builtin_op_name(op),
                                         datatype_name(request.datatype)));
  }
  if ((request.rooted() || request.point_to_point()) && (request.root < 0 || request.root >= n_ranks))
    return refuse(request, fmt::format("{} {} is not a rank of this communicator; ranks are 0 to {}",
                                       request.rooted() ? "root" : "peer", request.root, n_ranks - 1));
  return {};
}

}  // namespace

Result<BufferUse> buffer_use(const Request& request, int rank, int n_ranks) { return use_of(request, rank, n_ranks); }

Status validate(const Request& request, int rank, int n_ranks) {
  HOCKET_TRY(check_names(request, n_ranks));
  const auto use = use_of(request, rank, n_ranks);
  if (!use) return tl::make_unexpected(use.error());
  HOCKET_TRY(check_buffer(request, "sendbuff", request.send, use->send_elements));
  HOCKET_TRY(check_buffer(request, "recvbuff", request.recv, use->recv_elements));
  return check_overlap(request, *use);
}

void Request::own_counts(int n_ranks) {
  if (!vector_form) return;
  const auto n = static_cast<std::size_t>(n_ranks);
  const std::size_t** arrays[] = {&send_counts, &send_displs, &recv_counts, &recv_displs};
  storage.clear();
  storage.reserve(4 * n);
  for (const std::size_t** array : arrays) {
    if (*array == nullptr) continue;
    const std::size_t at = storage.size();
    storage.insert(storage.end(), *array, *array + n);
    *array = storage.data() + at;
  }
}

const char* Request::function() const {
  switch (collective) {
    case Collective::all_reduce: return "hocketAllReduce";
    case Collective::broadcast: return "hocketBroadcast";
    case Collective::reduce: return "hocketReduce";
    case Collective::all_gather: return vector_form ? "hocketAllGatherV" : "hocketAllGather";
    case Collective::reduce_scatter: return vector_form ? "hocketReduceScatterV" : "hocketReduceScatter";
    case Collective::all_to_all: return vector_form ? "hocketAlltoAllV" : "hocketAlltoAll";
    case Collective::gather: return vector_form ? "hocketGatherV" : "hocketGather";
    case Collective::scatter: return vector_form ? "hocketScatterV" : "hocketScatter";
    case Collective::barrier: return "hocketBarrier";
    case Collective::send: return "hocketSend";
    case Collective::recv: return "hocketRecv";
  }
  return "hocket";
}

CallRecord Request::record(std::uint64_t sequence, int n_ranks) const {
  CallRecord record;
  record.sequence = sequence;
  record.collective = static_cast<std::uint8_t>(collective);
  record.vector_form = vector_form ? 1 : 0;
  record.datatype = static_cast<std::uint8_t>(datatype);
  record.op = reduction() ? op : 0;
  record.root = rooted() ? root : 0;
  if (!vector_form) {
    record.count = count;
    return record;
  }
  // The counts that every rank has, as one number; other v-forms compare sizes pair by pair.
  const std::size_t* common = collective == Collective::all_gather       ? recv_counts
                              : collective == Collective::reduce_scatter ? send_counts
                                                                         : nullptr;
  if (common != nullptr)
    for (int i = 0; i < n_ranks; ++i) record.count = (record.count ^ common[i]) * 0x9e3779b97f4a7c15u + 1;
  return record;
}

}  // namespace hocket
