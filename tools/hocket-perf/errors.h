// SPDX-License-Identifier: Apache-2.0
// How the tool ends: exit codes, and the one way in which a failed Hocket call is reported.
#pragma once

#include <string_view>

#include "hocket/hocket.h"

namespace hocket::perf {

enum ExitCode : int {
  kExitOk = 0,
  kExitError = 1,  // a call failed, or a rank died; sanitizers end with 1 too
  kExitUsage = 2,  // the command line makes no sense
  kExitWrong = 3,  // every call succeeded, some results are wrong
};

// Prints the sentence and ends this process. Other ranks of this process get a moment to print theirs first; other
// processes are ended by the one that started them.
[[noreturn]] void end_with_error(std::string_view sentence);

// Ends as above when `result` is a failure, naming the function, the rank, the code and the library's own sentence.
// `rank` < 0: not known yet.
void must(hocketResult_t result, std::string_view function, int rank, hocketComm_t comm = nullptr);

}  // namespace hocket::perf
