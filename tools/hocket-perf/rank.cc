// SPDX-License-Identifier: Apache-2.0
#include "rank.h"

#include <utility>

#include "errors.h"
#include "oracle.h"

namespace hocket::perf {

Rank::Rank(const Options& options, int rank, hocketComm_t comm)
    : rank_(rank),
      comm_(comm),
      send_(options.max_bytes, options.memory, rank),
      recv_(options.max_bytes, options.memory, rank) {
  if (options.host_stream) must(hocketStreamCreate(&stream_), "hocketStreamCreate", rank);
}

Rank::Rank(Rank&& other) noexcept
    : rank_(other.rank_),
      comm_(std::exchange(other.comm_, nullptr)),
      stream_(std::exchange(other.stream_, nullptr)),
      send_(std::move(other.send_)),
      recv_(std::move(other.recv_)) {}

Rank::~Rank() {
  if (stream_ != nullptr) must(hocketStreamDestroy(stream_), "hocketStreamDestroy", rank_);
  if (comm_ != nullptr) must(hocketCommDestroy(comm_), "hocketCommDestroy", rank_);
}

hocketRedOp_t Rank::acquire_op(Op op, const DataType& type) const {
  if (const auto builtin = builtin_op(op)) return *builtin;
  hocketRedOp_t value{};
  if (op == Op::user) {
    must(hocketRedOpCreateUser(&value, user_sum, nullptr, comm_), "hocketRedOpCreateUser", rank_, comm_);
    return value;
  }
  alignas(8) char scalar[8] = {};
  make_premul_scalar(type.type, rank_, scalar);
  must(hocketRedOpCreatePreMulSum(&value, scalar, type.type, hocketScalarHostImmediate, comm_),
       "hocketRedOpCreatePreMulSum", rank_, comm_);
  return value;
}

void Rank::release_op(Op op, hocketRedOp_t value) const {
  if (builtin_op(op)) return;
  must(hocketRedOpDestroy(value, comm_), "hocketRedOpDestroy", rank_, comm_);
}

}  // namespace hocket::perf
