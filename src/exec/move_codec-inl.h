// SPDX-License-Identifier: Apache-2.0
// How one vector of elements becomes accumulators and back, per target. Included once per target by move-inl.h.
//
// A vector of elements widens to kParts vectors of accumulators, and they narrow to kNarrowed vectors of elements. Formats without hardware conversion keep element i in
// part i % kParts, lane i / kParts: parts are then shifts of the same 32-bit lanes, and nothing crosses lanes.
//
//   kParts = 2, bf16:   memory  e0 e1 | e2 e3 | ...      part 0: e0 e2 ...      part 1: e1 e3 ...

#if defined(HOCKET_EXEC_MOVE_CODEC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_EXEC_MOVE_CODEC_INL_H_
#undef HOCKET_EXEC_MOVE_CODEC_INL_H_
#else
#define HOCKET_EXEC_MOVE_CODEC_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "base/float_types.h"
#include "exec/move_scalar.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// Which NaNs narrowing may meet. `narrow`: only those that came from narrow elements, whose low bits are zero, so
// that rounding cannot carry out of them. `any`: NaNs with any payload.
enum class NanKind { narrow, any };

// Elements that are their own accumulators.
template <class T>
struct Codec {
  using Lane = T;
  using DA = hn::ScalableTag<T>;
  using VA = hn::Vec<DA>;
  using DE = DA;
  using VE = VA;
  static constexpr std::size_t kParts = 1;
  static constexpr std::size_t kNarrowed = 1;

  static HWY_INLINE void load(const Lane* from, VA* to) { to[0] = hn::LoadU(DA(), from); }
  static HWY_INLINE void load_accumulators(const T* from, VA* to) { load(from, to); }
  template <NanKind kNan>
  static HWY_INLINE void narrow(const VA* from, VE* to) {
    to[0] = from[0];
  }
  static HWY_INLINE void store_accumulators(const VA* from, T* to) { hn::StoreU(from[0], DA(), to); }
  static HWY_INLINE VA round(VA v) { return v; }
};

template <>
struct Codec<Bfloat16> {
  using Lane = std::uint16_t;
  using DA = hn::ScalableTag<float>;
  using VA = hn::Vec<DA>;
  using DU = hn::RebindToUnsigned<DA>;
  using VU = hn::Vec<DU>;
  using DE = hn::ScalableTag<std::uint16_t>;
  using VE = hn::Vec<DE>;
  static constexpr std::size_t kParts = 2;
  static constexpr std::size_t kNarrowed = 1;

  static HWY_INLINE void load(const Lane* from, VA* to) {
    const VU pairs = hn::BitCast(DU(), hn::LoadU(DE(), from));
    to[0] = hn::BitCast(DA(), hn::ShiftLeft<16>(pairs));
    to[1] = hn::BitCast(DA(), hn::And(pairs, hn::Set(DU(), 0xffff0000u)));
  }
  static HWY_INLINE void load_accumulators(const float* from, VA* to) { hn::LoadInterleaved2(DA(), from, to[0], to[1]); }

  // Rounds both parts at once, in 16-bit lanes: the upper halves are the result, plus one where the lower half is more than
  // half a unit, or just that and the upper half is odd.
  template <NanKind kNan>
  static HWY_INLINE void narrow(const VA* from, VE* to) {
    const VU even = bits_of<kNan>(from[0]);
    const VU odd = bits_of<kNan>(from[1]);
    const DE de;
    const VE upper = hn::OddEven(hn::BitCast(de, odd), hn::BitCast(de, hn::ShiftRight<16>(even)));
    const VE lower = hn::OddEven(hn::BitCast(de, hn::ShiftLeft<16>(odd)), hn::BitCast(de, even));
    const VE rest = hn::Or(lower, hn::And(upper, hn::Set(de, std::uint16_t{1})));
    const auto up = hn::Gt(rest, hn::Set(de, std::uint16_t{0x8000}));
    to[0] = hn::IfThenElse(up, hn::Add(upper, hn::Set(de, std::uint16_t{1})), upper);
  }
  // NaNs get a lower half of zero and stay NaN.
  template <NanKind kNan>
  static HWY_INLINE VU bits_of(VA v) {
    const VU bits = hn::BitCast(DU(), v);
    if constexpr (kNan == NanKind::narrow) return bits;
    const VU quiet = hn::And(hn::Or(bits, hn::Set(DU(), 0x400000u)), hn::Set(DU(), 0xffff0000u));
    return hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(v)), quiet, bits);
  }
  static HWY_INLINE void store_accumulators(const VA* from, float* to) { hn::StoreInterleaved2(from[0], from[1], DA(), to); }
  static HWY_INLINE VA round(VA v) {
    const VU bits = bits_of<NanKind::any>(v);
    const VU odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DU(), 1u));
    const VU nearest = hn::Add(hn::Add(bits, hn::Set(DU(), 0x7fffu)), odd);
    return hn::BitCast(DA(), hn::And(nearest, hn::Set(DU(), 0xffff0000u)));
  }
};

// Converted by the hardware; parts are halves.
template <>
struct Codec<Float16> {
  using Lane = std::uint16_t;
  using DA = hn::ScalableTag<float>;
  using VA = hn::Vec<DA>;
  using DE = hn::Rebind<std::uint16_t, DA>;
  using DF = hn::Rebind<hwy::float16_t, DA>;
  using VE = hn::Vec<DE>;
  static constexpr std::size_t kParts = 2;
  static constexpr std::size_t kNarrowed = 2;
  static constexpr std::size_t kHalf = hn::MaxLanes(DA());

  static HWY_INLINE void load(const Lane* from, VA* to) {
    to[0] = hn::PromoteTo(DA(), hn::BitCast(DF(), hn::LoadU(DE(), from)));
    to[1] = hn::PromoteTo(DA(), hn::BitCast(DF(), hn::LoadU(DE(), from + kHalf)));
  }
  static HWY_INLINE void load_accumulators(const float* from, VA* to) {
    to[0] = hn::LoadU(DA(), from);
    to[1] = hn::LoadU(DA(), from + kHalf);
  }
  template <NanKind kNan>
  static HWY_INLINE void narrow(const VA* from, VE* to) {
    to[0] = hn::BitCast(DE(), hn::DemoteTo(DF(), from[0]));
    to[1] = hn::BitCast(DE(), hn::DemoteTo(DF(), from[1]));
  }
  static HWY_INLINE void store_accumulators(const VA* from, float* to) {
    hn::StoreU(from[0], DA(), to);
    hn::StoreU(from[1], DA(), to + kHalf);
  }
  static HWY_INLINE VA round(VA v) { return hn::PromoteTo(DA(), hn::DemoteTo(DF(), v)); }
};

// 8-bit floats: the arithmetic of SmallFloatCodec on 32-bit lanes, without branches and without subnormal operands (which
// are slow on some CPUs, and zero where the caller has switched them off).
template <int kExponentBits, int kMantissaBits, bool kHasInfinity>
struct Codec8 {
  using Small = SmallFloatCodec<kExponentBits, kMantissaBits, kHasInfinity>;
  using Lane = std::uint8_t;
  using DA = hn::ScalableTag<float>;
  using VA = hn::Vec<DA>;
  using DU = hn::RebindToUnsigned<DA>;
  using VU = hn::Vec<DU>;
  using DE = hn::ScalableTag<std::uint8_t>;
  using VE = hn::Vec<DE>;
  static constexpr std::size_t kParts = 4;
  static constexpr std::size_t kNarrowed = 1;
  static constexpr int kDropped = 23 - kMantissaBits;
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - Small::kBias) << 23;
  static constexpr std::uint32_t kSmallestNormal = kRebias + (1u << 23);
  // 2^23 units of the small format's subnormals: adding it rounds to that unit, to nearest, ties to even.
  static constexpr std::uint32_t kMagic = static_cast<std::uint32_t>(127 + 24 - Small::kBias - kMantissaBits) << 23;

  // Magnitudes are below 2^31: a signed comparison will do, and every target has one.
  static HWY_INLINE hn::Mask<DU> less(VU a, std::uint32_t b) {
    const hn::RebindToSigned<DU> di;
    return hn::RebindMask(DU(), hn::Lt(hn::BitCast(di, a), hn::Set(di, static_cast<std::int32_t>(b))));
  }

  // `top` holds the byte in bits 24-31; lower bits are ignored.
  static HWY_INLINE VA decode(VU top) {
    const VU largest = hn::Set(DU(), 0x7fu << kDropped);
    const VU magnitude = hn::And(hn::ShiftRight<24 - kDropped>(top), largest);
    const VU normal = hn::Add(magnitude, hn::Set(DU(), kRebias));
    const VU smallest = hn::Set(DU(), kSmallestNormal);
    const VA tiny = hn::Sub(hn::BitCast(DA(), hn::Add(magnitude, smallest)), hn::BitCast(DA(), smallest));
    VU bits = hn::IfThenElse(less(magnitude, 1u << 23), hn::BitCast(DU(), tiny), normal);
    if constexpr (kHasInfinity) {
      const VU special = hn::Or(magnitude, hn::Set(DU(), 0x7f800000u));
      bits = hn::IfThenElse(less(magnitude, Small::kInfinity << kDropped), bits, special);
    } else {
      bits = hn::IfThenElse(hn::Eq(magnitude, largest), hn::Set(DU(), 0x7fc00000u), bits);
    }
    return hn::BitCast(DA(), hn::Or(bits, hn::And(top, hn::Set(DU(), 0x80000000u))));
  }
  // The result is in bits 0-7, other bits are zero.
  static HWY_INLINE VU encode(VA v) {
    const VU bits = hn::BitCast(DU(), v);
    const VU magnitude = hn::And(bits, hn::Set(DU(), 0x7fffffffu));
    const VU odd = hn::And(hn::ShiftRight<kDropped>(magnitude), hn::Set(DU(), 1u));
    const VU nearest = hn::Add(hn::Add(magnitude, hn::Set(DU(), (1u << (kDropped - 1)) - 1u)), odd);
    const VU normal = hn::Sub(hn::ShiftRight<kDropped>(nearest), hn::Set(DU(), kRebias >> kDropped));
    const VU magic = hn::Set(DU(), kMagic);
    const VU tiny = hn::Sub(hn::BitCast(DU(), hn::Add(hn::BitCast(DA(), magnitude), hn::BitCast(DA(), magic))), magic);
    VU small = hn::IfThenElse(less(magnitude, kSmallestNormal), tiny, normal);
    small = hn::Min(small, hn::Set(DU(), kHasInfinity ? Small::kInfinity : Small::kNan));  // overflow
    if constexpr (kHasInfinity) {
      small = hn::IfThenElse(hn::RebindMask(DU(), hn::IsNaN(v)), hn::Set(DU(), Small::kNan), small);
    }
    return hn::Or(small, hn::And(hn::ShiftRight<24>(bits), hn::Set(DU(), 0x80u)));
  }

  static HWY_INLINE void load(const Lane* from, VA* to) {
    const VU bytes = hn::BitCast(DU(), hn::LoadU(DE(), from));
    to[0] = decode(hn::ShiftLeft<24>(bytes));
    to[1] = decode(hn::ShiftLeft<16>(bytes));
    to[2] = decode(hn::ShiftLeft<8>(bytes));
    to[3] = decode(bytes);
  }
  static HWY_INLINE void load_accumulators(const float* from, VA* to) {
    hn::LoadInterleaved4(DA(), from, to[0], to[1], to[2], to[3]);
  }
  template <NanKind kNan>
  static HWY_INLINE void narrow(const VA* from, VE* to) {
    const VU low = hn::Or(encode(from[0]), hn::ShiftLeft<8>(encode(from[1])));
    const VU high = hn::Or(hn::ShiftLeft<16>(encode(from[2])), hn::ShiftLeft<24>(encode(from[3])));
    to[0] = hn::BitCast(DE(), hn::Or(low, high));
  }
  static HWY_INLINE void store_accumulators(const VA* from, float* to) {
    hn::StoreInterleaved4(from[0], from[1], from[2], from[3], DA(), to);
  }
  static HWY_INLINE VA round(VA v) { return decode(hn::ShiftLeft<24>(encode(v))); }
};

template <>
struct Codec<Float8e4m3> : Codec8<4, 3, false> {};
template <>
struct Codec<Float8e5m2> : Codec8<5, 2, true> {};

#endif  // vector targets

}  // namespace HWY_NAMESPACE
}  // namespace hocket
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
