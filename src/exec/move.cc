// SPDX-License-Identifier: Apache-2.0
#include "exec/move.h"

#include <cstddef>
#include <cstring>

#include "base/datatype.h"
#include "exec/move_kernels.h"

namespace hocket {
namespace {

constexpr std::size_t kUserBufferBytes = 4096;

// Pieces of the result grow in a buffer on the stack: the user's function needs one array to fold into, and sinks may be
// several, or a source.
template <hocketDataType_t kType>
void user_move(const MoveArgs& args) {
  constexpr std::size_t kBytes = element_bytes(kType);
  constexpr std::size_t kPiece = kUserBufferBytes / kBytes;
  alignas(64) char inout[kUserBufferBytes];
  for (std::size_t begin = 0; begin < args.count; begin += kPiece) {
    const std::size_t count = args.count - begin < kPiece ? args.count - begin : kPiece;
    const std::size_t offset = begin * kBytes;
    std::memcpy(inout, static_cast<const char*>(args.sources[0].data) + offset, count * kBytes);
    for (int s = 1; s < args.n_sources; ++s) {
      args.user_fn(inout, static_cast<const char*>(args.sources[s].data) + offset, count, kType, args.user_data);
    }
    for (int k = 0; k < args.n_sinks; ++k) {
      const MoveSink sink{static_cast<char*>(args.sinks[k].data) + offset, Format::element, args.sinks[k].store};
      copy_move(inout, &sink, 1, count * kBytes);
    }
  }
}

}  // namespace

MoveFn move_function(hocketDataType_t type, hocketRedOp_t op) {
  if (!is_datatype(type) || !supports(op, type)) return nullptr;
  if (MoveFn kernel = integer_kernel(type, op)) return kernel;
  if (MoveFn kernel = float_kernel(type, op)) return kernel;
  return narrow_float_kernel(type, op);
}

MoveFn user_move_function(hocketDataType_t type) {
  if (!is_datatype(type)) return nullptr;
  static constexpr MoveFn kFunctions[] = {
#define HOCKET_USER_MOVE(name, value, bytes, type, acc) &user_move<hocket##name>,
      HOCKET_FOR_EACH_DATATYPE(HOCKET_USER_MOVE)
#undef HOCKET_USER_MOVE
  };
  return kFunctions[type];
}

}  // namespace hocket
