// SPDX-License-Identifier: Apache-2.0
// The verdict on a stalled call, as a pure function of what every rank says about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/message.h"

namespace hocket::control {

struct Question {
  int reporter = 0;
  std::uint64_t sequence = 0;  // 0: a point-to-point call
  std::vector<std::int32_t> awaited;  // empty: everyone else
  std::optional<Error> fallback;  // present: the reporter saw data that do not fit, so this is a failure in any case
};

enum class Presence { here, left, dead };

struct Witness {
  Presence presence = Presence::here;
  std::optional<Statement> statement;  // nothing from a rank that is here: it does not answer
};

struct Verdict {
  std::optional<Error> failure;  // for every rank
  std::string explanation;       // for the reporter, when there is no failure; may be empty
};

// `witnesses` by rank.
Verdict judge(const Question& question, const std::vector<RankInfo>& ranks, const std::vector<Witness>& witnesses);

// "rank 2" or "ranks 0-3,7". Sorted input.
std::string ranks_text(const std::vector<int>& ranks);

}  // namespace hocket::control
