// SPDX-License-Identifier: Apache-2.0
#include "plan/contract.h"

namespace hocket {

bool blocks_by_rank(Collective kind) {
  switch (kind) {
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return true;
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::barrier:
    case Collective::send:
    case Collective::recv: break;
  }
  return false;
}

bool has_input_block(const Plan& plan, int block) {
  switch (plan.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::send: return true;
    case Collective::broadcast:
    case Collective::scatter: return plan.rank == plan.root;
    case Collective::all_gather:
    case Collective::gather: return block == plan.rank;
    case Collective::barrier:
    case Collective::recv: break;
  }
  return false;
}

bool has_output_block(const Plan& plan, int block) {
  switch (plan.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::recv: return true;
    case Collective::reduce:
    case Collective::gather: return plan.rank == plan.root;
    case Collective::reduce_scatter:
    case Collective::scatter: return block == plan.rank;
    case Collective::barrier:
    case Collective::send: break;
  }
  return false;
}

}  // namespace hocket
