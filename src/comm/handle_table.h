// SPDX-License-Identifier: Apache-2.0
// Turns objects into handles that stay safe to use after the object is gone: a handle is an index and a generation, never
// an address. Slots are reused with a new generation, so a stale handle is recognised.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace hocket {

enum class HandleState : std::uint8_t { live, busy, dead };

template <class T>
class HandleTable {
 public:
  // One object. `state` is generation * 2 + busy; taking and checking are one atomic operation on the path of every call.
  struct Slot {
    std::atomic<std::uint64_t> state{0};
    T* object = nullptr;  // stable while busy
    std::shared_ptr<T> owner;  // under the table's mutex
    std::uint32_t index = 0;
  };

  // Exclusive use of an object by one call. Empty when it could not be had.
  class Guard {
   public:
    Guard() = default;
    Guard(Slot* slot, std::uint64_t generation) : slot_(slot), generation_(generation) {}
    Guard(Guard&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)), generation_(other.generation_) {}
    Guard& operator=(Guard&& other) noexcept {
      release();
      slot_ = std::exchange(other.slot_, nullptr);
      generation_ = other.generation_;
      return *this;
    }
    ~Guard() { release(); }
    explicit operator bool() const { return slot_ != nullptr; }
    T* operator->() const { return slot_->object; }
    T& operator*() const { return *slot_->object; }
    T* get() const { return slot_->object; }
    void release() {
      // What this call did is visible to the next one. Pairs with: the acquire in take().
      if (Slot* slot = std::exchange(slot_, nullptr)) slot->state.store(generation_ * 2, std::memory_order_release);
    }

    void forget() { slot_ = nullptr; }

   private:
    Slot* slot_ = nullptr;
    std::uint64_t generation_ = 0;
  };

  // Null when kMaxSlots objects are live. With `taken`, the new object starts out taken by that guard.
  void* insert(std::shared_ptr<T> object, Guard* taken = nullptr) {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      if (slots_.size() == kMaxSlots) return nullptr;
      slots_.emplace_back();
      slots_.back().index = static_cast<std::uint32_t>(slots_.size() - 1);
      by_index_[slots_.back().index].store(&slots_.back(), std::memory_order_release);
      free_.push_back(&slots_.back());
    }
    Slot* slot = free_.back();
    free_.pop_back();
    slot->object = object.get();
    slot->owner = std::move(object);
    const std::uint64_t generation = slot->state.load(std::memory_order_relaxed) / 2 + 1;
    if (taken != nullptr) *taken = Guard(slot, generation);
    slot->state.store(generation * 2 + (taken != nullptr ? 1 : 0), std::memory_order_release);
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(generation << kIndexBits | (slot->index + 1)));
  }

  // Takes the object for one call.
  Guard take(const void* handle, HandleState& state) {
    Slot* slot = find(handle);
    const std::uint64_t generation = generation_of(handle);
    std::uint64_t expected = generation * 2;
    if (slot == nullptr || generation == 0) {
      state = HandleState::dead;
      return {};
    }
    // Pairs with: the release in Guard::release() and insert().
    if (!slot->state.compare_exchange_strong(expected, generation * 2 + 1, std::memory_order_acquire)) {
      state = expected / 2 == generation ? HandleState::busy : HandleState::dead;
      return {};
    }
    state = HandleState::live;
    return Guard(slot, generation);
  }

  // The object, alive at least as long as the pointer, without taking it; null when dead.
  std::shared_ptr<T> pin(const void* handle) {
    const std::lock_guard lock(mutex_);
    Slot* slot = find(handle);
    if (slot == nullptr || slot->state.load(std::memory_order_acquire) / 2 != generation_of(handle)) return nullptr;
    return slot->owner;
  }

  // Ends the handle once no call uses it; false when one still does after `limit`, or when it is dead already.
  bool retire(const void* handle, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    HandleState state = HandleState::dead;
    for (;;) {
      Guard guard = take(handle, state);
      if (guard) return finish(handle, std::move(guard)), true;
      if (state == HandleState::dead || std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // Ends the handle of a taken object. The object dies with its last owner: here, unless a stream still has work for it.
  void finish(const void* handle, Guard guard) {
    std::shared_ptr<T> owner;  // dies after the lock is released
    {
      const std::lock_guard lock(mutex_);
      Slot* slot = find(handle);
      owner = std::move(slot->owner);
      slot->object = nullptr;
      // Later users of the handle see another generation.
      slot->state.store((generation_of(handle) + 1) * 2 + 1, std::memory_order_release);
      guard.forget();
      free_.push_back(slot);
    }
  }

  // After fork(), in the child: no object of the parent is usable.
  void invalidate_all() {
    for (auto& entry : by_index_)
      if (Slot* slot = entry.load(std::memory_order_relaxed))
        slot->state.store((slot->state.load(std::memory_order_relaxed) / 2 + 1) * 2 + 1, std::memory_order_relaxed);
  }

 private:
  static constexpr int kIndexBits = 20;
  static constexpr std::size_t kMaxSlots = 8192;

  static std::uint64_t generation_of(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle) >> kIndexBits; }
  Slot* find(const void* handle) {
    const auto index = (reinterpret_cast<std::uintptr_t>(handle) & ((std::uintptr_t{1} << kIndexBits) - 1)) - 1;
    return index < kMaxSlots ? by_index_[index].load(std::memory_order_acquire) : nullptr;
  }

  std::mutex mutex_;
  std::deque<Slot> slots_;
  std::vector<Slot*> free_;
  std::array<std::atomic<Slot*>, kMaxSlots> by_index_{};
};

}  // namespace hocket
