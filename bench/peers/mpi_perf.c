// SPDX-License-Identifier: Apache-2.0
//
// mpi_perf: times MPI collectives on one host with the method and the size
// rules of hocket-perf, and prints one JSON line per collective and size.
//
// Sizes follow nccl-tests:
//   all_reduce, broadcast, send_recv   bytes of the buffer
//   all_gather                         bytes of the whole receive buffer
//   reduce_scatter                     bytes of the whole send buffer
//   all_to_all                         bytes of one rank's whole buffer
//   barrier                            measured once, reported as 0 bytes
// A size is rounded down to whole floats, the same number for each rank; sizes
// that leave none are skipped.

#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kPageBytes = 4096, kMinBatches = 5, kMaxBatches = 20000, kMaxIterations = 20000, kRoot = 0 };

typedef struct {
  size_t min_bytes;
  size_t max_bytes;
  int factor;
  int warmup;
  double batch_seconds;  // the length of one timed loop
  double size_seconds;   // the length of all the loops for one size
  int pin;
  int check;
  const char *peer;
  const char *collectives;
} Options;

// What one call needs; `count` is floats per call or per block.
typedef struct {
  float *send;
  float *recv;
  int count;
  int rank;
  int ranks;
} Call;

typedef struct {
  const char *name;
  int in_place;
  int count_is_per_rank;  // the size is divided into one block for each rank
  void (*run)(const Call *call);
  int (*wrong)(const Call *call);  // number of wrong elements after one run
} Collective;

// ---- The values that the check expects ----

static float input_value(int rank, size_t i) { return (float)(rank + 1 + (int)(i % 7)); }

static float summed_value(int ranks, size_t i) {
  return (float)(ranks * (ranks + 1) / 2 + ranks * (int)(i % 7));
}

static void fill(float *data, size_t count, int rank) {
  for (size_t i = 0; i < count; ++i) data[i] = input_value(rank, i);
}

// ---- The collectives ----

static void all_reduce(const Call *c) {
  MPI_Allreduce(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_reduce_in_place(const Call *c) {
  MPI_Allreduce(MPI_IN_PLACE, c->recv, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(const Call *c) {
  MPI_Bcast(c->recv, c->count, MPI_FLOAT, kRoot, MPI_COMM_WORLD);
}

static void all_gather(const Call *c) {
  MPI_Allgather(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void reduce_scatter(const Call *c) {
  MPI_Reduce_scatter_block(c->send, c->recv, c->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_to_all(const Call *c) {
  MPI_Alltoall(c->send, c->count, MPI_FLOAT, c->recv, c->count, MPI_FLOAT, MPI_COMM_WORLD);
}

static void send_recv(const Call *c) {
  int next = (c->rank + 1) % c->ranks;
  int prev = (c->rank + c->ranks - 1) % c->ranks;
  MPI_Sendrecv(c->send, c->count, MPI_FLOAT, next, 0, c->recv, c->count, MPI_FLOAT, prev, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(const Call *c) {
  (void)c;
  MPI_Barrier(MPI_COMM_WORLD);
}

// ---- The checks ----

static int wrong_sum(const Call *c) {
  int wrong = 0;
  for (int i = 0; i < c->count; ++i) wrong += c->recv[i] != summed_value(c->ranks, (size_t)i);
  return wrong;
}

static int wrong_from(const Call *c, int source) {
  int wrong = 0;
  for (int i = 0; i < c->count; ++i) wrong += c->recv[i] != input_value(source, (size_t)i);
  return wrong;
}

static int wrong_broadcast(const Call *c) { return wrong_from(c, kRoot); }

static int wrong_send_recv(const Call *c) {
  return wrong_from(c, (c->rank + c->ranks - 1) % c->ranks);
}

static int wrong_all_gather(const Call *c) {
  int wrong = 0;
  for (int block = 0; block < c->ranks; ++block) {
    const float *got = c->recv + (size_t)block * (size_t)c->count;
    for (int i = 0; i < c->count; ++i) wrong += got[i] != input_value(block, (size_t)i);
  }
  return wrong;
}

static int wrong_reduce_scatter(const Call *c) {
  size_t offset = (size_t)c->rank * (size_t)c->count;
  int wrong = 0;
  for (int i = 0; i < c->count; ++i) {
    wrong += c->recv[i] != summed_value(c->ranks, offset + (size_t)i);
  }
  return wrong;
}

static int wrong_all_to_all(const Call *c) {
  size_t offset = (size_t)c->rank * (size_t)c->count;
  int wrong = 0;
  for (int block = 0; block < c->ranks; ++block) {
    const float *got = c->recv + (size_t)block * (size_t)c->count;
    for (int i = 0; i < c->count; ++i) wrong += got[i] != input_value(block, offset + (size_t)i);
  }
  return wrong;
}

static int wrong_barrier(const Call *c) {
  (void)c;
  return 0;
}

static const Collective kCollectives[] = {
    {"all_reduce", 0, 0, all_reduce, wrong_sum},
    {"all_reduce", 1, 0, all_reduce_in_place, wrong_sum},
    {"broadcast", 1, 0, broadcast, wrong_broadcast},
    {"all_gather", 0, 1, all_gather, wrong_all_gather},
    {"reduce_scatter", 0, 1, reduce_scatter, wrong_reduce_scatter},
    {"all_to_all", 0, 1, all_to_all, wrong_all_to_all},
    {"send_recv", 0, 0, send_recv, wrong_send_recv},
    {"barrier", 0, 0, barrier, wrong_barrier},
};

// ---- Timing ----

typedef struct {
  int iterations;  // calls in one batch
  int batches;
} Repetition;

static double time_calls(const Collective *coll, const Call *call, int iterations) {
  double start = MPI_Wtime();
  for (int i = 0; i < iterations; ++i) coll->run(call);
  return MPI_Wtime() - start;
}

static double clamp(double value, double least, double most) {
  return value < least ? least : value > most ? most : value;
}

// The seconds of one call, the same on every rank; measured over at least `enough` seconds.
static double estimate_call(const Collective *coll, const Call *call, double enough) {
  for (int iterations = 1;; iterations *= 4) {
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = time_calls(coll, call, iterations);
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (seconds >= enough || iterations >= kMaxIterations) return clamp(seconds / iterations, 1e-9, 1e9);
  }
}

static Repetition choose_repetition(const Options *opt, const Collective *coll, const Call *call) {
  double enough = clamp(opt->batch_seconds / 8, 50e-6, 1);
  double seconds = estimate_call(coll, call, enough);
  Repetition rep;
  rep.iterations = (int)clamp(opt->batch_seconds / seconds + 0.999, 1, kMaxIterations);
  rep.batches = (int)clamp(opt->size_seconds / (seconds * rep.iterations), kMinBatches, kMaxBatches);
  return rep;
}

// The time per call of each batch. The batches follow each other without a
// barrier: its own end would be part of what short batches measure.
static void time_batches(const Options *opt, const Collective *coll, const Call *call,
                         Repetition rep, double *times) {
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < opt->warmup; ++i) coll->run(call);
  for (int b = 0; b < rep.batches; ++b) {
    times[b] = time_calls(coll, call, rep.iterations) / rep.iterations;
  }
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a;
  double y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_result(const Options *opt, const Collective *coll, const Call *call,
                         size_t bytes, Repetition rep, double *times) {
  qsort(times, (size_t)rep.batches, sizeof(double), compare_doubles);
  printf("{\"peer\":\"%s\",\"collective\":\"%s\",\"bytes\":%zu,\"ranks\":%d,\"inplace\":%d,"
         "\"iterations\":%d,\"batches\":%d,\"median_us\":%.3f,\"min_us\":%.3f}\n",
         opt->peer, coll->name, bytes, call->ranks, coll->in_place, rep.iterations, rep.batches,
         times[rep.batches / 2] * 1e6, times[0] * 1e6);
  fflush(stdout);
}

static size_t buffer_floats(const Collective *coll, const Call *call) {
  return (size_t)call->count * (size_t)(coll->count_is_per_rank ? call->ranks : 1);
}

static void check(const Collective *coll, const Call *call, size_t bytes) {
  fill(call->send, buffer_floats(coll, call), call->rank);
  fill(call->recv, buffer_floats(coll, call), call->rank);
  coll->run(call);
  int wrong = coll->wrong(call);
  if (wrong == 0) return;
  fprintf(stderr, "mpi_perf: %s of %zu bytes: rank %d has %d wrong elements\n", coll->name, bytes,
          call->rank, wrong);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void measure(const Options *opt, const Collective *coll, const Call *call, size_t bytes) {
  static double times[kMaxBatches];
  static double slowest[kMaxBatches];
  if (opt->check) check(coll, call, bytes);
  for (int i = 0; i < opt->warmup; ++i) coll->run(call);
  Repetition rep = choose_repetition(opt, coll, call);
  time_batches(opt, coll, call, rep, times);
  MPI_Reduce(times, slowest, rep.batches, MPI_DOUBLE, MPI_MAX, kRoot, MPI_COMM_WORLD);
  if (call->rank == kRoot) print_result(opt, coll, call, bytes, rep, slowest);
}

static void measure_sizes(const Options *opt, const Collective *coll, Call call) {
  if (coll->run == barrier) {
    measure(opt, coll, &call, 0);
    return;
  }
  size_t blocks = (size_t)(coll->count_is_per_rank ? call.ranks : 1);
  for (size_t bytes = opt->min_bytes; bytes <= opt->max_bytes; bytes *= (size_t)opt->factor) {
    call.count = (int)(bytes / sizeof(float) / blocks);
    if (call.count > 0) measure(opt, coll, &call, buffer_floats(coll, &call) * sizeof(float));
  }
}

// ---- Set-up ----

static void usage(void) {
  fprintf(stderr,
          "usage: mpi_perf [-b BYTES] [-e BYTES] [-f FACTOR] [-w WARMUP] [--collectives A,B,..]\n"
          "                [--batch-us US] [--size-ms MS] [--pin] [--check] [--peer NAME]\n"
          "BYTES takes the suffixes K, M and G.\n");
  exit(2);
}

static size_t parse_bytes(const char *text) {
  char *end;
  size_t value = strtoull(text, &end, 10);
  switch (*end) {
    case 'k': case 'K': value <<= 10; ++end; break;
    case 'm': case 'M': value <<= 20; ++end; break;
    case 'g': case 'G': value <<= 30; ++end; break;
  }
  if (end == text || *end != '\0' || value == 0) usage();
  return value;
}

static int parse_int(const char *text, int least, int most) {
  char *end;
  long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most) usage();
  return (int)value;
}

static Options parse_options(int argc, char **argv) {
  Options opt = {8, 1 << 20, 2, 5, 20e-6, 0.2, 0, 0, "mpi", NULL};
  for (int i = 1; i < argc; ++i) {
    const char *flag = argv[i];
    if (strcmp(flag, "--pin") == 0) { opt.pin = 1; continue; }
    if (strcmp(flag, "--check") == 0) { opt.check = 1; continue; }
    if (++i == argc) usage();
    const char *value = argv[i];
    if (strcmp(flag, "-b") == 0) opt.min_bytes = parse_bytes(value);
    else if (strcmp(flag, "-e") == 0) opt.max_bytes = parse_bytes(value);
    else if (strcmp(flag, "-f") == 0) opt.factor = parse_int(value, 2, 1 << 20);
    else if (strcmp(flag, "-w") == 0) opt.warmup = parse_int(value, 0, 1 << 20);
    else if (strcmp(flag, "--batch-us") == 0) opt.batch_seconds = parse_int(value, 1, 60000000) * 1e-6;
    else if (strcmp(flag, "--size-ms") == 0) opt.size_seconds = parse_int(value, 1, 60000) * 1e-3;
    else if (strcmp(flag, "--peer") == 0) opt.peer = value;
    else if (strcmp(flag, "--collectives") == 0) opt.collectives = value;
    else usage();
  }
  return opt;
}

// Whether `name` is one of the words of the comma-separated `list`.
static int listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *word = list; word; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
    int same = strncmp(word, name, length) == 0;
    if (same && (word[length] == ',' || word[length] == '\0')) return 1;
  }
  return 0;
}

static void pin_to_core(int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)(rank % (int)sysconf(_SC_NPROCESSORS_ONLN)), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) perror("mpi_perf: sched_setaffinity");
}

static float *allocate(size_t bytes, int rank) {
  void *data = NULL;
  if (posix_memalign(&data, kPageBytes, bytes) != 0) {
    fprintf(stderr, "mpi_perf: no memory for %zu bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  fill(data, bytes / sizeof(float), rank);
  return data;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  Options opt = parse_options(argc, argv);
  Call call = {0};
  MPI_Comm_rank(MPI_COMM_WORLD, &call.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &call.ranks);
  if (opt.pin) pin_to_core(call.rank);

  call.send = allocate(opt.max_bytes, call.rank);
  call.recv = allocate(opt.max_bytes, call.rank);
  for (size_t i = 0; i < sizeof(kCollectives) / sizeof(kCollectives[0]); ++i) {
    const Collective *coll = &kCollectives[i];
    if (!opt.collectives || listed(opt.collectives, coll->name)) measure_sizes(&opt, coll, call);
  }
  free(call.send);
  free(call.recv);
  MPI_Finalize();
  return 0;
}
