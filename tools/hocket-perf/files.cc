// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "cpus.h"
#include "ideal_kernels.h"
#include "stats.h"
#include "table.h"

namespace hocket::perf {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string type_name(const Result& result) {
  return std::string(result.what.collective->sizing == Sizing::nothing ? "none" : result.what.type->name);
}

Json figures(const Figures& f) {
  return {{"time_us", f.time_us},
          {"p99_us", f.p99_us},
          {"min_us", f.min_us},
          {"algbw_gbyte_s", f.algbw_gbyte_s},
          {"busbw_gbyte_s", f.busbw_gbyte_s},
          {"wrong", or_null(f.wrong)}};
}

Json result_object(const Result& r) {
  return {{"collective", r.what.collective->name},
          {"bytes", r.bytes},
          {"count", r.count},
          {"type", type_name(r)},
          {"redop", op_name(r.what.op)},
          {"root", r.what.root},
          {"out_of_place", figures(r.out_of_place)},
          {"in_place", r.in_place ? figures(*r.in_place) : Json(nullptr)}};
}

Json limit_object(const Result& r, int n_ranks) {
  const LimitRatios ratios = limit_ratios(r, n_ranks);
  return {{"bytes", r.bytes},
          {"type", type_name(r)},
          {"redop", op_name(r.what.op)},
          {"hand_over_ns", r.limit->hand_over_ns},
          {"ideal_plain_gbyte_s", or_null(r.limit->plain_gbyte_s)},
          {"ideal_streaming_gbyte_s", or_null(r.limit->streaming_gbyte_s)},
          {"memcpy_gbyte_s", or_null(r.limit->memcpy_gbyte_s)},
          {"in_place_to_best", or_null(ratios.to_best)},
          {"in_place_to_streaming", or_null(ratios.to_streaming)},
          {"in_place_hand_overs", or_null(ratios.hand_overs)}};
}

Json limits_object(const std::vector<Result>& results, int n_ranks) {
  std::vector<double> hand_overs;
  Json per_size = Json::array();
  for (const Result& result : results) {
    if (!result.limit) continue;
    hand_overs.push_back(result.limit->hand_over_ns);
    per_size.push_back(limit_object(result, n_ranks));
  }
  if (hand_overs.empty()) return nullptr;
  return {{"hand_over_ns", median(hand_overs)}, {"vectors", vector_name()}, {"per_size", per_size}};
}

std::string csv_figures(const std::optional<Figures>& f) {
  if (!f) return ",,,,,";
  return fmt::format("{},{},{},{},{},{}", f->time_us, f->min_us, f->p99_us, f->algbw_gbyte_s, f->busbw_gbyte_s,
                     f->wrong ? std::to_string(*f->wrong) : "");
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

bool write_file(const std::string& name, const std::string& text) {
  if (name == "-") return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(name.c_str(), "w"));
  if (file != nullptr && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
      std::fflush(file.get()) == 0) {
    return true;
  }
  fmt::print(stderr, "hocket-perf: cannot write {}: {} ({})\n", name, std::strerror(errno), errno);
  return false;
}

std::string to_json(const Options& options, const std::vector<Result>& results, int n_ranks, int n_cpus) {
  Json document = {
      {"version", fmt::format("{}.{}.{}", HOCKET_MAJOR, HOCKET_MINOR, HOCKET_PATCH)},
      {"command", options.command},
      {"ranks", n_ranks},
      {"processes", options.from_launcher() ? n_ranks : options.n_processes()},
      {"threads", options.threads_per_process()},
      {"seed", options.seed},
      {"host", {{"name", host_name()}, {"cpus", n_cpus}, {"model", cpu_model()}}},
      {"limits", limits_object(results, n_ranks)},
      {"results", Json::array()},
  };
  for (const Result& result : results) document["results"].push_back(result_object(result));
  return document.dump(2) + "\n";
}

std::string to_csv(const std::vector<Result>& results) {
  std::string out = "collective,bytes,count,type,redop,root";
  for (const char* placement : {"out_of_place", "in_place"}) {
    for (const char* figure : {"time_us", "min_us", "p99_us", "algbw_gbyte_s", "busbw_gbyte_s", "wrong"}) {
      out += fmt::format(",{}_{}", placement, figure);
    }
  }
  out += '\n';
  for (const Result& r : results) {
    out += fmt::format("{},{},{},{},{},{},{},{}\n", r.what.collective->name, r.bytes, r.count, type_name(r),
                       op_name(r.what.op), r.what.root, csv_figures(r.out_of_place), csv_figures(r.in_place));
  }
  return out;
}

}  // namespace hocket::perf
