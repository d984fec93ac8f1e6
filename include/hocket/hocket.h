/* SPDX-License-Identifier: Apache-2.0 */
/* Hocket: collective communication between ranks. The whole C API; C99-clean.
 *
 * Names, argument order, enum values and rules equal NCCL's wherever NCCL has the thing; what differs is said at the
 * function. Host memory works everywhere.
 *
 * Rules that hold for every function unless it says otherwise:
 *  - Returns hocketSuccess or a code; hocketGetLastError() then has a sentence: what was being done with which objects,
 *    the exact cause, what to do. No function throws, and none aborts the process.
 *  - A *collective* call is made by every rank of the communicator, in the same order on every rank. A rank that calls
 *    something else (kind, count, type, op or root) turns into hocketErrorMismatch on every rank, within about a second.
 *  - Arguments that are wrong by themselves give hocketInvalidArgument before anything is sent; the communicator stays
 *    usable. After any other error of a communication call the communicator is in the aborted state: every later call on
 *    it returns the first error; hocketCommAbort / hocketCommDestroy are local and bounded in time.
 *  - Counts are in elements of the datatype, per rank. A count of 0 is legal everywhere and then pointers may be NULL.
 *  - Buffers belong to the caller, who leaves them alone until the call has completed. Only the documented receive
 *    buffers are written. Send and receive buffers may not overlap, except in place as each function defines it.
 *    Pointers are aligned to the size of one element.
 *  - `stream`: NULL makes a call on host memory blocking: it returns when the result is there. With a host stream
 *    (hocketStreamCreate) the call returns at once and runs after earlier work of that stream.
 *  - One communicator is used by one thread at a time. A second thread that enters while a call is in progress gets
 *    hocketInvalidUsage (abort and the query functions excepted). Different communicators are independent.
 */
#ifndef HOCKET_H_
#define HOCKET_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "hocket/datatypes.h"

#define HOCKET_MAJOR 0
#define HOCKET_MINOR 1
#define HOCKET_PATCH 0
/* major * 10000 + minor * 100 + patch, NCCL's form. */
#define HOCKET_VERSION_CODE (HOCKET_MAJOR * 10000 + HOCKET_MINOR * 100 + HOCKET_PATCH)

#if defined(HOCKET_BUILD) || defined(__GNUC__)
#define HOCKET_API __attribute__((visibility("default")))
#else
#define HOCKET_API
#endif

#ifdef __cplusplus
#define HOCKET_NOEXCEPT noexcept
extern "C" {
#else
#define HOCKET_NOEXCEPT
#endif

/* Opaque handles. NULL is never valid. A destroyed handle is recognised and refused. */
typedef struct hocketComm* hocketComm_t;
#define HOCKET_COMM_NULL NULL
typedef struct hocketStream* hocketStream_t;

/* Tells ranks where to meet and holds the job's secret. Plain bytes: send them to the other ranks by any means, but as a
 * secret. */
#define HOCKET_UNIQUE_ID_BYTES 128
typedef struct {
  char internal[HOCKET_UNIQUE_ID_BYTES];
} hocketUniqueId;

typedef enum {
  hocketSuccess = 0,
  hocketUnhandledCudaError = 1,
  hocketSystemError = 2,     /* a call to the operating system failed, or a limit of this machine was met */
  hocketInternalError = 3,   /* a defect of Hocket */
  hocketInvalidArgument = 4, /* refused before anything was sent; the communicator stays usable */
  hocketInvalidUsage = 5,    /* the call is right but not now: aborted, destroyed, already in use, not in this version */
  hocketRemoteError = 6,     /* a peer died, aborted or failed; the text names it */
  hocketInProgress = 7,
  hocketNumResults = 8,      /* NCCL's count, kept so that code written for it compiles; Hocket's own codes follow */
  hocketErrorMismatch = 9,   /* ranks called different things at the same place; the text names both */
  hocketErrorTimeout = 10    /* a time limit passed; the text names the ranks that were awaited */
} hocketResult_t;

typedef enum {
#define HOCKET_ENUM_DATATYPE(name, value, bytes, type, acc) hocket##name = value,
  HOCKET_FOR_EACH_DATATYPE(HOCKET_ENUM_DATATYPE)
#undef HOCKET_ENUM_DATATYPE
  hocketChar = 0,
  hocketInt = 2,
  hocketHalf = 6,
  hocketFloat = 7,
  hocketDouble = 8,
  hocketNumTypes = 15
} hocketDataType_t;

/* Reduction operations. Values from hocketNumOps on are made by hocketRedOpCreate*.
 * max and min: a NaN in any input gives NaN. avg: the sum divided by the number of ranks, rounded once; integers are
 * summed with wrap-around in their own type (signed: two's complement) and divided toward zero. */
typedef enum {
#define HOCKET_ENUM_REDOP(name, value) hocket##name = value,
  HOCKET_FOR_EACH_REDOP(HOCKET_ENUM_REDOP)
#undef HOCKET_ENUM_REDOP
  hocketNumOps = 10,
  hocketMaxRedOp = 0x7fffffff
} hocketRedOp_t;

/* Where the scalar of hocketRedOpCreatePreMulSum lives. */
typedef enum {
  hocketScalarDevice = 0,       /* read when the call runs; host memory here, which must stay valid until then */
  hocketScalarHostImmediate = 1 /* copied at creation */
} hocketScalarResidence_t;

/* ---- Configuration of a communicator. Initialise with HOCKET_CONFIG_INITIALIZER, then set what you want. ---- */

#define HOCKET_CONFIG_UNDEF_INT INT_MIN
#define HOCKET_CONFIG_UNDEF_PTR NULL

typedef struct {
  size_t size; /* sizeof of this struct as the caller knows it; fields are only ever appended */
  unsigned int magic;
  unsigned int version;
  int blocking;         /* 1 (default). 0 is not in this version. */
  int cgaClusterSize;   /* accepted and ignored on host memory, like the CTA fields below */
  int minCTAs;
  int maxCTAs;
  const char* netName;
  int splitShare;
  int trafficClass;
  const char* commName; /* shown in messages and in hocketCommDescribe */
  /* Hocket's own. */
  int initTimeoutMs;    /* how long init waits for missing ranks; default HOCKET_INIT_TIMEOUT_MS (60000); 0: for ever */
  int timeoutMs;        /* how long a call waits for its peers; default HOCKET_TIMEOUT_MS (0: for ever, but with a log line
                           that names who is late) */
  int deterministic;    /* 1: the same elements give the same bits whatever the size, algorithm, channels and slots */
  const char* algorithm; /* forces an algorithm by name where it can serve the call; default: the planner's choice */
  int channels;         /* number of channels; default: the planner's choice */
  int slotBytes;        /* size of one slot of a connection; default: the planner's choice */
} hocketConfig_t;

#define HOCKET_CONFIG_MAGIC 0x686f636bu
#define HOCKET_CONFIG_INITIALIZER                                                                                    \
  {                                                                                                                  \
    sizeof(hocketConfig_t), HOCKET_CONFIG_MAGIC, HOCKET_VERSION_CODE, HOCKET_CONFIG_UNDEF_INT,                       \
        HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_PTR,          \
        HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_PTR, HOCKET_CONFIG_UNDEF_INT,          \
        HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_INT, HOCKET_CONFIG_UNDEF_PTR, HOCKET_CONFIG_UNDEF_INT,          \
        HOCKET_CONFIG_UNDEF_INT                                                                                      \
  }

/* ---- Library ---- */

/* Stores HOCKET_VERSION_CODE of the library in use. Any thread, any time. */
HOCKET_API hocketResult_t hocketGetVersion(int* version) HOCKET_NOEXCEPT;

/* A static name of the code, e.g. "remote error". Never NULL. */
HOCKET_API const char* hocketGetErrorString(hocketResult_t result) HOCKET_NOEXCEPT;

/* The sentence of the last error: with a communicator, the first error that put it in the aborted state, or else the last
 * error any call on it returned in this thread; with NULL, the last error in this thread. Valid until the next Hocket call
 * of this thread. Never NULL. */
HOCKET_API const char* hocketGetLastError(hocketComm_t comm) HOCKET_NOEXCEPT;

/* ---- Making and ending communicators ---- */

/* Makes an id and a meeting place in this process; give the id to every rank. The process must live until all ranks have
 * passed init. */
HOCKET_API hocketResult_t hocketGetUniqueId(hocketUniqueId* uniqueId) HOCKET_NOEXCEPT;

/* Joins the communicator of `nranks` ranks as `rank`. Collective, blocking, bounded by the init time limit: the error then
 * lists the missing ranks. *comm is stored before the wait, so that another thread may hocketCommAbort it. Several ranks
 * may be threads of one process. Leaves affinity, signal mask, limits and locale of the caller as they were. */
HOCKET_API hocketResult_t hocketCommInitRank(hocketComm_t* comm, int nranks, hocketUniqueId commId,
                                             int rank) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketCommInitRankConfig(hocketComm_t* comm, int nranks, hocketUniqueId commId, int rank,
                                                   hocketConfig_t* config) HOCKET_NOEXCEPT;

/* Makes all `ndev` ranks in this process at once: comms[r] is rank r. `devlist` may be NULL; it matters for GPUs only.
 * One thread per rank may then call, or one thread for all inside a group. */
HOCKET_API hocketResult_t hocketCommInitAll(hocketComm_t* comms, int ndev, const int* devlist) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketCommInitAllConfig(hocketComm_t* comms, int ndev, const int* devlist,
                                                  hocketConfig_t* config) HOCKET_NOEXCEPT;

/* Joins the job that a launcher started: torchrun, mpirun of Open MPI or MPICH, srun, or HOCKET_RANK and HOCKET_NRANKS.
 * `config` may be NULL. The error text says which variables were looked for. */
HOCKET_API hocketResult_t hocketCommInitFromEnv(hocketComm_t* comm, hocketConfig_t* config) HOCKET_NOEXCEPT;

/* Completes all work of the communicator; after it only destroy, abort and queries are legal. Local. */
HOCKET_API hocketResult_t hocketCommFinalize(hocketComm_t comm) HOCKET_NOEXCEPT;

/* Frees the communicator. Work pending on streams is completed first if the peers take part, and fails with "destroyed
 * with n pending" after a bounded time otherwise. Local. */
HOCKET_API hocketResult_t hocketCommDestroy(hocketComm_t comm) HOCKET_NOEXCEPT;

/* Ends all waits of this rank with an error, tells the peers, frees the communicator. Any thread, any time, local, returns
 * within a second. */
HOCKET_API hocketResult_t hocketCommAbort(hocketComm_t comm) HOCKET_NOEXCEPT;

/* Not in this version: both return hocketInvalidUsage and say so. */
HOCKET_API hocketResult_t hocketCommSplit(hocketComm_t comm, int color, int key, hocketComm_t* newcomm,
                                          hocketConfig_t* config) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketCommShrink(hocketComm_t comm, int* excludeRanksList, int excludeRanksCount,
                                           hocketComm_t* newcomm, hocketConfig_t* config,
                                           int shrinkFlags) HOCKET_NOEXCEPT;

/* Stores the first error of the communicator, hocketSuccess while there is none. Any thread. */
HOCKET_API hocketResult_t hocketCommGetAsyncError(hocketComm_t comm, hocketResult_t* asyncError) HOCKET_NOEXCEPT;

HOCKET_API hocketResult_t hocketCommCount(hocketComm_t comm, int* count) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketCommUserRank(hocketComm_t comm, int* rank) HOCKET_NOEXCEPT;
/* Stores -1: the rank is bound to no device. */
HOCKET_API hocketResult_t hocketCommCuDevice(hocketComm_t comm, int* device) HOCKET_NOEXCEPT;

/* Writes JSON that describes the communicator: ranks, transports chosen and why, plans in use, settings, counters.
 * `*length` is the size of `text` in bytes and becomes the size needed, terminator included; `text` may be NULL to ask. */
HOCKET_API hocketResult_t hocketCommDescribe(hocketComm_t comm, char* text, size_t* length) HOCKET_NOEXCEPT;

/* ---- Memory ---- */

/* Page-aligned zeroed memory that peers on the same host can map: calls on it move bytes without an intermediate copy.
 * Any thread. Freed by hocketMemFree, after all calls that use it have completed on this rank. */
HOCKET_API hocketResult_t hocketMemAlloc(void** ptr, size_t size) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketMemFree(void* ptr) HOCKET_NOEXCEPT;

/* Accepted for portability. Host memory needs no registration in this version: *handle becomes a token for deregister and
 * nothing else happens. */
HOCKET_API hocketResult_t hocketCommRegister(hocketComm_t comm, void* buff, size_t size, void** handle) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketCommDeregister(hocketComm_t comm, void* handle) HOCKET_NOEXCEPT;

/* ---- Reduction operations ---- */

/* Sum of scalar * input, each rank with its own scalar of type `datatype`; inputs are multiplied and rounded to the
 * datatype, then summed. Created by every rank, in the same order. Destroy after the last call that uses it returned. */
HOCKET_API hocketResult_t hocketRedOpCreatePreMulSum(hocketRedOp_t* op, void* scalar, hocketDataType_t datatype,
                                                     hocketScalarResidence_t residence, hocketComm_t comm) HOCKET_NOEXCEPT;

/* inout[i] = inout[i] (op) in[i] for i < count, host memory, elements of `datatype`. Applied in rank order:
 * ((r0 op r1) op r2) ...; need not commute. Called from the thread that makes progress; must not call Hocket. */
typedef void (*hocketUserReduceFn)(void* inout, const void* in, size_t count, hocketDataType_t datatype, void* userData);

/* Created by every rank, in the same order, with a function that does the same. CPU only. */
HOCKET_API hocketResult_t hocketRedOpCreateUser(hocketRedOp_t* op, hocketUserReduceFn fn, void* userData,
                                                hocketComm_t comm) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketRedOpDestroy(hocketRedOp_t op, hocketComm_t comm) HOCKET_NOEXCEPT;

/* ---- Collectives. n: number of ranks, r: this rank. ---- */

/* recvbuff[i] = op over ranks of sendbuff[i], i < count, on every rank. In place: sendbuff == recvbuff. */
HOCKET_API hocketResult_t hocketAllReduce(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                          hocketRedOp_t op, hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* count elements from root's sendbuff to everyone's recvbuff. In place on root: sendbuff == recvbuff. sendbuff is used on
 * root only. */
HOCKET_API hocketResult_t hocketBroadcast(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                          int root, hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;
/* The in-place form under its old name. */
HOCKET_API hocketResult_t hocketBcast(void* buff, size_t count, hocketDataType_t datatype, int root, hocketComm_t comm,
                                      hocketStream_t stream) HOCKET_NOEXCEPT;

/* As all-reduce, result on root only; recvbuff is neither read nor written elsewhere and may be NULL there. */
HOCKET_API hocketResult_t hocketReduce(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                       hocketRedOp_t op, int root, hocketComm_t comm,
                                       hocketStream_t stream) HOCKET_NOEXCEPT;

/* recvbuff (n * sendcount) holds rank k's sendbuff at k * sendcount. In place: sendbuff == recvbuff + r * sendcount. */
HOCKET_API hocketResult_t hocketAllGather(const void* sendbuff, void* recvbuff, size_t sendcount,
                                          hocketDataType_t datatype, hocketComm_t comm,
                                          hocketStream_t stream) HOCKET_NOEXCEPT;

/* recvbuff (recvcount) = op over ranks of sendbuff (n * recvcount) at r * recvcount. In place: recvbuff == sendbuff +
 * r * recvcount; only that part changes. */
HOCKET_API hocketResult_t hocketReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount,
                                              hocketDataType_t datatype, hocketRedOp_t op, hocketComm_t comm,
                                              hocketStream_t stream) HOCKET_NOEXCEPT;

/* Rank k receives, at r * count of its recvbuff, the elements at k * count of this rank's sendbuff; both n * count.
 * Not in place. */
HOCKET_API hocketResult_t hocketAlltoAll(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                         hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* Root's recvbuff (n * count) holds rank k's sendbuff at k * count. In place on root: sendbuff == recvbuff + root *
 * count. recvbuff may be NULL elsewhere. */
HOCKET_API hocketResult_t hocketGather(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                       int root, hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* recvbuff (count) = the elements at r * count of root's sendbuff (n * count). In place on root: recvbuff == sendbuff +
 * root * count. sendbuff may be NULL elsewhere. */
HOCKET_API hocketResult_t hocketScatter(const void* sendbuff, void* recvbuff, size_t count, hocketDataType_t datatype,
                                        int root, hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* Returns when every rank has called it. */
HOCKET_API hocketResult_t hocketBarrier(hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* The v-forms: a count and a displacement (in elements, from the buffer's start) per rank. Arrays have n entries and are
 * read before the call returns. Regions may not overlap. */

/* recvcounts and displs are the same on every rank; sendcount == recvcounts[r]. In place: sendbuff == recvbuff +
 * displs[r]. */
HOCKET_API hocketResult_t hocketAllGatherV(const void* sendbuff, size_t sendcount, void* recvbuff,
                                           const size_t recvcounts[], const size_t displs[], hocketDataType_t datatype,
                                           hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* sendbuff is the concatenation of n blocks of recvcounts[k] elements; block r, reduced, lands in recvbuff. recvcounts is
 * the same on every rank. In place: recvbuff == the start of block r in sendbuff. */
HOCKET_API hocketResult_t hocketReduceScatterV(const void* sendbuff, void* recvbuff, const size_t recvcounts[],
                                               hocketDataType_t datatype, hocketRedOp_t op, hocketComm_t comm,
                                               hocketStream_t stream) HOCKET_NOEXCEPT;

/* sendcounts[k] on this rank equals recvcounts[r] on rank k; each rank knows its own arrays only. Not in place. */
HOCKET_API hocketResult_t hocketAlltoAllV(const void* sendbuff, const size_t sendcounts[], const size_t sdispls[],
                                          void* recvbuff, const size_t recvcounts[], const size_t rdispls[],
                                          hocketDataType_t datatype, hocketComm_t comm,
                                          hocketStream_t stream) HOCKET_NOEXCEPT;

/* recvbuff, recvcounts and displs are used on root only and may be NULL elsewhere; sendcount == root's recvcounts[r].
 * In place on root: sendbuff == recvbuff + displs[root]. */
HOCKET_API hocketResult_t hocketGatherV(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t recvcounts[],
                                        const size_t displs[], hocketDataType_t datatype, int root, hocketComm_t comm,
                                        hocketStream_t stream) HOCKET_NOEXCEPT;

/* sendbuff, sendcounts and displs are used on root only and may be NULL elsewhere; recvcount == root's sendcounts[r].
 * In place on root: recvbuff == sendbuff + displs[root]. */
HOCKET_API hocketResult_t hocketScatterV(const void* sendbuff, const size_t sendcounts[], const size_t displs[],
                                         void* recvbuff, size_t recvcount, hocketDataType_t datatype, int root,
                                         hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* Point to point. A send matches the peer's receive of the same count and type; per pair and direction they match in
 * order. Sending to oneself needs both in one group. Large sends block until the peer receives. */
HOCKET_API hocketResult_t hocketSend(const void* sendbuff, size_t count, hocketDataType_t datatype, int peer,
                                     hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketRecv(void* recvbuff, size_t count, hocketDataType_t datatype, int peer,
                                     hocketComm_t comm, hocketStream_t stream) HOCKET_NOEXCEPT;

/* ---- Groups ---- */

/* Calls between start and end, on any communicators of this thread, are collected and then progress together, so that no
 * order of sends and receives deadlocks. Groups nest; the outermost end runs them and returns the first error. The
 * collectives of one communicator run in the order in which they were called. */
HOCKET_API hocketResult_t hocketGroupStart(void) HOCKET_NOEXCEPT;
HOCKET_API hocketResult_t hocketGroupEnd(void) HOCKET_NOEXCEPT;

/* ---- Host streams ---- */

/* A queue whose calls run in order on a thread of its own. */
HOCKET_API hocketResult_t hocketStreamCreate(hocketStream_t* stream) HOCKET_NOEXCEPT;
/* Waits for all work of the stream; returns its first error since the last synchronise. */
HOCKET_API hocketResult_t hocketStreamSynchronize(hocketStream_t stream) HOCKET_NOEXCEPT;
/* hocketSuccess when all work is done, hocketInProgress while not. */
HOCKET_API hocketResult_t hocketStreamQuery(hocketStream_t stream) HOCKET_NOEXCEPT;
/* Waits for its work, then frees it. */
HOCKET_API hocketResult_t hocketStreamDestroy(hocketStream_t stream) HOCKET_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HOCKET_H_ */
