// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "errors.h"

namespace hocket::perf {
namespace {

// The words of the line, before they are looked up.
struct Words {
  std::vector<std::string> collectives, types{"float"}, ops{"sum"};
  std::string min_bytes, max_bytes, step_bytes, root = "0", blocking = "0", memory = "plain";
};

std::size_t parse_bytes(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  std::string suffix = text.substr(used);
  std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::vector<std::vector<std::string>> kSuffixes = {
      {"", "B"}, {"K", "KB", "KIB"}, {"M", "MB", "MIB"}, {"G", "GB", "GIB"}};
  for (std::size_t power = 0; power < kSuffixes.size(); ++power) {
    const auto& names = kSuffixes[power];
    const bool fits = value <= (std::numeric_limits<std::uint64_t>::max() >> 1 >> (10 * power));
    if (used > 0 && text[0] != '-' && fits && std::find(names.begin(), names.end(), suffix) != names.end()) {
      return value << (10 * power);
    }
  }
  throw CLI::ValidationError(fmt::format("'{}' is not a size; write bytes with an optional K, M or G, e.g. 64K", text));
}

template <class Value, class Find>
std::vector<Value> look_up(const std::vector<std::string>& words, const std::vector<Value>& all, Find find,
                           const char* what, const std::string& known) {
  std::vector<Value> out;
  for (const std::string& word : words) {
    if (word == "all") {
      out.insert(out.end(), all.begin(), all.end());
    } else if (const auto found = find(word)) {
      out.push_back(*found);
    } else {
      throw CLI::ValidationError(fmt::format("'{}' is no {}; there are: {}all", word, what, known));
    }
  }
  return out;
}

template <class Pointer>
std::optional<Pointer> maybe(Pointer pointer) {
  return pointer == nullptr ? std::nullopt : std::optional(pointer);
}

std::vector<const Collective*> look_up_collectives(const std::vector<std::string>& words) {
  std::vector<const Collective*> all;
  std::string known;
  for (const Collective& collective : all_collectives()) {
    all.push_back(&collective);
    known += std::string(collective.name) + " ";
  }
  return look_up(
      words, all, [](const std::string& w) { return maybe(find_collective(w)); }, "collective", known);
}

std::vector<const DataType*> look_up_types(const std::vector<std::string>& words) {
  std::vector<const DataType*> all;
  std::string known;
  for (const DataType& type : all_data_types()) {
    all.push_back(&type);
    known += std::string(type.name) + " ";
  }
  return look_up(
      words, all, [](const std::string& w) { return maybe(find_data_type(w)); }, "datatype", known);
}

std::vector<Op> look_up_ops(const std::vector<std::string>& words) {
  const std::vector<Op> all(all_ops().begin(), all_ops().end());
  std::string known;
  for (Op op : all) known += std::string(op_name(op)) + " ";
  return look_up(
      words, all, [](const std::string& w) { return find_op(w); }, "operation", known);
}

void add_what(CLI::App& app, Words& words) {
  app.add_option("collective", words.collectives, "One, a comma-separated list, or all")->required()->delimiter(',');
  app.add_option("-b,--minbytes", words.min_bytes, "Smallest size; K, M, G are powers of 1024 (8)");
  app.add_option("-e,--maxbytes", words.max_bytes, "Largest size (64M, or -b if that is larger)");
  app.add_option("-i,--stepbytes", words.step_bytes, "Grow by this many bytes instead of by a factor");
  app.add_option("-d,--datatype", words.types, "Datatypes, comma-separated, or all (float)")->delimiter(',');
  app.add_option("-o,--op", words.ops, "Operations, comma-separated, or all (sum)")->delimiter(',');
  app.add_option("-r,--root", words.root, "Root, or all (0)");
}

void add_how(CLI::App& app, Options& options, Words& words) {
  app.add_option("-f,--stepfactor", options.step_factor, "Grow by this factor (2)")
      ->check(CLI::Range(1.0001, 1e9, "a factor above 1"));
  app.add_option("-n,--iters", options.iterations,
                 "Timed iterations per size (enough for 0.2 s, 5 to 20000). Small calls are repeated within an "
                 "iteration until it takes 20 us")
      ->check(CLI::PositiveNumber);
  app.add_option("-w,--warmup_iters", options.warmup, "Calls before timing starts (5)")->check(CLI::NonNegativeNumber);
  app.add_option("-m,--agg_iters", options.aggregate, "Calls aggregated in one group (1)")->check(CLI::PositiveNumber);
  app.add_option("-c,--check", options.checks, "Times that results are checked, element by element; 0: never (1)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("-z,--blocking", words.blocking, "0: blocking calls (NULL stream); 1: a host stream (0)")
      ->check(CLI::IsMember({"0", "1", "blocking", "stream"}));
  app.add_option("--seed", options.seed, "Of the data and of the v-forms' counts (1)");
}

void add_where(CLI::App& app, Options& options, Words& words) {
  const CLI::Range positive(1, 4096);
  app.add_option("-p,--processes", options.processes, "Start this many local processes")->check(positive);
  app.add_option("-t,--nthreads", options.threads, "Ranks per process, a thread each")->check(positive);
  app.add_flag("--single-thread", options.single_thread,
               "With -t: one thread drives the ranks of its process in groups");
  app.add_flag("--pin", options.pin, "Pin rank r to the r-th allowed CPU, modulo");
  app.add_option("--alloc", words.memory, "Memory of the buffers: plain or hocket (hocketMemAlloc) (plain)")
      ->check(CLI::IsMember({"plain", "hocket"}));
}

void add_library(CLI::App& app, Options& options) {
  app.add_flag("--deterministic", options.deterministic, "Same bits whatever the size, algorithm and channels");
  app.add_option("--algorithm", options.algorithm, "Force an algorithm");
  app.add_option("--channels", options.channels, "Force the number of channels")->check(CLI::PositiveNumber);
  app.add_option("--slot-bytes", options.slot_bytes, "Force the size of a slot")->check(CLI::PositiveNumber);
  app.add_option("-T,--timeout", options.timeout_s, "Seconds that a call may wait for its peers")
      ->check(CLI::Range(0.001, 2e6, "seconds"));
}

void add_output(CLI::App& app, Options& options) {
  app.add_flag("--percentiles", options.percentiles, "Show the fastest time and the 99th percentile beside the median");
  app.add_flag("--limits", options.limits, "Measure in the same run what two cores of this machine can do at best");
  app.add_option("--json", options.json, "Write results to this file (- for standard output)");
  app.add_option("--csv", options.csv, "Write results to this file (- for standard output)");
  app.add_option("--svg", options.svg, "Draw bandwidth and latency over size into this file");
}

void interpret(Options& options, const Words& words) {
  options.collectives = look_up_collectives(words.collectives);
  options.types = look_up_types(words.types);
  options.ops = look_up_ops(words.ops);
  if (!words.min_bytes.empty()) options.min_bytes = parse_bytes(words.min_bytes);
  options.max_bytes = std::max(options.min_bytes, options.max_bytes);
  if (!words.max_bytes.empty()) options.max_bytes = parse_bytes(words.max_bytes);
  if (!words.step_bytes.empty()) options.step_bytes = parse_bytes(words.step_bytes);
  options.host_stream = words.blocking == "1" || words.blocking == "stream";
  options.memory = words.memory == "hocket" ? Memory::hocket : Memory::plain;
  if (words.root == "all") {
    options.root.reset();
  } else if (int root = 0; CLI::detail::lexical_cast(words.root, root) && root >= 0) {
    options.root = root;
  } else {
    throw CLI::ValidationError(fmt::format("-r: '{}' is no rank; write a number or all", words.root));
  }
}

void refuse(bool wrong, const std::string& sentence) {
  if (wrong) throw CLI::ValidationError(sentence);
}

bool any_pair_supported(const Options& options) {
  for (const Collective* collective : options.collectives) {
    if (!collective->reduces) return true;
    for (const DataType* type : options.types) {
      for (Op op : options.ops) {
        if (supported(type->type, op)) return true;
      }
    }
  }
  return false;
}

void check_together(const Options& options) {
  refuse(options.min_bytes > options.max_bytes,
         fmt::format("-b {} is above -e {}", options.min_bytes, options.max_bytes));
  refuse(options.step_bytes == 0u, "-i must be at least 1 byte");
  refuse(options.single_thread && options.threads == 0, "--single-thread needs -t");
  refuse(!options.from_launcher() && options.root.value_or(0) >= options.n_local_ranks(),
         fmt::format("-r {}: there are {} ranks", options.root.value_or(0), options.n_local_ranks()));
  refuse(
      options.limits && options.from_launcher(),
      "--limits needs -p or -t: it measures through memory that this tool shares between ranks it has started itself");
  refuse(
      !any_pair_supported(options),
      "the library has none of these operations for these datatypes (bitwise: integers and bool; avg, mulsum: all but "
      "bool; user: integers, float, double)");
}

}  // namespace

std::variant<Options, int> parse_options(int argc, char** argv) {
  CLI::App app(
      "hocket-perf: times and checks Hocket's collectives.\n\n"
      "  hocket-perf all_reduce -p 2 -b 8 -e 256M -f 2\n"
      "  mpirun -np 4 hocket-perf all_reduce\n");
  app.set_version_flag("--version", fmt::format("hocket-perf {}.{}.{}", HOCKET_MAJOR, HOCKET_MINOR, HOCKET_PATCH));
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return fmt::format("hocket-perf: {}\nhocket-perf --help lists the flags.\n", error.what());
  });
  Options options;
  Words words;
  add_what(app, words);
  add_how(app, options, words);
  add_where(app, options, words);
  add_library(app, options);
  add_output(app, options);
  try {
    app.parse(argc, argv);
    interpret(options, words);
    check_together(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  for (int i = 0; i < argc; ++i) options.command += (i == 0 ? "" : " ") + std::string(argv[i]);
  return options;
}

std::vector<std::size_t> sizes(const Options& options) {
  std::vector<std::size_t> out;
  for (std::size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    out.push_back(bytes);
    if (options.step_bytes) {
      bytes += *options.step_bytes;
    } else {
      const double next = std::floor(static_cast<double>(bytes) * options.step_factor);
      bytes = std::max(bytes + 1, static_cast<std::size_t>(next));
    }
  }
  return out;
}

}  // namespace hocket::perf
