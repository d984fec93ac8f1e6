// SPDX-License-Identifier: Apache-2.0
// What a plan costs: latency plus bytes over rate. One formula; algorithms only say what they do.
#pragma once

#include <cstddef>

#include "plan/plan_request.h"

namespace hocket {

// What a rank does in a call, or what all ranks do together.
struct Load {
  double ends = 0;   // ends of connections that are touched per round: each costs a look at another core's cache line
  double bytes = 0;  // moved: a step over b bytes moves b * (sources + sinks) / 2, so a copy moves b
};

struct Work {
  double hops = 1;       // hand-overs, one after the other, until the last rank has its result
  double hop_bytes = 0;  // of one transfer, before it is cut into slices
  double fills = 0;      // hops that the first slice makes while the busiest rank has nothing to do: the pipeline fills
  Load busiest;          // of the rank that does most
  Load all;              // of all ranks together
};

// Every rank does the same, and all the time.
Work even_work(const PlanRequest& request, double hops, double hop_bytes, Load each);
// Every rank does the same, but the data reach one after the other.
Work pipeline_work(const PlanRequest& request, double hops, double hop_bytes, Load each);

// hops * (hand-over + a step + waking up) + filling the pipeline + the larger of (busiest rank, all ranks on the cores there are).
double time_us(const PlanRequest& request, const Work& work);

// Of the whole call; a guess when it is unknown, which no plan may lean on.
double call_bytes(const PlanRequest& request);
// How much wider than an element a partial result travels.
double widening(const PlanRequest& request);
// Ends touched and slots written by one multicast: one, or one per peer where the transport has no multicast.
double multicast_ends(const PlanRequest& request);
int ceil_log2(int n);

}  // namespace hocket
