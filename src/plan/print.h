// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "plan/plan.h"

namespace hocket {

// One line per step, for people. `~` marks an unfinished combination in a slot.
std::string to_text(const Plan& plan);
// The whole plan; `plan_from_json(to_json(p))` equals p.
nlohmann::json to_json(const Plan& plan);
// For plans from outside: the error names the field. Says nothing of whether the plan is right; check.h does.
Result<Plan> plan_from_json(const nlohmann::json& value);

}  // namespace hocket
