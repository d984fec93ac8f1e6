// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <map>
#include <numeric>
#include <thread>

#include "base/log.h"

namespace hocket {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// From here on ranks ask each other where their buffers are before a call: below, the exchange would cost more than it saves.
constexpr std::size_t kAgreementBytes = std::size_t{256} << 10;

// Outputs beyond this are written past the caches: they will not be read again before they are evicted.
constexpr std::size_t kStreamingBytes = std::size_t{64} << 20;

int milliseconds_of(steady_clock::duration time) {
  return static_cast<int>(std::chrono::duration_cast<milliseconds>(time).count());
}

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) fmt::format_to(std::back_inserter(text), "{}{}", text.empty() ? "" : ", ", rank);
  return text;
}

// Maps the memory of a communicator once per process, however many of its ranks live here.
Result<std::shared_ptr<Mapping>> map_segment(int fd, std::size_t bytes) {
  static std::mutex mutex;
  static std::map<std::pair<dev_t, ino_t>, std::weak_ptr<Mapping>> segments;
  struct stat info{};
  if (::fstat(fd, &info) != 0) return fail_errno(errno, "cannot look at the descriptor");
  const std::lock_guard lock(mutex);
  std::erase_if(segments, [](const auto& entry) { return entry.second.expired(); });
  auto& known = segments[{info.st_dev, info.st_ino}];
  if (auto mapping = known.lock()) return mapping;
  auto made = Mapping::shared(fd, bytes);
  if (!made) return tl::make_unexpected(std::move(made).error());
  auto mapping = std::make_shared<Mapping>(std::move(*made));
  known = mapping;
  return mapping;
}

}  // namespace

Communicator::Communicator(int rank, int n_ranks, Settings settings)
    : rank_(rank), n_ranks_(n_ranks), settings_(std::move(settings)), layout_(n_ranks, settings_) {}

Communicator::~Communicator() {
  link_.reset();  // no event arrives any more
}

Status Communicator::connect(const hocketUniqueId& id) {
  if (n_ranks_ == 1) {
    HOCKET_TRY(end_meeting(id));
  } else {
    JoinOptions options;
    options.n_ranks = n_ranks_;
    options.rank = rank_;
    options.id = id;
    options.timeout_ms = settings_.init_timeout_ms;
    options.settings = settings_.shared_text();
    options.shared_bytes = layout_.total_bytes();
    options.cancel = &failed_;
    auto link = join(options);
    if (!link) return tl::make_unexpected(std::move(link).error());
    link_ = std::move(*link);
    const UniqueFd memory = link_->take_shared_memory();
    auto mapping = map_segment(memory.get(), layout_.total_bytes());
    if (!mapping) return tl::make_unexpected(std::move(mapping).error().with_context("shm: segment of the communicator"));
    attach(std::move(*mapping));
    publish_cpus();
    HOCKET_TRY(init_barrier());
  }
  read_cpus();
  return {};
}

Status Communicator::connect_all(const std::vector<std::shared_ptr<Communicator>>& communicators) {
  const int n_ranks = static_cast<int>(communicators.size());
  if (n_ranks > 1) {
    auto memory = Mapping::anonymous(communicators[0]->layout_.total_bytes());
    if (!memory) return tl::make_unexpected(std::move(memory).error().with_context("shm: memory of the communicator"));
    const auto shared = std::make_shared<Mapping>(std::move(*memory));
    auto links = join_locally(n_ranks);
    if (!links) return tl::make_unexpected(std::move(links).error());
    for (int rank = 0; rank < n_ranks; ++rank) {
      Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
      communicator.link_ = std::move((*links)[static_cast<std::size_t>(rank)]);
      communicator.attach(shared);
      communicator.publish_cpus();
    }
  }
  for (const auto& communicator : communicators) communicator->read_cpus();
  return {};
}

void Communicator::attach(std::shared_ptr<Mapping> memory) {
  register_for_membarrier();
  ranks_ = link_->ranks();
  transport_ = std::make_unique<ShmTransport>(rank_, n_ranks_, layout_, std::move(memory));
  // Until the CPUs of all ranks are known, waits assume that ranks outnumber them: always right, only slower.
  bells_ = Doorbells(layout_.sleepers(transport_->base()), layout_.bells(transport_->base()), rank_, n_ranks_, true);
  wait_policy_.crowded = true;
  mapped_buffers_ = std::make_unique<MappedBuffers>(rank_, n_ranks_, *link_);
  agreement_ports_.everyone = transport_->sender({kAllPeers, Port::multicast, 0});
  for (int rank = 0; rank < n_ranks_; ++rank)
    agreement_ports_.peers.push_back(rank == rank_ ? nullptr : transport_->receiver({rank, Port::multicast, 0}));
  // Publishes link_ and bells_ to threads that fail or abort the communicator. Pairs with: the acquire in attached().
  attached_.store(true, std::memory_order_release);
  link_->start(this);
}

void Communicator::publish_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) CPU_SET(0, &allowed);
  CpuSet& mine = layout_.cpu_sets(transport_->base())[rank_];
  for (int cpu = 0; cpu < kMaxCpus; ++cpu)
    // Read by the peers after the barrier of init (or by this thread), which orders it.
    if (CPU_ISSET(cpu, &allowed)) mine.bits[cpu / 64].fetch_or(std::uint64_t{1} << (cpu % 64), std::memory_order_relaxed);
}

// Ends the set-up: from now on every rank knows whether ranks outnumber CPUs.
void Communicator::read_cpus() {
  PlanRequest common;
  common.n_ranks = n_ranks_;
  common.deterministic = settings_.deterministic != 0;
  common.channels = settings_.channels;
  common.algorithm = settings_.algorithm;
  if (transport_ != nullptr) {
    n_cpus_ = 0;
    for (std::size_t word = 0; word < kMaxCpus / 64; ++word) {
      std::uint64_t bits = 0;
      for (int rank = 0; rank < n_ranks_; ++rank)
        bits |= layout_.cpu_sets(transport_->base())[rank].bits[word].load(std::memory_order_relaxed);
      n_cpus_ += std::popcount(bits);
    }
    const bool crowded = n_ranks_ > n_cpus_;
    wait_policy_.crowded = crowded;
    wait_policy_.spin = std::chrono::microseconds(crowded ? 0 : settings_.spin_us);
    wait_policy_.sleep_after = std::chrono::microseconds(settings_.sleep_after_us);
    bells_.set_crowded(crowded);
    common.caps = transport_->caps();
    common.caps.cores_per_rank = std::min(1.0, static_cast<double>(n_cpus_) / n_ranks_);
  }
  plans_ = std::make_unique<PlanCache>(common, rank_, transport_.get());
}

// The first transfer on the rings: proves the data path between all ranks before init returns.
Status Communicator::init_barrier() {
  PlanRequest common;
  common.n_ranks = n_ranks_;
  common.caps = transport_->caps();
  plans_ = std::make_unique<PlanCache>(common, rank_, transport_.get());
  Request barrier;
  barrier.collective = Collective::barrier;
  // It is call 0, the same as with connect_all(): the application counts its own calls from 1.
  sequence_ = std::uint64_t{0} - 1;
  return run(barrier);
}

// ---- Calls ----

Status Communicator::run(Request& request) {
  auto execution = begin(request);
  if (!execution) return tl::make_unexpected(std::move(execution).error());
  if (*execution == nullptr) return {};
  Status status = walk(**execution);
  if (!status) [[unlikely]]
    status = tl::make_unexpected(end_with(status.error()));
  finish(*execution);
  return status;
}

template <class Ready>
Status Communicator::await(Ready&& ready) {
  constexpr int kEagerLooks = 256;
  for (int i = 0; i < kEagerLooks; ++i)
    if (ready()) return {};
  Waiter waiter(wait_policy_, bells_, *this);
  while (!ready()) HOCKET_TRY(waiter.pause([&] { return ready() || failed_.load(std::memory_order_acquire); }));
  return {};
}

// Hints for the control thread's answers and for messages; they order nothing.
void Communicator::note_call(const Request& request) {
  current_ = &request;
  in_call_.store(true, std::memory_order_relaxed);
  in_message_.store(request.point_to_point(), std::memory_order_relaxed);
}

Status Communicator::run_hot(HotCall& call, const Request& request) {
  hot_ = &call;
  note_call(request);
  if (request.point_to_point()) {
    hot_fingerprint_ = message_fingerprint(request);
  } else {
    call.record.sequence = ++sequence_;
    history_.add(call.record);
    hot_fingerprint_ = fingerprint(call.record);
  }
  Status status = call.program.run(request.send, request.recv, hot_fingerprint_, bells_,
                                   [this](auto&& ready) { return await(ready); });
  if (!status) [[unlikely]]
    status = tl::make_unexpected(end_with(status.error()));
  hot_ = nullptr;
  current_ = nullptr;
  in_call_.store(false, std::memory_order_relaxed);
  return status;
}

bool Communicator::try_hot_message(HotCall& call, const Request& request) {
  return call.program.try_run(request.send, request.recv, message_fingerprint(request), bells_);
}

// Remembers a call that just went the general way, if the fast one can take it next time.
void Communicator::make_hot(const Request& request, const Program& program, const CallData& data) {
  if (request.vector_form || n_ranks_ == 1 || (request.reduction() && request.op >= hocketNumOps)) return;
  auto small = SmallProgram::make(program, data);
  const auto use = buffer_use(request, rank_, n_ranks_);
  if (!small || !use) return;
  const std::size_t bytes = data.element_bytes;
  HotCall call;
  call.shape_key = request.shape_key();
  call.count = request.count;
  call.record = request.record(0, n_ranks_);
  call.alignment_mask = bytes - 1;
  call.send_bytes = use->send_elements * bytes;
  call.recv_bytes = use->recv_elements * bytes;
  call.has_in_place = use->has_in_place;
  call.in_place_send_offset = use->in_place_send_offset * bytes;
  call.in_place_recv_offset = use->in_place_recv_offset * bytes;
  call.program = std::move(*small);
  hot_calls_.put(std::move(call));
}

Status Communicator::walk(Execution& execution) {
  Waiter waiter(wait_policy_, bells_, *this);
  while (!execution.done()) {
    if (execution.advance())
      waiter.progressed();
    else
      HOCKET_TRY(waiter.pause([&] { return execution.could_advance() || failed_.load(std::memory_order_acquire); }));
  }
  return {};
}

Result<Execution*> Communicator::begin(Request& request) {
  if (failed_.load(std::memory_order_acquire)) [[unlikely]] {
    const Status status = state();
    return tl::make_unexpected(status.error());
  }
  const Program* program = nullptr;
  PlanKey key;
  auto data = prepare(request, program, key);
  if (!data) return tl::make_unexpected(std::move(data).error());

  if (!request.point_to_point()) {
    const CallRecord record = request.record(++sequence_, n_ranks_);
    history_.add(record);
    data->fingerprint = fingerprint(record);
  } else {
    data->fingerprint = message_fingerprint(request);
  }
  if (program == nullptr) return nullptr;
  make_hot(request, *program, *data);

  note_call(request);
  if (n_in_flight_ == executions_.size()) executions_.push_back(std::make_unique<Execution>());
  Execution* execution = executions_[n_in_flight_++].get();
  if (wants_agreement(request, key))
    HOCKET_TRY(start_after_agreement(*execution, request, *data, *program, key));
  else
    execution->start(*program, *data, bells_);
  return execution;
}

// Whether peers' buffers could serve the call. Depends on what all ranks know alike, never on where buffers are.
bool Communicator::wants_agreement(const Request& request, const PlanKey& key) const {
  switch (request.collective) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      break;
    default:
      return false;  // little to save: a rooted call writes each byte once through slots as well
  }
  return n_ranks_ > 1 && key.size_known && !key.uneven && !key.premultiplied && settings_.algorithm.empty() &&
         largest_of_class(key.size_class) >= kAgreementBytes;
}

// The call runs on peers' buffers if all ranks can reach them, and through slots if not.
Status Communicator::start_after_agreement(Execution& execution, const Request& request, const CallData& data,
                                           const Program& program, PlanKey key) {
  key.mapped = true;
  const auto mapped_program = plans_->find(key);
  if (!mapped_program) return tl::make_unexpected(mapped_program.error());
  if (!(*mapped_program)->plan.needs_mapped_buffers) {
    execution.start(program, data, bells_);
    return {};
  }
  const auto use = buffer_use(request, rank_, n_ranks_);
  if (!use) return tl::make_unexpected(use.error());
  const BufferOffer mine = mapped_buffers_->make_offer(request.send, request.recv, use->send_elements * data.element_bytes,
                                                       use->recv_elements * data.element_bytes);
  agreement_.start(*mapped_buffers_, agreement_ports_, mine, data.fingerprint, bells_);
  execution.start_later(agreement_, [this, &execution, data = CallData(data), through_slots = &program, direct = *mapped_program]() mutable {
    const Program* chosen = through_slots;
    if (agreement_.mapped()) {
      mapped_buffers_->resolve(agreement_.offers(), data.input, data.output);
      data.peer_inputs = mapped_buffers_->inputs();
      data.peer_outputs = mapped_buffers_->outputs();
      chosen = direct;
    }
    execution.start(*chosen, data, bells_);
  });
  return {};
}

void Communicator::finish(Execution* execution) {
  const CallData& data = execution->data();
  if (data.bytes >= StoreChoice::kSmallest && !failed_.load(std::memory_order_relaxed))
    store_choice_.report(data.bytes, data.slot_store, steady_clock::now() - data.begun);
  const auto last = executions_.begin() + static_cast<std::ptrdiff_t>(n_in_flight_) - 1;
  const auto found = std::find_if(executions_.begin(), last, [&](const auto& e) { return e.get() == execution; });
  std::iter_swap(found, last);
  if (--n_in_flight_ == 0) {
    current_ = nullptr;
    in_call_.store(false, std::memory_order_relaxed);
  }
}

// Both ends of a message compare its size and type; order within a pair is the ring's.
std::uint32_t Communicator::message_fingerprint(const Request& request) {
  return static_cast<std::uint32_t>((request.count * 0x9e3779b97f4a7c15u) >> 32) + request.datatype;
}

std::uint32_t Communicator::fingerprint(const CallRecord& record) {
  const std::uint64_t kind = record.collective | static_cast<std::uint64_t>(record.datatype) << 8 |
                             static_cast<std::uint64_t>(record.vector_form) << 16 |
                             static_cast<std::uint64_t>(static_cast<std::uint32_t>(record.root)) << 24;
  std::uint64_t hash = (record.sequence + 1) * 0xd6e8feb86659fd93u;
  hash = (hash ^ record.count) * 0x9e3779b97f4a7c15u;
  hash = (hash ^ hash >> 32 ^ kind) * 0xd6e8feb86659fd93u;
  hash = (hash ^ hash >> 32 ^ static_cast<std::uint32_t>(record.op)) * 0x9e3779b97f4a7c15u;
  return static_cast<std::uint32_t>(hash >> 40);
}

PlanKey Communicator::plan_key(const Request& request) const {
  PlanKey key;
  key.collective = request.collective;
  key.element_bytes = static_cast<std::uint8_t>(element_bytes(request.datatype));
  key.partial_bytes = key.element_bytes;
  key.root = request.rooted() || request.point_to_point() ? request.root : 0;
  key.uneven = request.vector_form;
  const std::size_t n = static_cast<std::size_t>(n_ranks_);
  std::size_t elements = request.count;
  switch (request.collective) {
    case Collective::all_gather:
      if (request.vector_form)
        elements = std::accumulate(request.recv_counts, request.recv_counts + n, std::size_t{0});
      else
        elements *= n;
      break;
    case Collective::reduce_scatter:
      if (request.vector_form)
        elements = std::accumulate(request.send_counts, request.send_counts + n, std::size_t{0});
      else
        elements *= n;
      break;
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter:
      key.size_known = !request.vector_form;
      elements *= n;
      break;
    default:
      break;
  }
  if (key.size_known) key.size_class = size_class(elements * key.element_bytes);
  return key;
}

Status Communicator::apply_op(const Request& request, CallData& data, PlanKey& key) const {
  key.partial_bytes = static_cast<std::uint8_t>(accumulator_bytes(request.datatype));
  data.partial_bytes = key.partial_bytes;
  if (request.op < hocketNumOps) {
    data.move = move_function(request.datatype, request.op == hocketAvg ? hocketSum : request.op);
    data.divisor = request.op == hocketAvg ? n_ranks_ : 1;
    return {};
  }
  const CustomOp* custom = custom_ops_.find(request.op);
  if (custom == nullptr)
    return fail(hocketInvalidArgument, "{}: operation {} is not a live operation of this communicator", request.function(),
                static_cast<int>(request.op));
  if (custom->user_fn != nullptr) {
    data.move = user_move_function(request.datatype);
    data.user_fn = custom->user_fn;
    data.user_data = custom->user_data;
    data.partial_bytes = key.partial_bytes = key.element_bytes;
    key.commutative = false;
    return {};
  }
  if (custom->datatype != request.datatype)
    return fail(hocketInvalidArgument, "{}: the operation was made for {} but the call has {}", request.function(),
                datatype_name(custom->datatype), datatype_name(request.datatype));
  data.move = move_function(request.datatype, hocketSum);
  data.scale = custom->scale();
  key.premultiplied = true;
  return {};
}

// Program and data of the call; no program when it moves nothing.
Result<CallData> Communicator::prepare(const Request& request, const Program*& program, PlanKey& key) {
  CallData data;
  key = plan_key(request);
  if (request.reduction()) HOCKET_TRY(apply_op(request, data, key));
  const bool moves = !key.size_known || key.size_class != 0 || request.collective == Collective::barrier;
  if (!moves) return data;
  const auto found = plans_->find(key);
  if (!found) return tl::make_unexpected(found.error());
  program = *found;

  data.input = request.send;
  data.output = request.recv;
  data.element_bytes = key.element_bytes;
  if (!request.reduction()) data.partial_bytes = key.element_bytes;
  BlockMap even;
  even.count = request.count;
  even.n_blocks = static_cast<std::size_t>(program->plan.n_blocks);
  even.granule = kCacheLine / data.element_bytes;
  BlockMap own = even, all = even;
  own.form = BlockMap::Form::own_only;
  all.form = BlockMap::Form::uniform;
  BlockMap sent = all, received = all;
  if (request.vector_form) {
    sent.form = received.form = BlockMap::Form::listed;
    sent.counts = request.send_counts;
    sent.displs = request.send_displs;
    received.counts = request.recv_counts;
    received.displs = request.recv_displs;
  }
  data.input_blocks = data.output_blocks = even;
  const bool is_root = request.root == rank_;
  std::size_t output_bytes = request.count * data.element_bytes;
  switch (request.collective) {
    case Collective::all_gather:
      data.input_blocks = own;
      data.output_blocks = received;
      output_bytes *= static_cast<std::size_t>(n_ranks_);
      break;
    case Collective::gather:
      data.input_blocks = own;
      data.output_blocks = is_root ? received : own;
      break;
    case Collective::reduce_scatter:
      data.input_blocks = sent;
      data.output_blocks = own;
      break;
    case Collective::scatter:
      data.input_blocks = is_root ? sent : own;
      data.output_blocks = own;
      break;
    case Collective::all_to_all:
      data.input_blocks = sent;
      data.output_blocks = received;
      output_bytes *= static_cast<std::size_t>(n_ranks_);
      break;
    default:
      break;
  }
  data.fingerprint_by_block = request.vector_form;
  data.bytes = output_bytes;
  if (output_bytes >= StoreChoice::kSmallest) {
    data.slot_store = store_choice_.choose(output_bytes);
    data.begun = steady_clock::now();
  }
  data.output_store = output_bytes >= kStreamingBytes ? Store::streaming : Store::cached;
  return data;
}

void Communicator::await_ticket(std::uint64_t ticket) {
  for (std::uint64_t done = completed_.load(std::memory_order_acquire); done != ticket;
       done = completed_.load(std::memory_order_acquire))
    completed_.wait(done, std::memory_order_acquire);
}

void Communicator::pass_ticket() {
  completed_.fetch_add(1, std::memory_order_release);
  completed_.notify_all();
}

bool Communicator::drain(milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (pending() != 0) {
    if (steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// ---- Failure and waiting ----

Status Communicator::state() const {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(state_mutex_);
  return tl::make_unexpected(first_error_);
}

void Communicator::failed(const Error& error) {
  {
    const std::lock_guard lock(state_mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    first_error_ = error;
    // Publishes first_error_ to readers that see the flag. Pairs with: the acquire loads of failed_.
    failed_.store(true, std::memory_order_release);
  }
  log_info("{}: {}", name(), error.text);
  if (attached()) bells_.wake_self();
}

void Communicator::abort() {
  failed({hocketInvalidUsage, fmt::format("{} was aborted by hocketCommAbort", name())});
  if (attached())
    link_->broadcast_failure({hocketRemoteError, fmt::format("rank {} aborted the communicator", rank_)});
}

Error Communicator::end_with(const Error& error) {
  // A peer's or the control plane's verdict is known to everyone already; what this rank found by itself is not.
  const bool local = !failed_.load(std::memory_order_acquire);
  const std::string call = call_in_progress();
  const Error told{error.code, error.text.starts_with(call) ? error.text : fmt::format("{}: {}", call, error.text)};
  failed(told);
  // What was found elsewhere knows nothing of this rank's call: later calls tell it too.
  if (const std::lock_guard lock(state_mutex_); first_error_.text == error.text) first_error_ = told;
  if (local && link_ != nullptr)
    link_->broadcast_failure({hocketRemoteError, fmt::format("rank {} failed first: {}", rank_, told.text)});
  return told;
}

Status Communicator::check(steady_clock::duration waited) {
  if (failed_.load(std::memory_order_acquire)) return state();
  return explain_wait(waited);
}

int Communicator::mismatched_peer() const {
  if (hot_ != nullptr) return hot_->program.mismatched_peer(hot_fingerprint_);
  for (std::size_t i = 0; i < n_in_flight_; ++i)
    if (const int peer = executions_[i]->mismatched_peer(); peer >= 0) return peer;
  return -1;
}

// Who keeps this wait: asks the control plane at the stall threshold and then once a second; ends the wait at the limit.
Status Communicator::explain_wait(steady_clock::duration waited) {
  if (link_ == nullptr) return {};
  if (const int peer = mismatch_reported_ ? -1 : mismatched_peer(); peer >= 0) {
    mismatch_reported_ = true;
    link_->report_mismatch(current_ != nullptr && current_->point_to_point() ? 0 : sequence_,
                           Error{hocketErrorMismatch,
                                 fmt::format("{}: rank {} sent data of another call or size; every rank makes the same calls "
                                             "with the same arguments in the same order",
                                             call_in_progress(), peer)});
  }
  if (waited < milliseconds(settings_.stall_ms)) return {};
  const auto now = steady_clock::now();
  std::vector<int> awaited;
  for (std::size_t i = 0; i < n_in_flight_; ++i) executions_[i]->add_awaited(awaited);
  if (hot_ != nullptr) hot_->program.add_awaited(hot_fingerprint_, awaited);
  if (settings_.timeout_ms > 0 && waited >= milliseconds(settings_.timeout_ms)) {
    const std::lock_guard lock(state_mutex_);
    return fail(hocketErrorTimeout, "rank {} waited {:.1f} s for rank {}{}{}; the limit is {} ms (timeoutMs, "
                "HOCKET_TIMEOUT_MS)",
                rank_, std::chrono::duration<double>(waited).count(), list_of(awaited), stall_text_.empty() ? "" : ": ",
                stall_text_, settings_.timeout_ms);
  }
  if (now - last_report_ < milliseconds(std::max(settings_.stall_ms, 500))) return {};
  last_report_ = now;
  link_->report_stall(current_ != nullptr && current_->point_to_point() ? 0 : sequence_, awaited, milliseconds_of(waited));
  return {};
}

std::string Communicator::name() const {
  return settings_.name.empty() ? fmt::format("communicator of {} ranks, rank {}", n_ranks_, rank_)
                                : fmt::format("communicator {}, rank {}", settings_.name, rank_);
}

std::string Communicator::call_in_progress() const {
  if (current_ == nullptr) return name();
  if (current_->point_to_point())
    return fmt::format("{}(count {}, {}, peer {})", current_->function(), current_->count,
                       datatype_name(current_->datatype), current_->root);
  return fmt::format("call {} {}", sequence_, call_text(current_->record(sequence_, n_ranks_)));
}

CallReport Communicator::report(std::uint64_t sequence) {
  CallReport report;
  report.current_sequence = history_.current();
  report.in_call = in_call_.load(std::memory_order_relaxed);
  report.point_to_point = in_message_.load(std::memory_order_relaxed);
  report.record = history_.find(sequence);
  return report;
}

void Communicator::stall_explained(std::uint64_t sequence, const std::string& text) {
  log_warn("{}: waiting in call {}: {}", name(), sequence, text);
  const std::lock_guard lock(state_mutex_);
  stall_text_ = text;
}

}  // namespace hocket
