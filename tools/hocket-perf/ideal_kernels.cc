// SPDX-License-Identifier: Apache-2.0
#include "ideal_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hocket::perf {
namespace {

void add_portable(float* a, float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = a[i] + b[i];
}

#if defined(__x86_64__)

// Four vectors per turn keep enough loads in flight.

template <Stores kStores>
[[gnu::target("avx512f")]] void add_avx512(float* a, float* b, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    __m512 sum[4];
    for (std::size_t k = 0; k < 4; ++k) {
      sum[k] = _mm512_add_ps(_mm512_load_ps(a + i + k * kLanes), _mm512_load_ps(b + i + k * kLanes));
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if constexpr (kStores == Stores::streaming) {
        _mm512_stream_ps(a + i + k * kLanes, sum[k]);
        _mm512_stream_ps(b + i + k * kLanes, sum[k]);
      } else {
        _mm512_store_ps(a + i + k * kLanes, sum[k]);
        _mm512_store_ps(b + i + k * kLanes, sum[k]);
      }
    }
  }
  add_portable(a + i, b + i, count - i);
  if constexpr (kStores == Stores::streaming) _mm_sfence();
}

template <Stores kStores>
[[gnu::target("avx2")]] void add_avx2(float* a, float* b, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  std::size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    __m256 sum[4];
    for (std::size_t k = 0; k < 4; ++k) {
      sum[k] = _mm256_add_ps(_mm256_load_ps(a + i + k * kLanes), _mm256_load_ps(b + i + k * kLanes));
    }
    for (std::size_t k = 0; k < 4; ++k) {
      if constexpr (kStores == Stores::streaming) {
        _mm256_stream_ps(a + i + k * kLanes, sum[k]);
        _mm256_stream_ps(b + i + k * kLanes, sum[k]);
      } else {
        _mm256_store_ps(a + i + k * kLanes, sum[k]);
        _mm256_store_ps(b + i + k * kLanes, sum[k]);
      }
    }
  }
  add_portable(a + i, b + i, count - i);
  if constexpr (kStores == Stores::streaming) _mm_sfence();
}

bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
bool has_avx2() { return __builtin_cpu_supports("avx2") != 0; }

AddToBoth vectorised(Stores stores) {
  const bool streaming = stores == Stores::streaming;
  if (has_avx512()) return streaming ? add_avx512<Stores::streaming> : add_avx512<Stores::plain>;
  if (has_avx2()) return streaming ? add_avx2<Stores::streaming> : add_avx2<Stores::plain>;
  return add_portable;
}

#else

bool has_avx512() { return false; }
bool has_avx2() { return false; }
AddToBoth vectorised(Stores) { return add_portable; }

#endif

}  // namespace

AddToBoth add_to_both(Stores stores) { return vectorised(stores); }

const char* vector_name() { return has_avx512() ? "avx512" : has_avx2() ? "avx2" : "portable"; }

}  // namespace hocket::perf
