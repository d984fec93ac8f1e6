// SPDX-License-Identifier: Apache-2.0
#include "plan/check.h"

#include <algorithm>

#include "plan/check_run.h"
#include "plan/check_shape.h"

namespace hocket {

namespace {

Status check_options(const CheckOptions& options) {
  constexpr int kMaxSlots = 1 << 10;
  constexpr int kMaxRounds = 1 << 16;
  const bool sizes_fit = std::all_of(options.slices_per_block.begin(), options.slices_per_block.end(),
                                     [](int slices) { return slices >= 0 && slices <= kMaxRounds; });
  if (options.slots < 1 || options.slots > kMaxSlots || options.rounds < 0 || options.rounds > kMaxRounds || !sizes_fit) {
    return fail(hocketInvalidArgument, "{} slots, {} rounds: out of range", options.slots, options.rounds);
  }
  return {};
}

Status run_all(std::span<const Plan> plans, std::size_t channel, const CheckOptions& options) {
  SymbolicRun run(plans, channel, options);
  for (Schedule schedule : kSchedules) {
    if (Status status = run.run(schedule); !status) {
      return tl::make_unexpected(std::move(status).error().with_context(
          fmt::format("channel {}, {} slots, lanes {}", channel, options.slots, to_string(schedule))));
    }
  }
  return {};
}

// Channels share nothing: each is a part of the data with connections of its own.
Status check_channels(std::span<const Plan> plans, const CheckOptions& options) {
  HOCKET_TRY(check_options(options));
  HOCKET_TRY(check_shape(plans));
  for (std::size_t channel = 0; channel < plans.front().channels.size(); ++channel) {
    HOCKET_TRY(run_all(plans, channel, options));
  }
  return {};
}

// A rank that takes no part: nothing to do, nothing promised.
Plan idle(const Plan& like, int rank) {
  Plan plan = like;
  plan.collective = Collective::send;
  plan.rank = rank;
  for (Channel& channel : plan.channels) channel.lanes.clear();
  return plan;
}

}  // namespace

Status check(std::span<const Plan> plans, const CheckOptions& options) {
  Status status = check_channels(plans, options);
  if (status) return status;
  const std::string what = plans.empty() ? "no plan" : fmt::format("{} by {}", to_string(plans[0].collective), plans[0].algorithm);
  return tl::make_unexpected(std::move(status).error().with_context(fmt::format("plan check: {}", what)));
}

Status check_send_recv(const Plan& send, const Plan& recv, const CheckOptions& options) {
  const bool match = send.collective == Collective::send && recv.collective == Collective::recv &&
                     send.root == recv.rank && recv.root == send.rank && send.n_ranks == recv.n_ranks &&
                     send.rank != recv.rank && send.rank >= 0 && send.rank < send.n_ranks && recv.rank >= 0 &&
                     recv.rank < recv.n_ranks;
  if (!match) return fail(hocketInvalidArgument, "plan check: these are not a send and the receive that matches it");
  std::vector<Plan> plans;
  for (int rank = 0; rank < send.n_ranks; ++rank) {
    plans.push_back(rank == send.rank ? send : rank == recv.rank ? recv : idle(send, rank));
  }
  return check(plans, options);
}

}  // namespace hocket
