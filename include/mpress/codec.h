/* The codecs of mpress for C and C++: elements <-> bytes. This header needs no MPI.
 *
 * A payload decodes from its bytes, the spec that mpress_encoded tells, the type and the number of
 * its elements alone: who stores or sends it keeps those beside it. Payloads are the same on every
 * machine, from the host and from GPUs, and their formats stay readable (docs/codecs.md). Each has
 * a checksum: damage is found.
 *
 * Functions return MPRESS_CODEC_OK or why not; what went wrong with an argument
 * mpress_codec_error_text() says. All are safe to call from several threads.
 */
#ifndef MPRESS_CODEC_H
#define MPRESS_CODEC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum mpress_element {
  MPRESS_F32 = 1, /* float */
  MPRESS_F64 = 2  /* double */
} mpress_element;

typedef enum mpress_codec_status {
  MPRESS_CODEC_OK = 0,
  MPRESS_CODEC_ARGUMENT, /* an argument is wrong; nothing was done */
  MPRESS_CODEC_ROOM,     /* the memory for the payload is too small */
  MPRESS_CODEC_CORRUPT, /* a payload is damaged, cut short, or another's; outputs are unspecified */
  MPRESS_CODEC_MISMATCHED, /* sums: the payloads have different steps, or element counts */
  MPRESS_CODEC_INEXACT,    /* sums: the sum cannot be kept in quanta; decode, and add elements */
  MPRESS_CODEC_DEVICE,     /* the device refuses, there is none, or mpress has no CUDA */
  MPRESS_CODEC_PENDING     /* a device has not reported yet */
} mpress_codec_status;

/* What a decoder does with the elements that are there. */
typedef enum mpress_combine {
  MPRESS_REPLACE = 0,
  MPRESS_SUM = 1,
  MPRESS_MIN = 2, /* NaN where either is */
  MPRESS_MAX = 3, /* the same */
  MPRESS_PROD = 4
} mpress_combine;

/* Of an encoded array. */
typedef struct mpress_encoded {
  size_t bytes;  /* of the payload */
  double bound;  /* each finite element decodes to within this, absolute; 0: to its own bits; NaN:
                    none is known (zfp) */
  char spec[64]; /* what decodes it */
} mpress_encoded;

/* What is wrong with a spec ("mpc", "zfp:16", "szp:rel=1e-4", ..., as docs/api.md has them) for
 * elements of `type`; null where nothing is. */
const char* mpress_codec_problem(const char* spec, mpress_element type);

/* The most bytes that mpress_encode() writes for `count` elements; 0 where the spec is wrong. */
size_t mpress_max_payload_bytes(const char* spec, mpress_element type, size_t count);

/* Encodes `count` elements of host memory, at any address, into `payload`, which has room for
 * `room` bytes: mpress_max_payload_bytes() is enough. "auto" takes mpc where that is shorter, else
 * copies; "none" copies. The two do not overlap; `encoded` is not null, and says nothing where the
 * status is not MPRESS_CODEC_OK. */
mpress_codec_status mpress_encode(const char* spec, mpress_element type, const void* elements,
                                  size_t count, void* payload, size_t room,
                                  mpress_encoded* encoded);

/* Decodes exactly `count` elements to host memory, at any address, or combines them with what is
 * there. `spec` is that of mpress_encoded, and not "auto". The payload is not trusted: whatever its
 * bytes, nothing beyond them is read, and nothing beyond the elements written. */
mpress_codec_status mpress_decode(const char* spec, mpress_element type, const void* payload,
                                  size_t bytes, void* elements, size_t count, mpress_combine how);

/* The bound that a payload in memory of the host keeps, as mpress_encoded has it, to `bound`: for
 * one that a device wrote, or a sum, of which nothing else tells it. `bytes`: how many of the
 * payload are there, its first 32 at least; `spec`: what decodes it. */
mpress_codec_status mpress_payload_bound(const char* spec, mpress_element type, const void* payload,
                                         size_t bytes, double* bound);

/* One payload of several. */
typedef struct mpress_payload {
  const void* data;
  size_t bytes;
} mpress_payload;

/* Adds two to eight payloads of szp with the same absolute bound, type and number of elements: in
 * quanta, which is exact, so the order of additions changes no byte, and the bounds add up. `sum`
 * has room for `room` bytes, as for mpress_encode(); it overlaps no summand. */
mpress_codec_status mpress_add(mpress_element type, const mpress_payload* payloads, int number,
                               size_t count, void* sum, size_t room, mpress_encoded* encoded);

/* ---- On GPUs --------------------------------------------------------------------------------
 *
 * The same payloads, byte for byte, written and read by a CUDA device in the order of a stream (a
 * cudaStream_t; null: the default one). These calls allocate nothing, wait for nothing and may be
 * captured into CUDA graphs. All memory is the caller's, stays until the work is done, and is
 * memory that the device reaches: elements aligned as their type, payloads and reports on 16 bytes,
 * workspaces on 256. The device is that of the workspace. Specs name a codec: not "none", nor
 * "auto". */

/* What a device tells of a call when its work is done, in one store of 16 bytes: in mapped pinned
 * memory for a host that looks, or in device memory for a later call. Zero before the call. Once
 * `sequence` is not 0 the rest holds, for whoever loaded it with acquire. */
typedef struct mpress_report {
  unsigned long long bytes; /* of the payload that was written */
  unsigned char status;     /* mpress_report_status() reads it */
  unsigned char reserved[3];
  unsigned sequence;
} mpress_report;

/* Bytes of device memory that calls over `count` elements work in: zero-filled before the first of
 * them; one call at a time, in stream order. 0 where the spec is wrong, or there is no CUDA. */
size_t mpress_workspace_bytes(const char* spec, mpress_element type, size_t count);

/* Encodes into `payload`, with room for mpress_max_payload_bytes(). A relative bound is of the
 * range of these elements, which the device finds. */
mpress_codec_status mpress_encode_async(const char* spec, mpress_element type, const void* elements,
                                        size_t count, void* payload, size_t room,
                                        mpress_report* report, void* workspace, void* stream);

/* Decodes exactly `count` elements; of zfp, `spec` has its rate. `encoded`: null, or where the
 * encoder of the payload reports, in memory that the device reads: then its size is found there
 * when the work begins, and `bytes` is its room. */
mpress_codec_status mpress_decode_async(const char* spec, mpress_element type, const void* payload,
                                        size_t bytes, const mpress_report* encoded, void* elements,
                                        size_t count, mpress_combine how, mpress_report* report,
                                        void* workspace, void* stream);

/* As mpress_add(), of payloads in device memory. */
mpress_codec_status mpress_add_async(mpress_element type, const mpress_payload* payloads,
                                     int number, size_t count, void* sum, size_t room,
                                     mpress_report* report, void* workspace, void* stream);

/* What a report in memory of the host says: MPRESS_CODEC_PENDING while there is none. */
mpress_codec_status mpress_report_status(const mpress_report* report);

/* What was wrong with this thread's last call that failed, in one sentence. */
const char* mpress_codec_error_text(void);

#ifdef __cplusplus
}
#endif

#endif
