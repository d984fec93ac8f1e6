// SPDX-License-Identifier: Apache-2.0
// One rank that this thread drives: its communicator, stream and buffers.
#pragma once

#include "buffer.h"
#include "hocket/hocket.h"
#include "options.h"

namespace hocket::perf {

class Rank {
 public:
  // Takes the communicator over. Buffers are first touched here, by the calling thread.
  Rank(const Options& options, int rank, hocketComm_t comm);
  ~Rank();
  Rank(Rank&& other) noexcept;
  Rank& operator=(Rank&&) = delete;

  int rank() const { return rank_; }
  hocketComm_t comm() const { return comm_; }
  hocketStream_t stream() const { return stream_; }  // NULL: blocking calls
  const GuardedBuffer& send() const { return send_; }
  const GuardedBuffer& recv() const { return recv_; }  // in place: both

  // Operations made for this communicator and type; the built-in ones need no releasing, but may be released.
  hocketRedOp_t acquire_op(Op op, const DataType& type) const;
  void release_op(Op op, hocketRedOp_t value) const;

 private:
  int rank_;
  hocketComm_t comm_;
  hocketStream_t stream_ = nullptr;
  GuardedBuffer send_;
  GuardedBuffer recv_;
};

}  // namespace hocket::perf
