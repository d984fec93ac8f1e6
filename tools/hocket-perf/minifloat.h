// SPDX-License-Identifier: Apache-2.0
// The 16- and 8-bit floats, for the oracle: written apart from the library's own conversions on purpose, so that a
// mistake in one is not hidden by the same mistake in the other. Conversion is from double, rounded once to nearest
// even.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace hocket::perf {

// kFinite formats (E4M3 of OCP) have no infinity; their only NaN has all bits below the sign set.
template <class Bits, int kExponentBits, int kMantissaBits, bool kFinite>
struct MiniFloat {
  Bits bits;

  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint64_t kMagnitudeMask = (1ull << (kExponentBits + kMantissaBits)) - 1;
  static constexpr std::uint64_t kSign = kMagnitudeMask + 1;
  static constexpr std::uint64_t kExponentMask = ((1ull << kExponentBits) - 1) << kMantissaBits;
  static constexpr std::uint64_t kNan = kFinite ? kMagnitudeMask : kExponentMask | (1ull << (kMantissaBits - 1));
  static constexpr std::uint64_t kOverflow = kFinite ? kNan : kExponentMask;  // what a too large value becomes
  static constexpr std::uint64_t kMax = kOverflow - 1;

  // Distance between double's exponent field and ours, placed above a mantissa of kMantissaBits.
  static constexpr std::uint64_t kRebias = static_cast<std::uint64_t>(1023 - kBias) << kMantissaBits;
  static constexpr int kDropped = 52 - kMantissaBits;

  static constexpr double power_of_two(int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
  }

  static constexpr MiniFloat from(double value) {
    const auto wide = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t sign = (wide >> 63) * kSign;
    std::uint64_t magnitude = wide & ~(1ull << 63);
    if (magnitude > (0x7ffull << 52)) return make(sign | kNan);
    if (std::bit_cast<double>(magnitude) < power_of_two(1 - kBias)) {
      // Subnormal here: adding 2^52 units of the last place rounds to a whole number of them.
      constexpr double kMagic = power_of_two(1 - kBias - kMantissaBits + 52);
      const double rounded = std::bit_cast<double>(magnitude) + kMagic;
      return make(sign | (std::bit_cast<std::uint64_t>(rounded) - std::bit_cast<std::uint64_t>(kMagic)));
    }
    magnitude += (1ull << (kDropped - 1)) - 1 + ((magnitude >> kDropped) & 1);
    const std::uint64_t code = (magnitude >> kDropped) - kRebias;
    return make(sign | (code > kMax ? kOverflow : code));
  }

  constexpr double value() const {
    const std::uint64_t magnitude = bits & kMagnitudeMask;
    const double sign = (bits & kSign) != 0 ? -1.0 : 1.0;
    if (is_nan()) return std::numeric_limits<double>::quiet_NaN();
    if (!kFinite && magnitude == kExponentMask) return sign * std::numeric_limits<double>::infinity();
    if ((magnitude & kExponentMask) == 0) {
      return sign * static_cast<double>(magnitude) * power_of_two(1 - kBias - kMantissaBits);
    }
    return sign * std::bit_cast<double>((magnitude + kRebias) << kDropped);
  }

  constexpr bool is_nan() const {
    const std::uint64_t magnitude = bits & kMagnitudeMask;
    return kFinite ? magnitude == kNan : magnitude > kExponentMask;
  }

 private:
  static constexpr MiniFloat make(std::uint64_t code) { return {static_cast<Bits>(code)}; }
};

using Half = MiniFloat<std::uint16_t, 5, 10, false>;
using BFloat16 = MiniFloat<std::uint16_t, 8, 7, false>;
using Fp8E4M3 = MiniFloat<std::uint8_t, 4, 3, true>;
using Fp8E5M2 = MiniFloat<std::uint8_t, 5, 2, false>;

}  // namespace hocket::perf
