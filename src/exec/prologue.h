// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace hocket {

// What a call does before its plan can run: a small state machine that never blocks for long, like the lanes.
class Prologue {
 public:
  virtual ~Prologue() = default;
  // Makes what progress it can; true when something moved.
  virtual bool advance() = 0;
  // Once true, the execution has been started and the prologue is not used again.
  virtual bool done() const = 0;
  virtual bool could_advance() const = 0;
  virtual void add_awaited(std::vector<int>& ranks) const = 0;
  virtual int mismatched_peer() const = 0;  // -1: none
};

}  // namespace hocket
