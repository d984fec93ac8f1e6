// SPDX-License-Identifier: Apache-2.0
// Direct: peers' buffers are mapped, so data go from input to output with nothing in between. Rank k does all the work on
// block k: it reads the block where it lies and writes it where it is wanted.
//
//   inputs    0 [. . k .]   1 [. . k .]   2 [. . k .]   3 [. . k .]
//                    ╲             ╲         │             ╱            1. rank k: combine or copy block k
//   rank k            ╲─────────────▶  Σ  ◀───────────────╱                in rank order
//                    ╱             ╱         │             ╲
//   outputs   0 [. . k .]   1 [. . k .]   2 [. . k .]   3 [. . k .]     2. tokens: nobody leaves before all are done
//
//                   rank k reads                  rank k writes
//   all_reduce      block k of all inputs         block k of all outputs
//   reduce_scatter  block k of all inputs         own output
//   reduce          block k of all inputs         block k of the root's output
//   broadcast       block k of the root's input   block k of all outputs: all ranks share the copying
//   all_gather      own input                     block k of all outputs
//   gather          own input                     block k of the root's output
//   scatter         block k of the root's input   own output
//   all_to_all      block k of all inputs         own output, block by block
//
// Cost per rank: 1 hop for the tokens and one before the plan, in which ranks agree on addresses; the bytes of one block
// per buffer read or written. n = 4, all_reduce, rank 2, block 2:
//   {peer_input(0), peer_input(1), input, peer_input(3)} ─▶ {output, peer_output(3), peer_output(0), peer_output(1)}
//
// In place is safe because block k, in whatever buffer, is touched by rank k alone and, within one element, read before it
// is written. All buffers are valid when the plan starts: that is agreed before it.
#include "plan/algorithm.h"
#include "plan/cost.h"
#include "plan/rules.h"
#include "plan/steps.h"

namespace hocket {
namespace {

using namespace steps;

// What agreeing on the addresses of a call costs beside its hop: an estimate, which lets direct plans begin near 16 KiB.
constexpr double kAgreementUs = 1.0;

std::string unsupported(const PlanRequest& request) {
  std::string why = only_for({Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::broadcast,
                              Collective::all_gather, Collective::gather, Collective::scatter, Collective::all_to_all},
                             request);
  if (!why.empty()) return why;
  if (!request.mapped_buffers) return "the buffers are not mapped by the peers";
  if (!request.bytes) return "the layout of the peers' buffers is not known";
  if (reduces(request.collective) && request.premultiplied) return "peers cannot scale an input that they read in place";
  return {};
}

// Buffers that rank k reads and writes, in all; each access is to one block.
int operands(const PlanRequest& request) {
  const int n = request.n_ranks;
  switch (request.collective) {
    case Collective::all_reduce:
    case Collective::all_to_all: return 2 * n;
    case Collective::reduce_scatter:
    case Collective::reduce:
    case Collective::broadcast:
    case Collective::all_gather: return n + 1;
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier:
    case Collective::send:
    case Collective::recv: break;
  }
  return 2;
}

double predicted_us(const PlanRequest& request) {
  const double n = request.n_ranks;
  const double block = call_bytes(request) / n;
  const double ends = 2 * (multicast_ends(request) + n - 1);
  return kAgreementUs + time_us(request, even_work(request, 2, 0, {ends, operands(request) * block / 2}));
}

std::vector<Operand> all_inputs(int rank, int n_ranks) {
  std::vector<Operand> sources;
  for (int owner = 0; owner < n_ranks; ++owner) sources.push_back(input_of(owner, rank));
  return sources;
}

// The own one first, while the data are in this rank's cache; then in the order in which ranks do not crowd.
std::vector<Operand> all_outputs(int rank, int n_ranks) {
  std::vector<Operand> sinks{output()};
  for (int owner : peers_after(rank, n_ranks)) sinks.push_back(output_of(owner, rank));
  return sinks;
}

std::vector<Step> exchange(int rank, int n_ranks) {
  std::vector<Step> steps{step({input()}, {output()}, rank)};
  for (int peer : peers_after(rank, n_ranks)) steps.push_back(step({input_of(peer, rank)}, {output()}, peer));
  return steps;
}

std::vector<Step> data_steps(const PlanRequest& request, int rank) {
  const int n = request.n_ranks;
  const int root = request.root;
  switch (request.collective) {
    case Collective::all_reduce: return {finish(all_inputs(rank, n), all_outputs(rank, n), rank)};
    case Collective::reduce_scatter: return {finish(all_inputs(rank, n), {output()}, rank)};
    case Collective::reduce: return {finish(all_inputs(rank, n), {output_of(root, rank)}, rank)};
    case Collective::broadcast: return {step({input_of(root, rank)}, all_outputs(rank, n), rank)};
    case Collective::all_gather: return {step({input()}, all_outputs(rank, n), rank)};
    case Collective::gather: return {step({input()}, {output_of(root, rank)}, rank)};
    case Collective::scatter: return {step({input_of(root, rank)}, {output()}, rank)};
    case Collective::all_to_all: return exchange(rank, n);
    case Collective::barrier:
    case Collective::send:
    case Collective::recv: break;
  }
  return {};
}

Plan build(const PlanRequest& request, int rank) {
  Lane lane{"direct", data_steps(request, rank)};
  append_token_exchange(lane, rank, request.n_ranks);
  Plan plan = plan_of(request.n_ranks, {lane});
  plan.sliced = false;
  plan.needs_mapped_buffers = true;
  plan.canonical_order = reduces(request.collective);
  return plan;
}

}  // namespace

const Algorithm& algorithm_direct() {
  static constexpr Algorithm kDirect{"direct", unsupported, predicted_us, build, false, 0};
  return kDirect;
}

}  // namespace hocket
