// SPDX-License-Identifier: Apache-2.0
// Results as JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "result.h"

namespace hocket::perf {

// False, with a sentence on standard error, where the file cannot be written. "-" is standard output.
bool write_file(const std::string& name, const std::string& text);

std::string to_json(const Options& options, const std::vector<Result>& results, int n_ranks, int n_cpus);
std::string to_csv(const std::vector<Result>& results);

}  // namespace hocket::perf
