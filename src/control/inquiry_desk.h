// SPDX-License-Identifier: Apache-2.0
// Conducts inquiries, one at a time: asks every rank what it is doing, waits for the answers (but not long), and delivers
// the verdict. Questions about the same call share one inquiry, others queue. Lives on the control thread.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/inquiry.h"
#include "control/service.h"

namespace hocket::control {

// Explanations of one wait are repeated at most once a second.
class RepeatLimit {
 public:
  bool passes(std::uint64_t sequence) {
    const auto now = Clock::now();
    if (sequence == sequence_ && now - at_ < std::chrono::seconds(1)) return false;
    sequence_ = sequence;
    at_ = now;
    return true;
  }

 private:
  std::uint64_t sequence_ = 0;
  Clock::time_point at_ = Clock::time_point::min() + std::chrono::hours(1);
};

class InquiryDesk {
 public:
  // How the desk reaches the ranks.
  class Floor {
   public:
    virtual ~Floor() = default;
    virtual void ask(int rank, const Query& query) = 0;  // the answer may come at once or never
    virtual void fail_everyone(const Error& error) = 0;
    virtual void explain(int rank, const Explained& explained) = 0;
  };

  InquiryDesk(Service& service, Floor& floor, std::vector<RankInfo> ranks);

  void question(Question question);
  void answer(int rank, const Answer& answer);
  void gone(int rank, Presence how);
  Presence presence(int rank) const { return presence_[static_cast<std::size_t>(rank)]; }

 private:
  struct Inquiry {
    std::uint32_t number = 0;
    std::vector<Question> questions;
    std::vector<Witness> witnesses;
    std::vector<bool> pending;
    bool asked = false;
    Timer timer;
  };
  void begin(Question question);
  void ask_everyone();
  void finish_if_complete();
  void finish();
  void deliver(const Question& question, const std::vector<Witness>& witnesses);

  Service& service_;
  Floor& floor_;
  const std::vector<RankInfo> ranks_;
  std::vector<Presence> presence_;
  std::vector<Clock::time_point> gone_since_;
  std::vector<RepeatLimit> limits_;  // by rank that reports
  std::unique_ptr<Inquiry> inquiry_;  // the one in progress
  std::deque<Question> queue_;
  std::uint32_t next_number_ = 1;
};

}  // namespace hocket::control
