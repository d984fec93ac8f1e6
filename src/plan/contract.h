// SPDX-License-Identifier: Apache-2.0
// Which buffers a collective gives to a rank, block by block: what it may read and must fill, and nothing else.
#pragma once

#include "plan/plan.h"

namespace hocket {

// Blocks are cut by rank: block k belongs to rank k. Otherwise evenly, into any number.
bool blocks_by_rank(Collective kind);

// `plan` stands for its rank's part in the call: collective, rank, root.
bool has_input_block(const Plan& plan, int block);
bool has_output_block(const Plan& plan, int block);

}  // namespace hocket
