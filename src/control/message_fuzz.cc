// SPDX-License-Identifier: Apache-2.0
// libFuzzer target for everything that is parsed from a socket:
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -Iinclude src/control/message{,_fuzz}.cc -lfmt
// The first byte says how to read the rest: as a stream of frames, or as the body of one kind. What parses must come out
// of encode() as the same bytes again, but for a Hello of another version, which is read in part.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "control/message.h"

using namespace hocket::control;

namespace {

void check_body(std::uint8_t kind, std::span<const std::uint8_t> body) {
  const auto message = parse(kind, body);
  if (!message) return;
  if (message->index() != kind) std::abort();
  const auto* hello = std::get_if<Hello>(&*message);
  if (hello != nullptr && hello->version != HOCKET_VERSION_CODE) return;
  const Bytes again = encode(*message);
  const auto body_again = std::span(again).subspan(kFrameHeaderBytes);
  if (!std::equal(body.begin(), body.end(), body_again.begin(), body_again.end())) std::abort();
}

void check_stream(std::span<const std::uint8_t> bytes) {
  while (const auto header = parse_header(bytes, kMaxBodyBytes)) {
    bytes = bytes.subspan(kFrameHeaderBytes);
    if (bytes.size() < header->body_bytes) return;
    check_body(header->kind, bytes.first(header->body_bytes));
    bytes = bytes.subspan(header->body_bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  if (bytes == 0) return 0;
  const std::span input(data + 1, bytes - 1);
  if (data[0] < std::variant_size_v<Message>) {
    check_body(data[0], input);
  } else {
    check_stream(input);
  }
  return 0;
}
