// SPDX-License-Identifier: Apache-2.0
// Input elements as a function of (seed, rank, index), for each type and operation. Inside of the oracle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "element.h"
#include "oracle.h"

namespace hocket::perf {

constexpr std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// Cheaper than mix(): one call per element and rank.
constexpr std::uint64_t element_hash(std::uint64_t key, std::size_t index) {
  std::uint64_t h = (index + 1) * 0x9e3779b97f4a7c15ull + key;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
  return h ^ (h >> 32);
}

// The fields that a draw reads are kept apart: low 53 bits the value, then bits 53.. for rare events.
constexpr std::uint64_t rare_bits(std::uint64_t h) { return h >> 53; }  // 0 … 2047

// A full mantissa, magnitude in [1/4, 2), either sign. Sums over hundreds of ranks stay far from overflow of any
// format.
template <class T>
T moderate(std::uint64_t h) {
  if constexpr (kIsMiniFloat<T>) {
    // Assembled from fields rather than converted: exact, and independent of the conversion.
    const std::uint64_t mantissa = (h >> 2) & (T::kSign - 1) & ~T::kExponentMask;
    constexpr int kMantissa = 52 - T::kDropped;
    const std::uint64_t exponent = static_cast<std::uint64_t>(T::kBias) - 2 + (h >> 20) % 3;
    return from_bits<T>(((h & 1) != 0 ? T::kSign : 0) | (exponent << kMantissa) | mantissa);
  } else {
    const T magnitude = T(0.25) + T(1.75) * static_cast<T>(h & ((1ull << 52) - 1)) * T(0x1p-52);
    return (h >> 52 & 1) != 0 ? -magnitude : magnitude;
  }
}

// Mostly ±1; about two ranks per element contribute a factor with a full mantissa, so products keep their size.
template <class T>
T factor(std::uint64_t h, int n_ranks) {
  const std::uint64_t threshold = 4096u / static_cast<unsigned>(std::max(n_ranks, 2));
  if (rare_bits(h) < threshold) return moderate<T>(h);
  return nearest<T>((h & 1) != 0 ? -1.0 : 1.0);
}

template <class T>
T any_value(std::uint64_t h) {
  if constexpr (kIsBool<T>) {
    return {static_cast<std::uint8_t>(h & 1)};
  } else if constexpr (kIsFloat<T>) {
    return moderate<T>(h);
  } else {
    return static_cast<T>(h);
  }
}

template <class T>
T zero() {
  return from_bits<T>(0);
}

// True (not zero) for `trues` of 8 elements.
template <class T>
T truth(std::uint64_t h, std::uint64_t trues) {
  if (rare_bits(h) % 8 >= trues) return zero<T>();
  if constexpr (kIsFloat<T>) {
    return moderate<T>(h);
  } else {
    return from_bits<T>(kIsBool<T> ? 1 : h | 1);
  }
}

template <class T>
T nan() {
  return nearest<T>(std::numeric_limits<double>::quiet_NaN());
}

// Calls visitor(draw) with the draw that fits the operation: T draw(hash).
template <class T, class Visitor>
void visit_draw(const Inputs& inputs, Visitor&& visitor) {
  const int n = inputs.n_ranks;
  switch (inputs.op) {
    case Op::none: return visitor([](std::uint64_t h) { return kIsBool<T> ? any_value<T>(h) : from_bits<T>(h); });
    case Op::land: return visitor([](std::uint64_t h) { return truth<T>(h, 7); });
    case Op::lor: return visitor([](std::uint64_t h) { return truth<T>(h, 1); });
    case Op::prod:
      if constexpr (kIsFloat<T>) return visitor([n](std::uint64_t h) { return factor<T>(h, n); });
      break;
    case Op::min:
    case Op::max:
      if constexpr (kIsFloat<T>) {
        return visitor([](std::uint64_t h) { return rare_bits(h) % 64 == 0 ? nan<T>() : moderate<T>(h); });
      }
      break;
    case Op::sum:
    case Op::avg:
    case Op::premulsum:
    case Op::band:
    case Op::bor:
    case Op::bxor:
    case Op::user: break;
  }
  if constexpr (kIsBool<T>) {
    const bool all_needed = inputs.op == Op::prod || inputs.op == Op::min || inputs.op == Op::band;
    const std::uint64_t trues = all_needed ? 7 : inputs.op == Op::bxor ? 4 : 1;
    return visitor([trues](std::uint64_t h) { return truth<T>(h, trues); });
  }
  visitor([](std::uint64_t h) { return any_value<T>(h); });
}

// `out` may be a user's buffer, aligned to the element. Never inlined: it has a loop per kind of draw, and several
// callers.
template <class T>
[[gnu::noinline]] void draw_inputs(const Inputs& inputs, int rank, std::size_t first, std::size_t count, T* out) {
  const std::uint64_t key = mix(mix(inputs.seed) + static_cast<std::uint64_t>(rank));
  visit_draw<T>(inputs, [&](auto draw) {
    for (std::size_t i = 0; i < count; ++i) out[i] = draw(element_hash(key, first + i));
  });
}

}  // namespace hocket::perf
