// SPDX-License-Identifier: Apache-2.0
#include "plan/print.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace hocket {

namespace {

using nlohmann::json;

// ---- Text ----

std::string text_of(const Operand& operand) {
  std::string text;
  switch (operand.where) {
    case Buffer::connection:
      text = fmt::format("{}({})", to_string(operand.port),
                         operand.peer == kAllPeers ? std::string("all") : std::to_string(operand.peer));
      break;
    case Buffer::peer_input:
    case Buffer::peer_output: text = fmt::format("{}({})", to_string(operand.where), operand.peer); break;
    case Buffer::input:
    case Buffer::output: return std::string(to_string(operand.where));
    case Buffer::scratch: return "scratch";  // always partial
  }
  return operand.partial ? text + "~" : text;
}

std::string text_of(const std::vector<Operand>& operands, std::string_view separator) {
  std::vector<std::string> texts;
  for (const Operand& operand : operands) texts.push_back(text_of(operand));
  return fmt::format("{}", fmt::join(texts, separator));
}

std::string text_of(const Step& step) {
  const std::string what = step.block == kToken ? "token" : fmt::format("block {}", step.block);
  const std::string from = text_of(step.sources, " + ");
  const std::string to = text_of(step.sinks, ", ");
  return fmt::format("{}: {}{}->{}{}{}", what, from, from.empty() ? "" : " ", to.empty() ? "" : " ", to,
                     step.finish ? "  (finish)" : "");
}

std::string header(const Plan& plan) {
  std::string text = fmt::format("{} by {}, rank {} of {}", to_string(plan.collective), plan.algorithm, plan.rank, plan.n_ranks);
  switch (plan.collective) {
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: text += fmt::format(", root {}", plan.root); break;
    case Collective::send:
    case Collective::recv: text += fmt::format(", peer {}", plan.root); break;
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::barrier: break;
  }
  text += fmt::format(": {} block{}, {}", plan.n_blocks, plan.n_blocks == 1 ? "" : "s", to_string(plan.protocol));
  if (plan.canonical_order) text += ", canonical order";
  if (plan.needs_mapped_buffers) text += ", mapped buffers";
  if (plan.needs_scratch) text += ", scratch";
  return text + fmt::format(", {:.2f} us\n", plan.predicted_us);
}

std::string text_of(const Candidate& candidate, bool is_chosen) {
  const std::string cost = candidate.predicted_us > 0 ? fmt::format("{:.2f} us", candidate.predicted_us) : "";
  return fmt::format("    {:<20}{:>14}  {}\n", candidate.algorithm, cost, is_chosen ? "chosen" : candidate.why_not);
}

// ---- JSON ----

template <class T>
json list_of(const std::vector<T>& items, json (*json_of)(const T&)) {
  json result = json::array();
  for (const T& item : items) result.push_back(json_of(item));
  return result;
}

// A field that has its default is left out.
json operand_json(const Operand& operand) {
  const Operand plain;
  json result{{"where", to_string(operand.where)}};
  if (operand.port != plain.port || operand.where == Buffer::connection) result["port"] = to_string(operand.port);
  if (operand.peer != plain.peer || operand.where == Buffer::connection) result["peer"] = operand.peer;
  if (operand.partial) result["partial"] = true;
  return result;
}

json step_json(const Step& step) {
  json result{{"block", step.block},
              {"sources", list_of(step.sources, operand_json)},
              {"sinks", list_of(step.sinks, operand_json)}};
  if (step.finish) result["finish"] = true;
  return result;
}

json lane_json(const Lane& lane) { return {{"name", lane.name}, {"steps", list_of(lane.steps, step_json)}}; }

json channel_json(const Channel& channel) {
  return {{"share", channel.share}, {"lanes", list_of(channel.lanes, lane_json)}};
}

json candidate_json(const Candidate& candidate) {
  return {{"algorithm", candidate.algorithm}, {"predicted_us", candidate.predicted_us}, {"why_not", candidate.why_not}};
}

// Reading. The JSON library reports by exception, and so does this file; nothing leaves plan_from_json.

struct ReadError {
  std::string text;
};

void read(const json& value, int& out) {
  if (!value.is_number_integer()) throw ReadError{"is not a whole number"};
  using Limits = std::numeric_limits<int>;
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t{Limits::max()};
  const auto number = value.get<std::int64_t>();
  if (huge || number > Limits::max() || number < Limits::min()) throw ReadError{"is out of range"};
  out = value.get<int>();
}
void read(const json& value, bool& out) { out = value.get<bool>(); }
void read(const json& value, double& out) { out = value.get<double>(); }
void read(const json& value, std::string& out) { out = value.get<std::string>(); }

template <class Enum>
void read_name(const json& value, Enum& out, int count) {
  const std::string name = value.get<std::string>();
  for (int i = 0; i < count; ++i) {
    out = static_cast<Enum>(i);
    if (to_string(out) == name) return;
  }
  throw ReadError{"has no meaning \"" + name + "\""};
}
void read(const json& value, Collective& out) { read_name(value, out, kCollectiveCount); }
void read(const json& value, Port& out) { read_name(value, out, kPortCount); }
void read(const json& value, Buffer& out) { read_name(value, out, kBufferCount); }
void read(const json& value, Protocol& out) { read_name(value, out, kProtocolCount); }

void read(const json& value, Operand& out);
void read(const json& value, Step& out);
void read(const json& value, Lane& out);
void read(const json& value, Channel& out);
void read(const json& value, Candidate& out);

template <class T>
void read(const json& values, std::vector<T>& out) {
  if (!values.is_array()) throw ReadError{"is not a list"};
  for (const json& value : values) read(value, out.emplace_back());
}

// The error names the way to the field: "channels: lanes: steps: block: ...".
template <class T>
void read_field(const json& object, const char* name, T& out) {
  try {
    read(object.at(name), out);
  } catch (const ReadError& error) {
    throw ReadError{fmt::format("{}: {}", name, error.text)};
  } catch (const json::exception& error) {
    throw ReadError{fmt::format("{}: {}", name, error.what())};
  }
}
template <class T>
void read_optional_field(const json& object, const char* name, T& out) {
  if (object.contains(name)) read_field(object, name, out);
}

void read(const json& value, Operand& out) {
  read_field(value, "where", out.where);
  read_optional_field(value, "port", out.port);
  read_optional_field(value, "peer", out.peer);
  read_optional_field(value, "partial", out.partial);
}

void read(const json& value, Step& out) {
  read_field(value, "sources", out.sources);
  read_field(value, "sinks", out.sinks);
  read_field(value, "block", out.block);
  read_optional_field(value, "finish", out.finish);
}

void read(const json& value, Lane& out) {
  read_field(value, "name", out.name);
  read_field(value, "steps", out.steps);
}

void read(const json& value, Channel& out) {
  read_field(value, "share", out.share);
  read_field(value, "lanes", out.lanes);
}

void read(const json& value, Candidate& out) {
  read_field(value, "algorithm", out.algorithm);
  read_field(value, "predicted_us", out.predicted_us);
  read_field(value, "why_not", out.why_not);
}

void read(const json& value, Plan& out) {
  read_field(value, "collective", out.collective);
  read_field(value, "algorithm", out.algorithm);
  read_field(value, "rank", out.rank);
  read_field(value, "n_ranks", out.n_ranks);
  read_field(value, "root", out.root);
  read_field(value, "n_blocks", out.n_blocks);
  read_field(value, "protocol", out.protocol);
  read_field(value, "sliced", out.sliced);
  read_field(value, "needs_mapped_buffers", out.needs_mapped_buffers);
  read_field(value, "needs_scratch", out.needs_scratch);
  read_field(value, "canonical_order", out.canonical_order);
  read_field(value, "channels", out.channels);
  read_field(value, "predicted_us", out.predicted_us);
  read_field(value, "candidates", out.candidates);
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string text = header(plan);
  for (std::size_t c = 0; c < plan.channels.size(); ++c) {
    text += fmt::format("  channel {}, share {:.3g}\n", c, plan.channels[c].share);
    for (const Lane& lane : plan.channels[c].lanes) {
      text += fmt::format("    lane {}\n", lane.name);
      for (const Step& step : lane.steps) text += fmt::format("      {}\n", text_of(step));
    }
  }
  if (!plan.candidates.empty()) text += "  candidates\n";
  for (const Candidate& candidate : plan.candidates) text += text_of(candidate, &candidate == &plan.candidates.front());
  return text;
}

json to_json(const Plan& plan) {
  return {{"collective", to_string(plan.collective)},
          {"algorithm", plan.algorithm},
          {"rank", plan.rank},
          {"n_ranks", plan.n_ranks},
          {"root", plan.root},
          {"n_blocks", plan.n_blocks},
          {"protocol", to_string(plan.protocol)},
          {"sliced", plan.sliced},
          {"needs_mapped_buffers", plan.needs_mapped_buffers},
          {"needs_scratch", plan.needs_scratch},
          {"canonical_order", plan.canonical_order},
          {"channels", list_of(plan.channels, channel_json)},
          {"predicted_us", plan.predicted_us},
          {"candidates", list_of(plan.candidates, candidate_json)}};
}

Result<Plan> plan_from_json(const json& value) {
  try {
    Plan plan;
    read(value, plan);
    return plan;
  } catch (const ReadError& error) {
    return fail(hocketInvalidArgument, "plan from JSON: {}", error.text);
  }
}

}  // namespace hocket
