// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

namespace hocket {

std::string_view to_string(Collective kind) {
  switch (kind) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::broadcast: return "broadcast";
    case Collective::reduce: return "reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_to_all: return "all_to_all";
    case Collective::gather: return "gather";
    case Collective::scatter: return "scatter";
    case Collective::barrier: return "barrier";
    case Collective::send: return "send";
    case Collective::recv: return "recv";
  }
  return "?";
}

bool reduces(Collective kind) {
  return kind == Collective::all_reduce || kind == Collective::reduce || kind == Collective::reduce_scatter;
}

std::string_view to_string(Port port) {
  switch (port) {
    case Port::pair_a: return "pair_a";
    case Port::pair_b: return "pair_b";
    case Port::multicast: return "multicast";
    case Port::p2p: return "p2p";
  }
  return "?";
}

std::string_view to_string(Buffer where) {
  switch (where) {
    case Buffer::input: return "input";
    case Buffer::output: return "output";
    case Buffer::scratch: return "scratch";
    case Buffer::connection: return "connection";
    case Buffer::peer_input: return "peer_input";
    case Buffer::peer_output: return "peer_output";
  }
  return "?";
}

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::simple: return "simple";
    case Protocol::ll: return "ll";
    case Protocol::by_size: return "by_size";
  }
  return "?";
}

}  // namespace hocket
