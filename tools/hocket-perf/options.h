// SPDX-License-Identifier: Apache-2.0
// The command line as a value. Flags are those of nccl-tests wherever it has the thing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "collectives.h"
#include "types.h"

namespace hocket::perf {

enum class Memory { plain, hocket };

struct Options {
  std::vector<const Collective*> collectives;
  std::vector<const DataType*> types;
  std::vector<Op> ops;
  std::optional<int> root = 0;  // nothing: every rank in turn

  std::size_t min_bytes = 8;
  std::size_t max_bytes = 64u << 20;
  std::optional<std::size_t> step_bytes;  // where given, sizes grow by it and not by the factor
  double step_factor = 2;

  std::optional<int> iterations;  // nothing: as many as give a steady figure
  int warmup = 5;
  int aggregate = 1;
  int checks = 1;
  bool host_stream = false;

  // Neither given: a launcher has started the ranks.
  int processes = 0;
  int threads = 0;
  bool single_thread = false;
  bool pin = false;
  Memory memory = Memory::plain;
  std::uint64_t seed = 1;

  bool deterministic = false;
  std::string algorithm;
  int channels = 0;    // 0: the library's choice
  int slot_bytes = 0;  // 0: the library's choice
  std::optional<double> timeout_s;

  bool percentiles = false;
  bool limits = false;
  std::string json, csv, svg;  // file names, "-" for standard output

  std::string command;  // as typed

  bool from_launcher() const { return processes == 0 && threads == 0; }
  int n_processes() const { return processes == 0 ? 1 : processes; }
  int threads_per_process() const { return threads == 0 ? 1 : threads; }
  int n_local_ranks() const { return n_processes() * threads_per_process(); }
};

// An exit code where there is nothing to run: after --help, or when the line makes no sense (already explained).
std::variant<Options, int> parse_options(int argc, char** argv);

// The sizes from -b to -e.
std::vector<std::size_t> sizes(const Options& options);

}  // namespace hocket::perf
