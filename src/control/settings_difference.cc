// SPDX-License-Identifier: Apache-2.0
#include "control/settings_difference.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace hocket::control {
namespace {

std::vector<std::string_view> sorted_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::string_view name_of(std::string_view line) { return line.substr(0, line.find('=')); }

// The line of the same name, or that there is none.
std::string line_or_absence(const std::vector<std::string_view>& lines, std::string_view name) {
  for (const std::string_view line : lines) {
    if (name_of(line) == name) return std::string(line);
  }
  return fmt::format("no {}", name);
}

}  // namespace

std::optional<std::string> settings_difference(int rank, const Hello& hello, int reference_rank, const Hello& reference) {
  const auto mine = sorted_lines(hello.settings);
  const auto theirs = sorted_lines(reference.settings);
  std::vector<std::string_view> only;
  std::set_symmetric_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(), std::back_inserter(only));
  if (!only.empty()) {
    const std::string_view name = name_of(only.front());
    return fmt::format("rank {} has {}, rank {} has {}; use the same setting on all ranks", rank, line_or_absence(mine, name),
                       reference_rank, line_or_absence(theirs, name));
  }
  if (hello.shared_bytes != reference.shared_bytes) {
    return fmt::format("rank {} has {} bytes of shared memory, rank {} has {}; use the same settings on all ranks", rank,
                       hello.shared_bytes, reference_rank, reference.shared_bytes);
  }
  return std::nullopt;
}

}  // namespace hocket::control
