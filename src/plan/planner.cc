// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "plan/algorithm.h"
#include "plan/cost.h"

namespace hocket {

namespace {

// An algorithm that serves the request, or the reason why it does not.
struct Option {
  const Algorithm* algorithm = nullptr;
  double us = 0;
  std::string why_not;
};

Status valid(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  if (n < 1 || rank < 0 || rank >= n || request.root < 0 || request.root >= n) {
    return fail(hocketInternalError, "plan: {} for rank {} of {} with root {}: ranks go from 0 to {}",
                to_string(request.collective), rank, n, request.root, n - 1);
  }
  return {};
}

// Costs that differ by less than this are equal: a sum of the same terms in another order.
std::int64_t picoseconds(double us) { return std::llround(us * 1e6); }

bool is_better(const Option& a, const Option& b) {
  if (a.why_not.empty() != b.why_not.empty()) return a.why_not.empty();
  return std::pair(picoseconds(a.us), a.algorithm->preference) < std::pair(picoseconds(b.us), b.algorithm->preference);
}

// All algorithms that know the collective, the best first; those that cannot serve come last.
std::vector<Option> weigh(const PlanRequest& request) {
  std::vector<Option> options;
  for (const Algorithm* algorithm : algorithms()) {
    std::string why_not = algorithm->unsupported(request);
    if (why_not == kOtherCollective) continue;
    const double us = why_not.empty() ? algorithm->predicted_us(request) : 0;
    options.push_back({algorithm, us, std::move(why_not)});
  }
  std::stable_sort(options.begin(), options.end(), is_better);
  return options;
}

// Moves the algorithm that was asked for to the front, if it serves. Otherwise the reason is among the options.
void prefer_forced(const PlanRequest& request, std::vector<Option>& options) {
  if (request.algorithm.empty()) return;
  const auto forced = std::find_if(options.begin(), options.end(),
                                   [&](const Option& option) { return option.algorithm->name == request.algorithm; });
  if (forced == options.end() || !forced->why_not.empty()) return;
  std::rotate(options.begin(), forced, forced + 1);
}

std::vector<Candidate> explain(const PlanRequest& request, const std::vector<Option>& options) {
  std::vector<Candidate> candidates;
  const std::string_view chosen = options.front().algorithm->name;
  bool forced_is_listed = request.algorithm.empty();
  for (const Option& option : options) {
    const bool is_chosen = &option == &options.front();
    std::string why_not = option.why_not;
    if (why_not.empty() && !is_chosen) why_not = chosen == request.algorithm ? "another was asked for" : "slower";
    candidates.push_back({std::string(option.algorithm->name), option.us, std::move(why_not)});
    forced_is_listed |= option.algorithm->name == request.algorithm;
  }
  if (!forced_is_listed) {
    const auto all = algorithms();
    const bool exists = std::any_of(all.begin(), all.end(), [&](const Algorithm* a) { return a->name == request.algorithm; });
    candidates.push_back({request.algorithm, 0, exists ? std::string(kOtherCollective) : "there is no such algorithm"});
  }
  return candidates;
}

// No block is larger than this, however the executor rounds the cuts between blocks (to whole elements and cache lines).
std::size_t largest_block_bytes(const PlanRequest& request, int n_blocks) {
  constexpr std::size_t kCacheLine = 64;
  const auto n = static_cast<std::size_t>(n_blocks);
  const std::size_t element = std::max<std::size_t>(request.element_bytes, 1);
  const std::size_t count = (*request.bytes + element - 1) / element;
  const std::size_t even = (count + n - 1) / n * element;
  return std::min(*request.bytes, (even + kCacheLine - 1) / kCacheLine * kCacheLine);
}

// The same on every rank, whatever its own steps are: both ends of a connection use it.
Protocol choose_protocol(const PlanRequest& request, const Algorithm& algorithm, const Plan& plan) {
  if (!plan.sliced) return Protocol::ll;  // only tokens travel
  if (!request.bytes || request.uneven) return Protocol::by_size;
  const std::size_t block = largest_block_bytes(request, plan.n_blocks);
  const double transfer = static_cast<double>(block) * (algorithm.partials_travel ? std::max(1.0, widening(request)) : 1.0);
  return transfer <= static_cast<double>(request.caps.ll_bytes) ? Protocol::ll : Protocol::simple;
}

// Splits the one channel that algorithms build into equal parts.
void replicate_channel(const PlanRequest& request, Plan& plan) {
  const int n = request.collective == Collective::barrier ? 1 : std::max(1, request.channels);
  plan.channels.resize(1);
  plan.channels.front().share = 1.0 / n;
  plan.channels.resize(static_cast<std::size_t>(n), plan.channels.front());
}

}  // namespace

Result<Plan> make_plan(const PlanRequest& request, int rank) {
  HOCKET_TRY(valid(request, rank));
  std::vector<Option> options = weigh(request);
  prefer_forced(request, options);
  if (options.empty() || !options.front().why_not.empty()) {
    std::string reasons;
    for (const Option& option : options) reasons += fmt::format("\n  {}: {}", option.algorithm->name, option.why_not);
    return fail(hocketInternalError, "plan: no algorithm serves {} between {} ranks{}", to_string(request.collective),
                request.n_ranks, reasons);
  }

  const Algorithm& chosen = *options.front().algorithm;
  Plan plan = chosen.build(request, rank);
  plan.collective = request.collective;
  plan.algorithm = chosen.name;
  plan.rank = rank;
  plan.n_ranks = request.n_ranks;
  plan.root = request.root;
  plan.protocol = choose_protocol(request, chosen, plan);
  plan.predicted_us = options.front().us;
  plan.candidates = explain(request, options);
  replicate_channel(request, plan);
  return plan;
}

}  // namespace hocket
