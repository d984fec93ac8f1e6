// SPDX-License-Identifier: Apache-2.0
#include "cpus.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "errors.h"

namespace hocket::perf {
namespace {

// Room for more CPUs than cpu_set_t's 1024: the kernel refuses a mask that is too short for the machine.
constexpr int kMaxCpus = 16384;

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeCpuSet>;

CpuSet make_set() {
  CpuSet set(CPU_ALLOC(kMaxCpus));
  CPU_ZERO_S(CPU_ALLOC_SIZE(kMaxCpus), set.get());
  return set;
}

void set_allowed_cpus(const std::vector<int>& cpus) {
  const CpuSet set = make_set();
  for (int cpu : cpus) CPU_SET_S(cpu, CPU_ALLOC_SIZE(kMaxCpus), set.get());
  if (sched_setaffinity(0, CPU_ALLOC_SIZE(kMaxCpus), set.get()) != 0) {
    end_with_error(fmt::format("cannot pin to CPU {}: {} ({})", cpus.front(), std::strerror(errno), errno));
  }
}

}  // namespace

std::vector<int> allowed_cpus() {
  const CpuSet set = make_set();
  if (sched_getaffinity(0, CPU_ALLOC_SIZE(kMaxCpus), set.get()) != 0) {
    end_with_error(fmt::format("cannot read the allowed CPUs: {} ({})", std::strerror(errno), errno));
  }
  std::vector<int> out;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(kMaxCpus), set.get())) out.push_back(cpu);
  }
  return out;
}

void pin_thread(const std::vector<int>& cpus, int index) {
  set_allowed_cpus({cpus[static_cast<std::size_t>(index) % cpus.size()]});
}

ScopedPin::ScopedPin(const std::vector<int>& cpus, int index) : before_(allowed_cpus()) { pin_thread(cpus, index); }

ScopedPin::~ScopedPin() { set_allowed_cpus(before_); }

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace hocket::perf
