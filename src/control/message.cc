// SPDX-License-Identifier: Apache-2.0
#include "control/message.h"

#include <algorithm>
#include <concepts>
#include <type_traits>
#include <utility>

namespace hocket::control {
namespace {

// Fields of types that belong to others.
template <class Io>
void fields(Io& io, CallRecord& record) {
  io(record.sequence), io(record.collective), io(record.vector_form), io(record.datatype), io(record.op), io(record.root),
      io(record.count);
}

class Writer {
 public:
  explicit Writer(Bytes& out) : out_(out) {}

  template <std::integral T>
  void operator()(T& value) {
    auto bits = static_cast<std::make_unsigned_t<std::conditional_t<std::same_as<T, bool>, std::uint8_t, T>>>(value);
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out_.push_back(static_cast<std::uint8_t>(bits & 0xff));
      if constexpr (sizeof(T) > 1) bits >>= 8;
    }
  }
  template <std::size_t N>
  void operator()(std::array<std::uint8_t, N>& bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  void operator()(std::string& text, std::size_t max_bytes = kMaxTextBytes) {
    auto bytes = static_cast<std::uint32_t>(std::min(text.size(), max_bytes));
    (*this)(bytes);
    out_.insert(out_.end(), text.begin(), text.begin() + bytes);
  }
  void operator()(Error& error) {
    auto code = static_cast<std::uint8_t>(error.code);
    (*this)(code);
    (*this)(error.text);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool present = value.has_value();
    (*this)(present);
    if (present) (*this)(*value);
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    auto count = static_cast<std::uint32_t>(values.size());
    (*this)(count);
    for (T& value : values) (*this)(value);
  }
  void operator()(CallRecord& record) { fields(*this, record); }
  template <class T>
    requires requires(T& value, Writer& io) { value.fields(io); }
  void operator()(T& value) {
    value.fields(*this);
  }
  void skip_rest() {}

 private:
  Bytes& out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> in) : in_(in) {}

  bool good() const { return good_ && in_.empty(); }

  template <std::integral T>
  void operator()(T& value) {
    const auto bytes = take(sizeof(T));
    if (bytes.empty()) return;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
    if constexpr (std::same_as<T, bool>) {
      if (bits > 1) return refuse();
      value = bits != 0;
    } else {
      value = static_cast<T>(bits);
    }
  }
  template <std::size_t N>
  void operator()(std::array<std::uint8_t, N>& value) {
    const auto bytes = take(N);
    if (!bytes.empty()) std::copy(bytes.begin(), bytes.end(), value.begin());
  }
  void operator()(std::string& text, std::size_t max_bytes = kMaxTextBytes) {
    std::uint32_t count = 0;
    (*this)(count);
    if (count > max_bytes) return refuse();
    const auto bytes = take(count);
    text.assign(bytes.begin(), bytes.end());
  }
  void operator()(Error& error) {
    std::uint8_t code = 0;
    (*this)(code);
    if (code == hocketSuccess || code > hocketErrorTimeout) return refuse();
    error.code = static_cast<hocketResult_t>(code);
    (*this)(error.text);
  }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool present = false;
    (*this)(present);
    if (!good_ || !present) return;
    (*this)(value.emplace());
  }
  // Grows with what is really there: a large count alone allocates nothing.
  template <class T>
  void operator()(std::vector<T>& values) {
    std::uint32_t count = 0;
    (*this)(count);
    if (count > kMaxRanks) return refuse();
    for (std::uint32_t i = 0; i < count && good_; ++i) (*this)(values.emplace_back());
  }
  void operator()(CallRecord& record) { fields(*this, record); }
  template <class T>
    requires requires(T& value, Reader& io) { value.fields(io); }
  void operator()(T& value) {
    value.fields(*this);
  }
  void skip_rest() { in_ = {}; }

 private:
  void refuse() {
    good_ = false;
    in_ = {};
  }
  std::span<const std::uint8_t> take(std::size_t count) {
    if (!good_ || in_.size() < count) {
      refuse();
      return {};
    }
    const auto taken = in_.first(count);
    in_ = in_.subspan(count);
    return taken;
  }

  std::span<const std::uint8_t> in_;
  bool good_ = true;
};

template <class T>
std::optional<Message> parse_as(std::span<const std::uint8_t> body) {
  T message;
  Reader reader(body);
  reader(message);
  if (!reader.good()) return std::nullopt;
  return message;
}

template <std::size_t... Kind>
std::optional<Message> parse_kind(std::uint8_t kind, std::span<const std::uint8_t> body, std::index_sequence<Kind...>) {
  std::optional<Message> message;
  static_cast<void>(((kind == Kind ? (message = parse_as<std::variant_alternative_t<Kind, Message>>(body), true) : false) ||
                     ...));
  return message;
}

}  // namespace

Bytes encode(const Message& message, Descriptor descriptor) {
  Bytes frame(kFrameHeaderBytes);
  Writer writer(frame);
  // The field lists take references to non-const because the same lists read; a writer only looks.
  std::visit([&](const auto& value) { writer(const_cast<std::remove_cvref_t<decltype(value)>&>(value)); }, message);
  const std::size_t body_bytes = frame.size() - kFrameHeaderBytes;
  for (int i = 0; i < 4; ++i) frame[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(body_bytes >> (8 * i));
  frame[4] = static_cast<std::uint8_t>(message.index());
  frame[5] = static_cast<std::uint8_t>(descriptor);
  return frame;
}

std::optional<FrameHeader> parse_header(std::span<const std::uint8_t> bytes, std::size_t max_body_bytes) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  FrameHeader header;
  for (std::size_t i = 0; i < 4; ++i) header.body_bytes |= static_cast<std::size_t>(bytes[i]) << (8 * i);
  header.kind = bytes[4];
  if (header.body_bytes > max_body_bytes || header.kind >= std::variant_size_v<Message> || bytes[5] > 1 || bytes[6] != 0 ||
      bytes[7] != 0) {
    return std::nullopt;
  }
  header.descriptor = static_cast<Descriptor>(bytes[5]);
  return header;
}

std::optional<Message> parse(std::uint8_t kind, std::span<const std::uint8_t> body) {
  return parse_kind(kind, body, std::make_index_sequence<std::variant_size_v<Message>>{});
}

}  // namespace hocket::control
