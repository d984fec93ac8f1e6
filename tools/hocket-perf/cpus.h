// SPDX-License-Identifier: Apache-2.0
// The CPUs that this process may use.
#pragma once

#include <string>
#include <vector>

namespace hocket::perf {

std::vector<int> allowed_cpus();

// Pins the calling thread to the index-th of `cpus`, modulo.
void pin_thread(const std::vector<int>& cpus, int index);

// Pins the calling thread as above while it lives, then lets it run where it could before.
class ScopedPin {
 public:
  ScopedPin(const std::vector<int>& cpus, int index);
  ~ScopedPin();
  ScopedPin(const ScopedPin&) = delete;
  ScopedPin& operator=(const ScopedPin&) = delete;

 private:
  std::vector<int> before_;
};

// As the kernel names it; "unknown CPU" where it does not.
std::string cpu_model();
std::string host_name();

}  // namespace hocket::perf
