// SPDX-License-Identifier: Apache-2.0
// Copies to one or several sinks: the source is read once, every sink is written.
#include "exec/move_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "exec/move_copy.cc"
#include "hwy/foreach_target.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "exec/move.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

void copy_streaming(const char* source, const MoveSink* sinks, int n_sinks, std::size_t bytes) {
  for (int k = 0; k < n_sinks; ++k) std::memmove(sinks[k].data, source, bytes);
}

#else

using D = hn::ScalableTag<std::uint8_t>;
using V = hn::Vec<D>;
constexpr std::size_t kVectorBytes = HWY_MAX_BYTES;

inline bool vector_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kVectorBytes == 0; }

template <int kVectors>
HWY_INLINE void copy_block(const char* source, const MoveSink* sinks, int n_sinks, std::size_t at) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(source + at);
  V v[kVectors];
  for (int u = 0; u < kVectors; ++u) v[u] = hn::LoadU(D(), from + u * kVectorBytes);
  for (int k = 0; k < n_sinks; ++k) {
    auto* to = static_cast<std::uint8_t*>(sinks[k].data) + at;
    if (sinks[k].store == Store::streaming && vector_aligned(to)) {
      for (int u = 0; u < kVectors; ++u) hn::Stream(v[u], D(), to + u * kVectorBytes);
    } else {
      for (int u = 0; u < kVectors; ++u) hn::StoreU(v[u], D(), to + u * kVectorBytes);
    }
  }
}

// For at least one streaming sink or more than one sink.
void copy_streaming(const char* source, const MoveSink* sinks, int n_sinks, std::size_t bytes) {
  constexpr int kBlock = 8;
  std::size_t head = 0;  // until the first streaming sink is aligned
  bool streaming = false;
  for (int k = n_sinks - 1; k >= 0; --k) {
    if (sinks[k].store != Store::streaming) continue;
    streaming = true;
    head = (kVectorBytes - reinterpret_cast<std::uintptr_t>(sinks[k].data) % kVectorBytes) % kVectorBytes;
  }
  if (head > bytes) head = bytes;
  for (int k = 0; k < n_sinks && head > 0; ++k) std::memmove(sinks[k].data, source, head);
  std::size_t at = head;
  for (; at + kBlock * kVectorBytes <= bytes; at += kBlock * kVectorBytes) copy_block<kBlock>(source, sinks, n_sinks, at);
  for (; at + kVectorBytes <= bytes; at += kVectorBytes) copy_block<1>(source, sinks, n_sinks, at);
  if (streaming) hwy::FlushStream();
  for (int k = 0; k < n_sinks && at < bytes; ++k) std::memmove(static_cast<char*>(sinks[k].data) + at, source + at, bytes - at);
}

#endif  // vector targets

}  // namespace HWY_NAMESPACE
}  // namespace hocket
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket {

HWY_EXPORT(copy_streaming);

void copy_move(const void* source, const MoveSink* sinks, int n_sinks, std::size_t bytes) {
  if (n_sinks == 0 || bytes == 0) return;
  // The C library knows best how to write one cached sink on this CPU, `rep movsb` for long copies included.
  if (n_sinks == 1 && sinks[0].store == Store::cached) {
    if (sinks[0].data != source) std::memcpy(sinks[0].data, source, bytes);
    return;
  }
  HWY_DYNAMIC_DISPATCH(copy_streaming)(static_cast<const char*>(source), sinks, n_sinks, bytes);
}

}  // namespace hocket
#endif  // HWY_ONCE
