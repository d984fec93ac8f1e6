// SPDX-License-Identifier: Apache-2.0
#include "comm/plan_cache.h"

#include "base/log.h"
#include "plan/planner.h"

namespace hocket {
namespace {

// Serves programs that touch no connection.
class NoTransport final : public Transport {
 public:
  std::string_view name() const override { return "none"; }
  TransportCaps caps() const override { return {}; }
  SendRing* sender(const RingKey&) override { return nullptr; }
  RecvRing* receiver(const RingKey&) override { return nullptr; }
};

}  // namespace

Result<const Program*> PlanCache::find_slowly(const PlanKey& key) {
  const auto known = programs_.find(key.packed());
  if (known != programs_.end()) return known->second.get();

  PlanRequest request = common_;
  request.collective = key.collective;
  request.root = key.root;
  request.element_bytes = key.element_bytes;
  request.partial_bytes = key.partial_bytes;
  request.commutative = key.commutative;
  request.premultiplied = key.premultiplied;
  request.mapped_buffers = key.mapped;
  request.uneven = key.uneven;
  if (key.size_known) request.bytes = largest_of_class(key.size_class);
  auto plan = make_plan(request, rank_);
  if (!plan) return tl::make_unexpected(plan.error());
  log_debug("rank {}: {} of up to {} bytes: {} ({:.2f} us predicted)", rank_, to_string(key.collective),
            key.size_known ? largest_of_class(key.size_class) : 0, plan->algorithm, plan->predicted_us);
  NoTransport none;
  auto program = make_program(std::move(*plan), transport_ != nullptr ? *transport_ : none);
  if (!program) return tl::make_unexpected(program.error());
  return programs_.emplace(key.packed(), std::make_unique<Program>(std::move(*program))).first->second.get();
}

std::vector<const Program*> PlanCache::all() const {
  std::vector<const Program*> programs;
  for (const auto& [key, program] : programs_) programs.push_back(program.get());
  return programs;
}

}  // namespace hocket
