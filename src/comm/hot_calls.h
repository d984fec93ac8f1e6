// SPDX-License-Identifier: Apache-2.0
// Small calls that were made before with the same arguments but for the buffers: everything else is ready to run.
#pragma once

#include <array>
#include <memory>

#include "enqueue/request.h"
#include "exec/small_program.h"

namespace hocket {

struct HotCall {
  std::uint64_t shape_key = 0;
  std::size_t count = 0;
  CallRecord record;  // but for the sequence
  // What the buffers must keep; anything else takes the general way, which has the error texts.
  std::uintptr_t alignment_mask = 0;
  std::size_t send_bytes = 0, recv_bytes = 0;
  bool has_in_place = false;
  std::size_t in_place_send_offset = 0, in_place_recv_offset = 0;  // bytes
  SmallProgram program;

  bool accepts(const Request& request) const {
    const auto send = reinterpret_cast<std::uintptr_t>(request.send);
    const auto recv = reinterpret_cast<std::uintptr_t>(request.recv);
    if ((send_bytes != 0 && (send == 0 || (send & alignment_mask) != 0)) ||
        (recv_bytes != 0 && (recv == 0 || (recv & alignment_mask) != 0)))
      return false;
    if (send >= recv + recv_bytes || recv >= send + send_bytes) return true;
    return has_in_place && send + in_place_send_offset == recv + in_place_recv_offset;
  }
};

class HotCalls {
 public:
  HotCall* find(const Request& request) {
    const std::uint64_t key = request.shape_key();
    HotCall* const call = calls_[slot(key, request.count)].get();
    return call != nullptr && call->shape_key == key && call->count == request.count ? call : nullptr;
  }
  HotCall* put(HotCall call) {
    auto& place = calls_[slot(call.shape_key, call.count)];
    place = std::make_unique<HotCall>(std::move(call));
    return place.get();
  }

 private:
  static constexpr std::size_t kCalls = 128;
  static std::size_t slot(std::uint64_t key, std::size_t count) {
    return ((key ^ key >> 40 ^ (count * 0x9e3779b97f4a7c15u)) * 0xd6e8feb86659fd93u) >> 57;
  }
  static_assert(kCalls == 1u << (64 - 57));

  std::array<std::unique_ptr<HotCall>, kCalls> calls_;
};

}  // namespace hocket
