// SPDX-License-Identifier: Apache-2.0
#include "comm/mapped_buffers.h"

#include <sys/stat.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/log.h"

namespace hocket {
namespace {

constexpr int kFetchTimeoutMs = 5000;

// Told apart from every other process of the host, forks included.
std::uint64_t process_number() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static std::uint64_t number = 0;
  const std::lock_guard lock(mutex);
  if (owner != ::getpid()) {
    owner = ::getpid();
    if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<std::uint64_t>(owner);
    number |= 1;
  }
  return number;
}

}  // namespace

BufferOffer MappedBuffers::make_offer(const void* input, const void* output, std::size_t input_bytes,
                                      std::size_t output_bytes) {
  BufferOffer offer;
  offer.process = process_number();
  offer.input = reinterpret_cast<std::uintptr_t>(input);
  offer.output = reinterpret_cast<std::uintptr_t>(output);
  const std::uint64_t freed = freed_allocations();
  if (freed != own_freed_) confirmed_.clear();
  own_freed_ = freed;
  offer.freed = static_cast<std::uint32_t>(freed);
  if (refused_) return offer;
  // A buffer that the call does not use here has no place to tell: any allocation will do, the other one's.
  const auto in = input_bytes != 0 ? find_allocation(input, input_bytes) : std::nullopt;
  const auto out = output_bytes != 0 ? find_allocation(output, output_bytes) : std::nullopt;
  if ((input_bytes != 0 && !in) || (output_bytes != 0 && !out)) return offer;
  const AllocationPlace source = in ? *in : out.value_or(AllocationPlace{});
  const AllocationPlace sink = out ? *out : source;
  if (source.allocation > UINT32_MAX || sink.allocation > UINT32_MAX) return offer;
  offer.input = source.offset;
  offer.output = sink.offset;
  offer.input_allocation = static_cast<std::uint32_t>(source.allocation);
  offer.output_allocation = static_cast<std::uint32_t>(sink.allocation);
  offer.confirmed = confirmed_.contains(offer.input_allocation) && confirmed_.contains(offer.output_allocation) ? 1 : 0;
  return offer;
}

bool MappedBuffers::usable(const std::vector<BufferOffer>& offers) {
  const auto same_process = [&](const BufferOffer& offer) { return offer.process == offers[0].process; };
  const auto allocated = [](const BufferOffer& offer) { return offer.input_allocation != 0 && offer.output_allocation != 0; };
  return std::all_of(offers.begin(), offers.end(), same_process) || std::all_of(offers.begin(), offers.end(), allocated);
}

bool MappedBuffers::all_confirmed(const std::vector<BufferOffer>& offers) {
  const bool one_process =
      std::all_of(offers.begin(), offers.end(), [&](const BufferOffer& o) { return o.process == offers[0].process; });
  return one_process || std::all_of(offers.begin(), offers.end(), [](const BufferOffer& o) { return o.confirmed != 0; });
}

void MappedBuffers::forget_stale(const std::vector<BufferOffer>& offers) {
  for (int rank = 0; rank < n_ranks_; ++rank) {
    const std::uint32_t freed = offers[static_cast<std::size_t>(rank)].freed;
    const auto known = freed_.find(rank);
    if (known != freed_.end() && known->second != freed)
      std::erase_if(mappings_, [&](const auto& entry) { return entry.first.first == rank; });
    freed_[rank] = freed;
  }
}

bool MappedBuffers::map_all(const std::vector<BufferOffer>& offers) {
  forget_stale(offers);
  bool ok = true;
  for (int rank = 0; rank < n_ranks_ && ok; ++rank) {
    const BufferOffer& offer = offers[static_cast<std::size_t>(rank)];
    if (offer.process == process_number()) continue;
    ok = map_one(rank, offer.input_allocation) && map_one(rank, offer.output_allocation);
  }
  return ok;
}

bool MappedBuffers::map_one(int rank, std::uint32_t allocation) {
  if (mappings_.contains({rank, allocation})) return true;
  const auto fd = link_.fetch_allocation(rank, allocation, kFetchTimeoutMs);
  if (!fd) {
    log_warn("memory of rank {}: {}; large calls go through shared slots instead", rank, fd.error().text);
    return false;
  }
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0 || info.st_size <= 0) return false;
  auto mapping = Mapping::shared(fd->get(), static_cast<std::size_t>(info.st_size));
  if (!mapping) {
    log_warn("memory of rank {}: {}; large calls go through shared slots instead", rank, mapping.error().text);
    return false;
  }
  mappings_.emplace(std::pair{rank, allocation}, std::move(*mapping));
  return true;
}

void MappedBuffers::conclude(const BufferOffer& mine, bool all_mapped) {
  if (!all_mapped) {
    refused_ = true;
    return;
  }
  if (mine.input_allocation == 0) return;
  confirmed_.insert(mine.input_allocation);
  confirmed_.insert(mine.output_allocation);
}

std::byte* MappedBuffers::find(int rank, std::uint32_t allocation, std::uint64_t place) const {
  const auto mapping = mappings_.find({rank, allocation});
  if (mapping != mappings_.end()) return mapping->second.data() + place;
  // Same process: an address, or a place in an allocation of ours.
  if (allocation == 0) return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(place));
  return address_in_allocation(allocation, place);
}

void MappedBuffers::resolve(const std::vector<BufferOffer>& offers, const std::byte* input, std::byte* output) {
  inputs_.resize(offers.size());
  outputs_.resize(offers.size());
  for (int rank = 0; rank < n_ranks_; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    inputs_[i] = rank == rank_ ? input : find(rank, offers[i].input_allocation, offers[i].input);
    outputs_[i] = rank == rank_ ? output : find(rank, offers[i].output_allocation, offers[i].output);
  }
}

void BufferAgreement::start(MappedBuffers& buffers, const Ports& ports, const BufferOffer& mine, std::uint32_t fingerprint,
                            Doorbells& bells) {
  buffers_ = &buffers;
  ports_ = ports;
  bells_ = &bells;
  fingerprint_ = fingerprint;
  offers_.resize(ports.peers.size());
  for (std::size_t rank = 0; rank < ports.peers.size(); ++rank)
    if (ports.peers[rank] == nullptr) offers_[rank] = mine;
  next_peer_ = 0;
  ok_ = true;
  mapped_ = false;
  phase_ = Phase::offer;
}

void BufferAgreement::send(const void* payload, std::size_t bytes, std::uint32_t fingerprint) {
  fill_lines(ports_.everyone->lines(), payload, bytes);
  ports_.everyone->commit(fingerprint, 1);
  bells_->ring();
}

// Takes what peers have sent in this phase; true once all have.
template <class Take>
bool BufferAgreement::collect(Take&& take) {
  for (; next_peer_ < ports_.peers.size(); ++next_peer_) {
    RecvRing* const ring = ports_.peers[next_peer_];
    if (ring == nullptr) continue;
    if (!ring->ready(awaited_print(), 1)) return false;
    take(next_peer_, ring->lines()->data);
    ring->release();
    bells_->ring();
  }
  next_peer_ = 0;
  return true;
}

bool BufferAgreement::advance() {
  const Phase before = phase_;
  const std::size_t peer_before = next_peer_;
  const BufferOffer* mine = nullptr;
  for (std::size_t rank = 0; rank < offers_.size(); ++rank)
    if (ports_.peers[rank] == nullptr) mine = &offers_[rank];
  if (phase_ == Phase::offer && ports_.everyone->can_send()) {
    send(mine, sizeof *mine, offer_print());
    phase_ = Phase::collect_offers;
  }
  if (phase_ == Phase::collect_offers &&
      collect([&](std::size_t rank, const std::byte* data) { std::memcpy(&offers_[rank], data, sizeof(BufferOffer)); })) {
    if (!MappedBuffers::usable(offers_)) {
      phase_ = Phase::done;
    } else if (MappedBuffers::all_confirmed(offers_)) {
      mapped_ = true;
      phase_ = Phase::done;
    } else {
      phase_ = Phase::answer;
      ok_ = buffers_->map_all(offers_);
    }
  }
  if (phase_ == Phase::answer && ports_.everyone->can_send()) {
    const std::uint8_t answer = ok_ ? 1 : 0;
    send(&answer, sizeof answer, answer_print());
    phase_ = Phase::collect_answers;
  }
  if (phase_ == Phase::collect_answers &&
      collect([&](std::size_t, const std::byte* data) { ok_ = ok_ && static_cast<std::uint8_t>(*data) == 1; })) {
    buffers_->conclude(*mine, ok_);
    mapped_ = ok_;
    phase_ = Phase::done;
  }
  return phase_ != before || next_peer_ != peer_before;
}

bool BufferAgreement::could_advance() const {
  switch (phase_) {
    case Phase::offer:
    case Phase::answer:
      return ports_.everyone->can_send();
    case Phase::collect_offers:
    case Phase::collect_answers: {
      const RecvRing* const ring = next_peer_ < ports_.peers.size() ? ports_.peers[next_peer_] : nullptr;
      return ring == nullptr || ring->ready(awaited_print(), 1);
    }
    case Phase::done:
      return true;
  }
  return true;
}

void BufferAgreement::add_awaited(std::vector<int>& ranks) const {
  for (std::size_t rank = 0; rank < ports_.peers.size(); ++rank)
    if (const RecvRing* ring = ports_.peers[rank]; ring != nullptr && rank >= next_peer_ && !ring->ready(awaited_print(), 1))
      ranks.push_back(static_cast<int>(rank));
}

int BufferAgreement::mismatched_peer() const {
  if (phase_ != Phase::collect_offers && phase_ != Phase::collect_answers) return -1;
  for (std::size_t rank = next_peer_; rank < ports_.peers.size(); ++rank)
    if (const RecvRing* ring = ports_.peers[rank]; ring != nullptr && ring->mismatched(awaited_print()))
      return static_cast<int>(rank);
  return -1;
}

}  // namespace hocket
