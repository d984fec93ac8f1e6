// SPDX-License-Identifier: Apache-2.0
// One collective call on all ranks as a value: what is called, where the buffers lie, and, from the contract in hocket.h
// alone, what every byte of every buffer must be afterwards, guard bytes and untouched parts included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/local_ranks.h"
#include "collectives/values.h"

namespace hocket::test {

enum class Kind {
  all_reduce,
  broadcast,
  bcast,
  reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  all_gather_v,
  reduce_scatter_v,
  all_to_all_v,
  gather_v,
  scatter_v,
  ring_shift,  // a send to the next rank and a receive from the one before, in one group
};
inline constexpr int kKindCount = 15;
std::string to_string(Kind kind);
inline Kind kind_at(int i) { return static_cast<Kind>(i); }
bool reduces(Kind kind);
bool rooted(Kind kind);
bool vector_form(Kind kind);
bool has_in_place(Kind kind);

enum class Memory { ordinary, shared, shared_on_odd_ranks };  // shared: from hocketMemAlloc

struct Call {
  Kind kind = Kind::all_reduce;
  hocketDataType_t type = hocketInt32;
  hocketRedOp_t op = hocketSum;
  int root = 0;
  bool in_place = false;
  std::size_t count = 0;
  // v-forms: one count per rank; all_to_all_v: n * n, row = sender.
  std::vector<std::size_t> counts = {};
  bool gaps = false;  // v-forms: blocks in another order, with space between
  // Bytes from a 64-byte boundary to the buffers' starts; multiples of the element size.
  std::size_t send_shift = 0, recv_shift = 0;
  Memory memory = Memory::ordinary;
  std::uint64_t seed = 0;

  std::string text() const;
};

// A buffer between guard bytes, what it holds before the call and what it must hold after.
class Area {
 public:
  Area() = default;
  Area(std::size_t bytes, std::size_t shift, bool shared);
  std::byte* data() const { return storage_.get() + kGuard + shift_; }
  std::byte* expected() { return expected_.data() + kGuard + shift_; }
  bool exists() const { return storage_ != nullptr; }
  // The content now is what must be left.
  void expect_unchanged();
  // Offset from data() of the first wrong byte; kRight when all is right.
  static constexpr std::ptrdiff_t kRight = PTRDIFF_MIN;
  std::ptrdiff_t first_wrong_byte() const;
  std::size_t total_bytes() const { return total_; }

 private:
  static constexpr std::size_t kGuard = 128;
  std::unique_ptr<std::byte, void (*)(std::byte*)> storage_{nullptr, nullptr};
  std::vector<std::byte> expected_;
  std::size_t shift_ = 0, total_ = 0;
};

class PreparedCall {
 public:
  PreparedCall(Call call, int n_ranks);
  // Rank `rank`'s part.
  hocketResult_t issue(int rank, hocketComm_t comm, hocketStream_t stream = nullptr) const;
  // Empty when every buffer is as it must be, else what is wrong; of one rank where the others are other processes.
  std::string wrong() const;
  std::string wrong_at(int rank) const;
  std::size_t bytes() const;
  const Call& call() const { return call_; }

 private:
  struct Side {
    Area first, second;  // in place: only the first
    std::byte* send = nullptr;
    std::byte* recv = nullptr;
    std::size_t send_elements = 0, recv_elements = 0;
    std::size_t send_offset = 0, recv_offset = 0;  // elements, in place
    std::vector<std::size_t> send_counts, send_displs, recv_counts, recv_displs;
    std::vector<std::byte> input;
  };

  void lay_out(int rank);
  void place(int rank);
  void fill(int rank);
  void expect();
  // `elements` of `from` are expected at `at` of the rank's receive buffer.
  void expect_at(int rank, std::size_t at, const std::byte* from, std::size_t elements);
  std::vector<std::byte> reduce_all() const;

  const Call call_;
  const int n_;
  const std::size_t size_;
  std::vector<Side> sides_;
};

// Makes the calls on all ranks one right after the other, then checks all of them.
void run_calls(const LocalRanks& ranks, const std::vector<Call>& calls);

// Largest slot of the communicator's connections, from its description.
std::size_t slot_bytes(hocketComm_t comm);
std::string describe(hocketComm_t comm);

// Random counts for a v-form, with `zero_percent` zeros.
std::vector<std::size_t> random_counts(Kind kind, int n_ranks, std::size_t most, int zero_percent, std::uint64_t seed);

}  // namespace hocket::test
