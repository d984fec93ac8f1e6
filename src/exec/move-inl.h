// SPDX-License-Identifier: Apache-2.0
// The fused move in vectors, per target. Included once per target by move_int.cc and move_float.cc.
//
// One pass: for each block of kBlock vectors, 1. load source 0 into accumulator registers, 2. fold the other sources in, in
// order, 3. finish (average), 4. store to each sink. The branches on what the operands are (format, scale, store mode) are
// taken once per block and operand and predict well. Blocks are followed by single vectors, then by a part of one.
//
// Needs -ffp-contract=off: a scaled source is rounded before it is added, and a fused multiply-add would not.

#if defined(HOCKET_EXEC_MOVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_EXEC_MOVE_INL_H_
#undef HOCKET_EXEC_MOVE_INL_H_
#else
#define HOCKET_EXEC_MOVE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/datatype.h"
#include "exec/move.h"
#include "exec/move_codec-inl.h"
#include "exec/move_scalar.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hocket {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128

template <class T, class Fold>
class Kernel {
 public:
  static void run(const MoveArgs& args) { scalar::move_range<T, Fold>(args, 0, args.count); }
};

#else

template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiply(D d, V a, V b) {
  if constexpr (sizeof(hn::TFromD<D>) == 1) {  // no target has it: even and odd lanes as 16-bit products
    const hn::RepartitionToWide<D> dw;
    const auto even = hn::Mul(hn::BitCast(dw, a), hn::BitCast(dw, b));
    const auto odd = hn::Mul(hn::ShiftRight<8>(hn::BitCast(dw, a)), hn::ShiftRight<8>(hn::BitCast(dw, b)));
    return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<8>(odd)), hn::BitCast(d, even));
  } else {
    return hn::Mul(a, b);
  }
}

template <class Fold, class D, class V = hn::Vec<D>>
HWY_INLINE V prepare(D d, V v) {
  if constexpr (kLogical<Fold>) {
    return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::Set(d, hn::TFromD<D>{1}));  // NaN equals nothing: true
  } else {
    return v;
  }
}

// As scalar::fold. Operands of logical folds are prepared: zero or one, as bits.
template <class Fold, class D, class V = hn::Vec<D>>
HWY_INLINE V fold(D d, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (std::same_as<Fold, FoldSum>) {
    return hn::Add(a, b);
  } else if constexpr (std::same_as<Fold, FoldProd>) {
    return multiply(d, a, b);
  } else if constexpr (std::same_as<Fold, FoldMax> || std::same_as<Fold, FoldMin>) {
    constexpr bool kMax = std::same_as<Fold, FoldMax>;
    if constexpr (std::is_floating_point_v<T>) {
      const auto beyond = kMax ? hn::Gt(b, a) : hn::Lt(b, a);
      return hn::IfThenElse(hn::Or(beyond, hn::IsNaN(b)), b, a);
    } else {
      return kMax ? hn::Max(a, b) : hn::Min(a, b);
    }
  } else if constexpr (std::same_as<Fold, FoldBand> || std::same_as<Fold, FoldLand>) {
    return hn::And(a, b);
  } else if constexpr (std::same_as<Fold, FoldBor> || std::same_as<Fold, FoldLor>) {
    return hn::Or(a, b);
  } else {
    return hn::Xor(a, b);
  }
}

// How far ahead of its stores a cached sink's lines are fetched for writing, in bytes; 0: not at all. 1024 gained nothing where
// another core had just read the sink (Zen 4 EPYC, 2 shared and busy cores, 64 KiB: 2 GB/s median with and without, best runs
// 20; streaming stores 29 and 32).
inline constexpr std::size_t kWritePrefetchBytes = 0;

template <class Lane>
HWY_INLINE void prefetch_for_write(Lane* to, std::size_t bytes) {
  if constexpr (kWritePrefetchBytes != 0) {
    for (std::size_t b = 0; b < bytes; b += 64) __builtin_prefetch(reinterpret_cast<char*>(to) + kWritePrefetchBytes + b, 1);
  }
}

inline bool vector_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % HWY_MAX_BYTES == 0; }

template <class T, class Fold>
class Kernel {
 public:
  static void run(const MoveArgs& args) {
    if (args.count == 0) return;
    if (kHasMixed && !is_plain<T>(args)) {
      if constexpr (kHasMixed) run_blocks<Mode::mixed, kMixedBlock>(args);
    } else if (args.n_sources == 1 && !kLogical<Fold>) {
      copy_move(args.sources[0].data, args.sinks, args.n_sinks, args.count * sizeof(T));
    } else {
      run_blocks<Mode::plain, kPlainBlock>(args);
    }
  }

 private:
  using C = Codec<T>;
  using A = Accumulator<T>;
  using Lane = typename C::Lane;
  using DA = typename C::DA;
  using VA = typename C::VA;
  using DE = typename C::DE;
  using VE = typename C::VE;
  static constexpr std::size_t kParts = C::kParts;
  static constexpr std::size_t kNarrowed = C::kNarrowed;
  static constexpr std::size_t kLanes = HWY_MAX_BYTES / sizeof(Lane);
  static constexpr bool kWidens = !std::same_as<T, A>;
  // Other operations have no operands that are not plain.
  static constexpr bool kHasMixed = kWidens || kScalable<T, Fold>;
  // Vectors of elements per block: 8 accumulator registers, or 4 where conversions and scales need registers too.
  static constexpr std::size_t kPlainBlock = 8 / kParts;
  static constexpr std::size_t kMixedBlock = 4 / kParts;

  enum class Mode { plain, mixed };
  // Expands a statement over constant indices, so that arrays of vectors live in registers.
  template <std::size_t kVectors>
  using Vectors = std::make_index_sequence<kVectors>;

  static HWY_INLINE const Lane* elements(const MoveSource& source, std::size_t i) {
    return static_cast<const Lane*>(source.data) + i;
  }
  static HWY_INLINE const A* accumulators(const MoveSource& source, std::size_t i) {
    return static_cast<const A*>(source.data) + i;
  }

  template <Mode kMode, std::size_t... kV>
  static HWY_INLINE void load(const MoveSource& source, std::size_t i, VA* to, std::index_sequence<kV...>) {
    if (kMode == Mode::plain || !kWidens || source.format == Format::element) {
      (C::load(elements(source, i) + kV * kLanes, to + kV * kParts), ...);
    } else {
      (C::load_accumulators(accumulators(source, i) + kV * kLanes, to + kV * kParts), ...);
    }
    prepare_all(to, Vectors<sizeof...(kV) * kParts>());
    if constexpr (kMode == Mode::mixed && kScalable<T, Fold>) {
      if (source.scale != nullptr) scale_all(source.scale, to, Vectors<sizeof...(kV) * kParts>());
    }
  }

  template <std::size_t... kP>
  static HWY_INLINE void prepare_all(VA* v, std::index_sequence<kP...>) {
    ((v[kP] = prepare<Fold>(DA(), v[kP])), ...);
  }
  template <std::size_t... kP>
  static HWY_INLINE void scale_all(const void* scale, VA* v, std::index_sequence<kP...>) {
    const VA factor = prepare<Fold>(DA(), hn::Set(DA(), scalar::widen<T>(scalar::load<T>(scale, 0))));
    ((v[kP] = C::round(multiply(DA(), v[kP], factor))), ...);
  }
  template <std::size_t... kP>
  static HWY_INLINE void fold_all(VA* to, const VA* from, std::index_sequence<kP...>) {
    ((to[kP] = fold<Fold>(DA(), to[kP], from[kP])), ...);
  }
  template <std::size_t... kP>
  static HWY_INLINE void divide_all(int divisor, VA* v, std::index_sequence<kP...>) {
    if constexpr (std::is_floating_point_v<A>) {
      if ((divisor & (divisor - 1)) == 0) {  // a power of two: its inverse is exact, and a product is cheaper
        const VA by = hn::Set(DA(), A{1} / static_cast<A>(divisor));
        ((v[kP] = hn::Mul(v[kP], by)), ...);
      } else {
        const VA by = hn::Set(DA(), static_cast<A>(divisor));
        ((v[kP] = hn::Div(v[kP], by)), ...);
      }
    } else {
      constexpr std::size_t kPartLanes = hn::MaxLanes(DA());
      alignas(HWY_MAX_BYTES) A lanes[sizeof...(kP) * kPartLanes];
      (hn::Store(v[kP], DA(), lanes + kP * kPartLanes), ...);
      for (A& lane : lanes) lane = scalar::divide(lane, divisor);
      ((v[kP] = hn::Load(DA(), lanes + kP * kPartLanes)), ...);
    }
  }

  template <Mode kMode, std::size_t... kP>
  static HWY_INLINE void finish(const MoveArgs& args, VA* v, std::index_sequence<kP...> parts) {
    if constexpr (kMode == Mode::mixed && std::same_as<Fold, FoldSum>) {
      if (args.divisor > 1) divide_all(args.divisor, v, parts);
    }
  }

  template <Mode kMode, std::size_t... kV>
  static HWY_INLINE void narrow(const VA* from, VE* to, std::index_sequence<kV...>) {
    constexpr NanKind kNan = kMode == Mode::plain ? NanKind::narrow : NanKind::any;
    (C::template narrow<kNan>(from + kV * kParts, to + kV * kNarrowed), ...);
  }

  // Both return whether they streamed.
  template <std::size_t... kN>
  static HWY_INLINE bool store_elements(const MoveSink& sink, std::size_t i, const VE* from, std::index_sequence<kN...>) {
    constexpr std::size_t kStep = kLanes / kNarrowed;
    Lane* to = static_cast<Lane*>(sink.data) + i;
    if (sink.store == Store::streaming && vector_aligned(to)) {
      (hn::Stream(from[kN], DE(), to + kN * kStep), ...);
      return true;
    }
    prefetch_for_write(to, sizeof...(kN) * kStep * sizeof(Lane));
    (hn::StoreU(from[kN], DE(), to + kN * kStep), ...);
    return false;
  }
  template <std::size_t... kV>
  static HWY_INLINE bool store_accumulators(const MoveSink& sink, std::size_t i, const VA* from, std::index_sequence<kV...>) {
    A* to = static_cast<A*>(sink.data) + i;
    if (sink.store == Store::streaming && vector_aligned(to)) {
      (stream_accumulators(from + kV * kParts, to + kV * kLanes), ...);
      return true;
    }
    (C::store_accumulators(from + kV * kParts, to + kV * kLanes), ...);
    return false;
  }
  static HWY_INLINE void stream_accumulators(const VA* from, A* to) {
    alignas(HWY_MAX_BYTES) A in_order[kLanes];
    C::store_accumulators(from, in_order);
    for (std::size_t lane = 0; lane < kLanes; lane += hn::MaxLanes(DA())) {
      hn::Stream(hn::Load(DA(), in_order + lane), DA(), to + lane);
    }
  }

  // Moves kVectors vectors from element i on. Returns whether anything was streamed. kSources and kSinks are the numbers of
  // operands where they are known, else 0.
  template <Mode kMode, std::size_t kVectors, int kSources = 0, int kSinks = 0>
  static HWY_INLINE bool block(const MoveArgs& args, std::size_t i) {
    constexpr Vectors<kVectors> kAll;
    constexpr Vectors<kVectors * kParts> kAllParts;
    const int n_sources = kSources != 0 ? kSources : args.n_sources;
    const int n_sinks = kSinks != 0 ? kSinks : args.n_sinks;
    VA value[kVectors * kParts];
    load<kMode>(args.sources[0], i, value, kAll);
    for (int s = 1; s < n_sources; ++s) {
      VA operand[kVectors * kParts];
      load<kMode>(args.sources[s], i, operand, kAll);
      fold_all(value, operand, kAllParts);
    }
    finish<kMode>(args, value, kAllParts);
    VE narrowed[kVectors * kNarrowed];
    narrow<kMode>(value, narrowed, kAll);
    bool streamed = false;
    for (int k = 0; k < n_sinks; ++k) {
      const MoveSink& sink = args.sinks[k];
      if (kMode == Mode::mixed && kWidens && sink.format == Format::accumulator) {
        streamed |= store_accumulators(sink, i, value, kAll);
      } else {
        streamed |= store_elements(sink, i, narrowed, Vectors<kVectors * kNarrowed>());
      }
    }
    return streamed;
  }

  // Moves whole blocks from element i on; i moves along.
  template <Mode kMode, std::size_t kVectors>
  static HWY_INLINE bool blocks(const MoveArgs& args, std::size_t& i) {
    bool streamed = false;
    for (; args.count - i >= kVectors * kLanes; i += kVectors * kLanes) streamed |= block<kMode, kVectors>(args, i);
    return streamed;
  }

  // The usual move, of two plain sources: its operands are copied so that they are known to stay put and live in registers.
  template <std::size_t kVectors, int kSinks>
  static HWY_INLINE bool pair_blocks(const MoveArgs& args, std::size_t& i) {
    const MoveSource sources[] = {args.sources[0], args.sources[1]};
    MoveSink sinks[kSinks];
    for (int k = 0; k < kSinks; ++k) sinks[k] = args.sinks[k];
    MoveArgs pair;
    pair.sources = sources;
    pair.sinks = sinks;
    const std::size_t count = args.count;
    bool streamed = false;
    for (; count - i >= kVectors * kLanes; i += kVectors * kLanes) {
      streamed |= block<Mode::plain, kVectors, 2, kSinks>(pair, i);
    }
    return streamed;
  }

  // Moves n < kLanes elements from element i on, by way of whole vectors on the stack.
  template <Mode kMode>
  static HWY_NOINLINE void partial(const MoveArgs& args, std::size_t i, std::size_t n) {
    if (n <= kScalarCount) return scalar::move_range<T, Fold>(args, i, i + n);
    constexpr Vectors<1> kOne;
    constexpr Vectors<kParts> kAllParts;
    VA value[kParts];
    alignas(HWY_MAX_BYTES) Padded padded = {};
    load<kMode>(pad<kMode>(args.sources[0], i, n, padded), 0, value, kOne);
    for (int s = 1; s < args.n_sources; ++s) {
      VA operand[kParts];
      load<kMode>(pad<kMode>(args.sources[s], i, n, padded), 0, operand, kOne);
      fold_all(value, operand, kAllParts);
    }
    finish<kMode>(args, value, kAllParts);
    VE narrowed[kNarrowed];
    narrow<kMode>(value, narrowed, kOne);
    for (int k = 0; k < args.n_sinks; ++k) {
      const MoveSink& sink = args.sinks[k];
      const MoveSink here{&padded, sink.format, Store::cached};
      if (kMode == Mode::mixed && kWidens && sink.format == Format::accumulator) {
        store_accumulators(here, 0, value, kOne);
        std::memcpy(static_cast<A*>(sink.data) + i, padded.accumulators, n * sizeof(A));
      } else {
        store_elements(here, 0, narrowed, Vectors<kNarrowed>());
        write_some(padded.elements, static_cast<Lane*>(sink.data) + i, n);
      }
    }
  }
  union Padded {
    A accumulators[kLanes];  // the larger one first: it is the one that is cleared
    Lane elements[kLanes];
  };
  template <Mode kMode>
  static HWY_INLINE MoveSource pad(const MoveSource& source, std::size_t i, std::size_t n, Padded& padded) {
    if (kMode == Mode::mixed && kWidens && source.format == Format::accumulator) {
      std::memcpy(padded.accumulators, accumulators(source, i), n * sizeof(A));
    } else {
      read_some(elements(source, i), padded.elements, n);
    }
    return {&padded, source.format, source.scale};
  }
#if HWY_MEM_OPS_MIGHT_FAULT
  static constexpr std::size_t kScalarCount = 4;  // below, a call of memcpy per operand takes longer
  static HWY_INLINE void read_some(const Lane* from, Lane* padded, std::size_t n) { std::memcpy(padded, from, n * sizeof(T)); }
  static HWY_INLINE void write_some(const Lane* padded, Lane* to, std::size_t n) { std::memcpy(to, padded, n * sizeof(T)); }
#else
  static constexpr std::size_t kScalarCount = 0;
  static HWY_INLINE void read_some(const Lane* from, Lane* padded, std::size_t n) {
    const hn::ScalableTag<Lane> d;
    hn::Store(hn::MaskedLoad(hn::FirstN(d, n), d, from), d, padded);
  }
  static HWY_INLINE void write_some(const Lane* padded, Lane* to, std::size_t n) {
    const hn::ScalableTag<Lane> d;
    hn::BlendedStore(hn::Load(d, padded), hn::FirstN(d, n), d, to);
  }
#endif

  // Elements to move on their own until the first streaming sink is aligned.
  static HWY_INLINE std::size_t head_count(const MoveArgs& args) {
    for (int k = 0; k < args.n_sinks; ++k) {
      const MoveSink& sink = args.sinks[k];
      if (sink.store != Store::streaming) continue;
      const std::size_t bytes = sink.format == Format::element ? sizeof(T) : sizeof(A);
      const std::size_t past = reinterpret_cast<std::uintptr_t>(sink.data) % HWY_MAX_BYTES;
      return past == 0 ? 0 : (HWY_MAX_BYTES - past) / bytes;
    }
    return 0;
  }

  template <Mode kMode, std::size_t kBlock>
  static HWY_INLINE void run_blocks(const MoveArgs& args) {
    const std::size_t count = args.count;
    std::size_t i = 0;
    if (count >= kBlock * kLanes) {
      i = head_count(args);
      if (i > 0) partial<kMode>(args, 0, i);
    }
    bool streamed = false;
    constexpr bool kPairs = kMode == Mode::plain && kParts <= 2;  // 8-bit floats are bound by arithmetic
    if (kPairs && args.n_sources == 2 && args.n_sinks == 1) {
      if constexpr (kPairs) streamed = pair_blocks<kBlock, 1>(args, i);
    } else if (kPairs && args.n_sources == 2 && args.n_sinks == 2) {
      if constexpr (kPairs) streamed = pair_blocks<kBlock, 2>(args, i);
    } else {
      streamed = blocks<kMode, kBlock>(args, i);
    }
    streamed |= blocks<kMode, 1>(args, i);
    if (streamed) hwy::FlushStream();
    if (i < count) partial<kMode>(args, i, count - i);
  }
};

#endif  // vector targets

// The kernel of `op` for elements of type T.
template <class T>
MoveFn kernel_for(hocketRedOp_t op) {
  if constexpr (std::same_as<T, Bool>) {
    switch (op) {
      case hocketSum: case hocketMax: case hocketBor: case hocketLor: return &Kernel<std::uint8_t, FoldLor>::run;
      case hocketProd: case hocketMin: case hocketBand: case hocketLand: return &Kernel<std::uint8_t, FoldLand>::run;
      case hocketBxor: return &Kernel<std::uint8_t, FoldLxor>::run;
      case hocketAvg: case hocketNumOps: case hocketMaxRedOp: return nullptr;
    }
    return nullptr;
  } else {
    using Bits = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
    switch (op) {
      case hocketSum: case hocketAvg: return &Kernel<T, FoldSum>::run;  // average divides with the sign
      case hocketProd: return &Kernel<Bits, FoldProd>::run;
      case hocketMax: return &Kernel<T, FoldMax>::run;
      case hocketMin: return &Kernel<T, FoldMin>::run;
      case hocketLand: return &Kernel<Bits, FoldLand>::run;
      case hocketLor: return &Kernel<Bits, FoldLor>::run;
      case hocketBand: case hocketBor: case hocketBxor:
        if constexpr (std::is_integral_v<T>) {
          return op == hocketBand  ? &Kernel<Bits, FoldBand>::run
                 : op == hocketBor ? &Kernel<Bits, FoldBor>::run
                                   : &Kernel<Bits, FoldBxor>::run;
        }
        return nullptr;
      case hocketNumOps: case hocketMaxRedOp: return nullptr;
    }
    return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hocket
HWY_AFTER_NAMESPACE();

#endif  // include guard, per target
