// SPDX-License-Identifier: Apache-2.0
#include "content.h"

#include <gtest/gtest.h>

namespace hocket::perf {
namespace {

std::string text(const Content& content) {
  std::string out;
  for (const Part& part : content) {
    const char* origin = part.origin == Origin::poison ? "-" : part.origin == Origin::input ? "i" : "r";
    out += std::to_string(part.at) + "+" + std::to_string(part.count) + origin;
    if (part.origin != Origin::poison) out += std::to_string(part.first);
    out += " ";
  }
  return out;
}

TEST(Content, TopHidesBase) {
  const std::vector<Part> base = {{2, 6, Origin::input, 1, 10}};
  EXPECT_EQ(text(overlay(10, base, {})), "0+2- 2+6i10 8+2- ");
  EXPECT_EQ(text(overlay(10, base, {{4, 2, Origin::reduction, 0, 0}})), "0+2- 2+2i10 4+2r0 6+2i14 8+2- ");
  EXPECT_EQ(text(overlay(10, base, {{0, 10, Origin::reduction, 0, 5}})), "0+10r5 ");
  EXPECT_EQ(text(overlay(10, base, {{7, 3, Origin::reduction, 0, 5}})), "0+2- 2+5i10 7+3r5 ");
  EXPECT_EQ(text(overlay(10, base, {{7, 0, Origin::reduction, 0, 5}})), "0+2- 2+6i10 8+2- ");
  EXPECT_EQ(text(overlay(0, {}, {})), "");
}

TEST(Content, WhatIsFilledIsRight) {
  const Inputs inputs{hocketInt32, Op::none, 4, 1};
  const Content content = overlay(3000, {{100, 1500, Origin::input, 2, 7}}, {});
  std::vector<std::int32_t> data(3000);
  fill(content, inputs, 4, reinterpret_cast<char*>(data.data()));
  EXPECT_EQ(count_wrong(content, inputs, 4, reinterpret_cast<char*>(data.data())), 0u);
  for (std::size_t i : {0u, 99u, 100u, 1599u, 1600u, 2999u}) data[i] ^= 1;
  EXPECT_EQ(count_wrong(content, inputs, 4, reinterpret_cast<char*>(data.data())), 6u);
}

}  // namespace
}  // namespace hocket::perf
