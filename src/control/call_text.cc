// SPDX-License-Identifier: Apache-2.0
// A call as its caller wrote it, shortened to what ranks must agree on.
#include <string_view>

#include "base/datatype.h"
#include "control/control.h"
#include "plan/plan.h"

namespace hocket {
namespace {

std::string_view function_name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "AllReduce";
    case Collective::broadcast: return "Broadcast";
    case Collective::reduce: return "Reduce";
    case Collective::all_gather: return "AllGather";
    case Collective::reduce_scatter: return "ReduceScatter";
    case Collective::all_to_all: return "AlltoAll";
    case Collective::gather: return "Gather";
    case Collective::scatter: return "Scatter";
    case Collective::barrier: return "Barrier";
    case Collective::send: return "Send";
    case Collective::recv: return "Recv";
  }
  return "unknown call";
}

bool has_op(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce || collective == Collective::reduce_scatter;
}

std::string_view root_word(Collective collective) {
  switch (collective) {
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter: return "root";
    case Collective::send:
    case Collective::recv: return "peer";
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::barrier: return "";
  }
  return "";
}

}  // namespace

std::string call_text(const CallRecord& call) {
  if (call.collective >= kCollectiveCount) return fmt::format("unknown call {}", call.collective);
  const auto collective = static_cast<Collective>(call.collective);
  const std::string name(function_name(collective));
  if (collective == Collective::barrier) return name + "()";
  const bool vector_form = call.vector_form != 0;
  std::string text = name + (vector_form ? "V(" : "(");
  // Ranks of a v-form agree on an array of counts; the record has a hash of it, which only tells different ones apart.
  if (!vector_form) text += fmt::format("count {}, ", call.count);
  if (vector_form && call.count != 0) text += fmt::format("counts #{:08x}, ", static_cast<std::uint32_t>(call.count ^ (call.count >> 32)));
  text += datatype_name(static_cast<hocketDataType_t>(call.datatype));
  if (has_op(collective)) {
    text += call.op >= 0 && call.op < kBuiltinOpCount ? fmt::format(", {}", builtin_op_name(call.op))
                                                      : fmt::format(", user-defined op {}", call.op);
  }
  if (const std::string_view word = root_word(collective); !word.empty()) text += fmt::format(", {} {}", word, call.root);
  return text + ")";
}

}  // namespace hocket
