// SPDX-License-Identifier: Apache-2.0
#include "launch.h"

int main(int argc, char** argv) {
  const auto parsed = hocket::perf::parse_options(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  return hocket::perf::launch(std::get<hocket::perf::Options>(parsed));
}
