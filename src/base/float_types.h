// SPDX-License-Identifier: Apache-2.0
// Storage types of the floating-point formats that C++20 lacks. They hold bits and convert to and from float, nothing else:
// arithmetic is done in float. Conversions from float round to nearest, ties to even, once.
#pragma once

#include <bit>
#include <cstdint>

namespace hocket {

// Small IEEE-like formats share one conversion. `kExponentBits + kMantissaBits + 1` is the width.
template <int kExponentBits, int kMantissaBits, bool kHasInfinity>
struct SmallFloatCodec {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kExponentMax = (1u << kExponentBits) - 1;
  static constexpr std::uint32_t kMantissaMask = (1u << kMantissaBits) - 1;
  static constexpr std::uint32_t kSignShift = kExponentBits + kMantissaBits;
  // Largest finite magnitude, infinity and a quiet NaN, as bits without sign.
  static constexpr std::uint32_t kInfinity = kExponentMax << kMantissaBits;
  static constexpr std::uint32_t kLargest = kHasInfinity ? kInfinity - 1 : (kInfinity | kMantissaMask) - 1;
  static constexpr std::uint32_t kNan = kHasInfinity ? kInfinity | (1u << (kMantissaBits - 1)) : kInfinity | kMantissaMask;

  static constexpr std::uint32_t encode(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 31) << kSignShift;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | kNan;
    if (magnitude == 0x7f800000u) return sign | (kHasInfinity ? kInfinity : kNan);
    const int exponent = static_cast<int>(magnitude >> 23) - 127 + kBias;  // as the small format would store it
    std::uint32_t mantissa = (magnitude & 0x7fffffu) | (magnitude >= 0x800000u ? 0x800000u : 0u);
    int shift = 23 - kMantissaBits;
    std::uint32_t base = 0;
    if (exponent <= 0) {
      shift += 1 - exponent;  // subnormal in the small format
      if (shift > 25) return sign;
    } else {
      base = static_cast<std::uint32_t>(exponent - 1) << kMantissaBits;  // the implicit one of the mantissa adds 1
    }
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    mantissa >>= shift;
    if (rest > half || (rest == half && (mantissa & 1u) != 0)) ++mantissa;
    const std::uint32_t result = base + mantissa;
    if (result > kLargest) return sign | (kHasInfinity ? kInfinity : kNan);
    return sign | result;
  }

  static constexpr float decode(std::uint32_t bits) {
    const std::uint32_t sign = (bits >> kSignShift) << 31;
    const std::uint32_t exponent = (bits >> kMantissaBits) & kExponentMax;
    const std::uint32_t mantissa = bits & kMantissaMask;
    if (exponent == kExponentMax && (kHasInfinity || mantissa == kMantissaMask)) {
      const std::uint32_t payload = kHasInfinity ? mantissa << (23 - kMantissaBits) : 0x400000u;
      return std::bit_cast<float>(sign | 0x7f800000u | payload);
    }
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * kSubnormalUnit;
      return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = static_cast<std::uint32_t>(static_cast<int>(exponent) - kBias + 127);
    return std::bit_cast<float>(sign | (wide << 23) | (mantissa << (23 - kMantissaBits)));
  }

 private:
  static constexpr float kSubnormalUnit =
      std::bit_cast<float>(static_cast<std::uint32_t>(127 - kBias + 1 - kMantissaBits) << 23);
};

struct Float16 {
  std::uint16_t bits;
  using Codec = SmallFloatCodec<5, 10, true>;
  static constexpr Float16 from(float v) { return {static_cast<std::uint16_t>(Codec::encode(v))}; }
  constexpr float to_float() const { return Codec::decode(bits); }
};

struct Bfloat16 {
  std::uint16_t bits;
  static constexpr Bfloat16 from(float v) {
    const std::uint32_t wide = std::bit_cast<std::uint32_t>(v);
    if ((wide & 0x7fffffffu) > 0x7f800000u) return {static_cast<std::uint16_t>((wide >> 16) | 0x40u)};
    return {static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16)};
  }
  constexpr float to_float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

// OCP 8-bit formats (Open Compute Project, OFP8 rev 1.0). E4M3 has no infinity: overflow gives NaN.
struct Float8e4m3 {
  std::uint8_t bits;
  using Codec = SmallFloatCodec<4, 3, false>;
  static constexpr Float8e4m3 from(float v) { return {static_cast<std::uint8_t>(Codec::encode(v))}; }
  constexpr float to_float() const { return Codec::decode(bits); }
};

struct Float8e5m2 {
  std::uint8_t bits;
  using Codec = SmallFloatCodec<5, 2, true>;
  static constexpr Float8e5m2 from(float v) { return {static_cast<std::uint8_t>(Codec::encode(v))}; }
  constexpr float to_float() const { return Codec::decode(bits); }
};

// One byte; zero is false, anything else true; results are 0 or 1.
struct Bool {
  std::uint8_t bits;
};

}  // namespace hocket
