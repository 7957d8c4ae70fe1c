/* The codecs, without any MPI: bounds, sums, and wrong arguments. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* of painted.h */
#endif
#include <fenv.h>
#include <math.h>
#include <mpress/codec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mpi/painted.h"

#define CHECK(condition)                                                                      \
  ((condition) ? (void)0                                                                      \
               : (fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, \
                          mpress_codec_error_text()),                                         \
                  exit(1)))

enum { COUNT = 100003 };
static double values[COUNT], again[COUNT];
static float floats[COUNT], floats_again[COUNT];

static void all_codecs(void) {
  const char* const specs[] = {
      "none", "auto", "mpc", "mpc:dim=2", "szp:abs=1e-3", "szp:rel=1e-5,mode=dense", "zfp:20"};
  for (int i = 0; i < COUNT; ++i) floats[i] = (float)(values[i] = sin(1e-3 * i) + 3);
  for (int k = 0; k < (int)(sizeof specs / sizeof *specs); ++k) {
    const size_t room = mpress_max_payload_bytes(specs[k], MPRESS_F64, COUNT);
    CHECK(room > 0);
    void* payload = malloc(room);
    mpress_encoded encoded;
    CHECK(mpress_encode(specs[k], MPRESS_F64, values, COUNT, payload, room, &encoded) ==
          MPRESS_CODEC_OK);
    CHECK(encoded.bytes <= room);
    CHECK(k == 0 || encoded.bytes < sizeof values);
    double bound = -1;
    CHECK(mpress_payload_bound(encoded.spec, MPRESS_F64, payload, encoded.bytes, &bound) ==
          MPRESS_CODEC_OK);
    CHECK(isnan(encoded.bound) ? isnan(bound) : bound == encoded.bound);
    memset(again, 0, sizeof again);
    CHECK(mpress_decode(encoded.spec, MPRESS_F64, payload, encoded.bytes, again, COUNT,
                        MPRESS_REPLACE) == MPRESS_CODEC_OK);
    double error = 0;
    for (int i = 0; i < COUNT; ++i) error = fmax(error, fabs(again[i] - values[i]));
    CHECK(isnan(encoded.bound) ? error < 1e-2 : error <= encoded.bound);
    CHECK(mpress_decode(encoded.spec, MPRESS_F64, payload, encoded.bytes, again, COUNT,
                        MPRESS_SUM) == MPRESS_CODEC_OK);
    for (int i = 0; i < COUNT; ++i) CHECK(fabs(again[i] - 2 * values[i]) <= 3e-2);
    CHECK(mpress_decode(encoded.spec, MPRESS_F64, payload, encoded.bytes, again, COUNT,
                        MPRESS_PROD) == MPRESS_CODEC_OK);
    for (int i = 0; i < COUNT; ++i) {
      CHECK(fabs(again[i] - 2 * values[i] * values[i]) <= 5e-2 * (1 + fabs(values[i])));
    }
    CHECK(mpress_decode(encoded.spec, MPRESS_F64, payload, encoded.bytes - 1, again, COUNT,
                        MPRESS_REPLACE) == MPRESS_CODEC_CORRUPT);
    CHECK(mpress_encode(specs[k], MPRESS_F64, values, COUNT, payload, room - 1, &encoded) ==
          MPRESS_CODEC_ROOM);
    free(payload);
  }
}

/* Of elements that are all alike a relative bound is 0. */
static void all_alike(void) {
  static float alike[COUNT];
  const size_t room = mpress_max_payload_bytes("szp:rel=1e-3", MPRESS_F32, COUNT);
  void* payload = malloc(room);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < COUNT; ++i) alike[i] = k == 0 ? 0 : -0.3f;
    mpress_encoded encoded;
    CHECK(mpress_encode("szp:rel=1e-3", MPRESS_F32, alike, COUNT, payload, room, &encoded) ==
          MPRESS_CODEC_OK);
    CHECK(encoded.bytes < 1000 && encoded.bound < 1.2e-38);
    CHECK(mpress_decode(encoded.spec, MPRESS_F32, payload, encoded.bytes, floats_again, COUNT,
                        MPRESS_REPLACE) == MPRESS_CODEC_OK);
    CHECK(memcmp(alike, floats_again, sizeof alike) == 0);
  }
  free(payload);
}

static void sums(void) {
  const size_t room = mpress_max_payload_bytes("szp:abs=1e-4", MPRESS_F32, COUNT);
  mpress_payload payloads[3];
  mpress_encoded encoded, sum;
  for (int p = 0; p < 3; ++p) {
    void* data = malloc(room);
    CHECK(mpress_encode("szp:abs=1e-4", MPRESS_F32, floats, COUNT, data, room, &encoded) ==
          MPRESS_CODEC_OK);
    payloads[p].data = data;
    payloads[p].bytes = encoded.bytes;
  }
  void* total = malloc(room);
  CHECK(mpress_add(MPRESS_F32, payloads, 3, COUNT, total, room, &sum) == MPRESS_CODEC_OK);
  CHECK(mpress_decode(sum.spec, MPRESS_F32, total, sum.bytes, floats_again, COUNT,
                      MPRESS_REPLACE) == MPRESS_CODEC_OK);
  CHECK(sum.bound > 0 && sum.bound <= 3.1e-4);
  for (int i = 0; i < COUNT; ++i)
    CHECK(fabsf(floats_again[i] - 3 * floats[i]) <= 1.01f * sum.bound);
  CHECK(mpress_add(MPRESS_F32, payloads, 3, COUNT - 1, total, room, &sum) != MPRESS_CODEC_OK);
  CHECK(mpress_add(MPRESS_F32, payloads, 1, COUNT, total, room, &sum) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_encode("szp:abs=1e-3", MPRESS_F32, floats, COUNT, (void*)payloads[0].data, room,
                      &encoded) == MPRESS_CODEC_OK);
  payloads[0].bytes = encoded.bytes;
  CHECK(mpress_add(MPRESS_F32, payloads, 2, COUNT, total, room, &sum) == MPRESS_CODEC_MISMATCHED);
  for (int p = 0; p < 3; ++p) free((void*)payloads[p].data);
  free(total);
}

/* Neither bytes nor values depend on how the program rounds, and its flags stay as they were. */
static void environment(void) {
  const char* const specs[] = {"mpc", "szp:abs=1e-3", "szp:rel=1e-5", "zfp:20"};
  for (int k = 0; k < (int)(sizeof specs / sizeof *specs); ++k) {
    const size_t room = mpress_max_payload_bytes(specs[k], MPRESS_F32, COUNT);
    void *payload = malloc(room), *other = malloc(room), *total = malloc(room);
    mpress_encoded encoded, again_encoded, sum;
    mpress_codec_status added = MPRESS_CODEC_OK, added_before = MPRESS_CODEC_OK;
    const int adds = strncmp(specs[k], "szp", 3) == 0;
    CHECK(mpress_encode(specs[k], MPRESS_F32, floats, COUNT, payload, room, &encoded) ==
          MPRESS_CODEC_OK);
    const mpress_payload two[] = {{payload, encoded.bytes}, {payload, encoded.bytes}};
    if (adds) added_before = mpress_add(MPRESS_F32, two, 2, COUNT, total, room, &sum);
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    const mpress_codec_status is_encoded =
        mpress_encode(specs[k], MPRESS_F32, floats, COUNT, other, room, &again_encoded);
    const mpress_codec_status is_decoded = mpress_decode(
        encoded.spec, MPRESS_F32, other, again_encoded.bytes, floats_again, COUNT, MPRESS_REPLACE);
    if (adds) added = mpress_add(MPRESS_F32, two, 2, COUNT, total, room, &sum);
    const int flags = fetestexcept(FE_ALL_EXCEPT), direction = fegetround();
    fesetround(FE_TONEAREST);
    CHECK(is_encoded == MPRESS_CODEC_OK && is_decoded == MPRESS_CODEC_OK);
    CHECK(added == added_before);
    CHECK(flags == 0 && direction == FE_UPWARD);
    CHECK(encoded.bytes == again_encoded.bytes && encoded.bytes < sizeof floats);
    CHECK(memcmp(payload, other, encoded.bytes) == 0);
    CHECK(isnan(encoded.bound) || encoded.bound == again_encoded.bound);
    free(payload), free(other), free(total);
  }
}

static void wrong(void) {
  char payload[64];
  mpress_encoded encoded;
  CHECK(mpress_codec_problem("mpc", MPRESS_F32) == NULL);
  CHECK(strstr(mpress_codec_problem("zfp:64", MPRESS_F32), "zfp"));
  CHECK(strstr(mpress_codec_problem(NULL, MPRESS_F32), "spec"));
  CHECK(strstr(mpress_codec_problem("mpc", (mpress_element)7), "type is 7"));
  CHECK(mpress_max_payload_bytes("nonsense", MPRESS_F32, 1) == 0);
  CHECK(mpress_max_payload_bytes("mpc", MPRESS_F64, (size_t)-1 / 4) == 0);
  CHECK(mpress_encode("mpc", MPRESS_F64, NULL, 1, payload, sizeof payload, &encoded) ==
        MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_encode("mpc", MPRESS_F64, values, 1, NULL, 64, &encoded) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_encode("mpc", MPRESS_F64, values, 1, payload, sizeof payload, NULL) ==
        MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_decode("auto", MPRESS_F64, payload, 8, again, 1, MPRESS_REPLACE) ==
        MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_decode("none", MPRESS_F64, payload, 8, again, 1, (mpress_combine)9) ==
        MPRESS_CODEC_ARGUMENT);
  double bound = 0;
  CHECK(mpress_payload_bound("szp:abs=1", MPRESS_F64, payload, 31, &bound) == MPRESS_CODEC_CORRUPT);
  CHECK(mpress_payload_bound("auto", MPRESS_F64, payload, 64, &bound) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_payload_bound("mpc", MPRESS_F64, NULL, 64, &bound) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_payload_bound("mpc", MPRESS_F64, payload, 64, NULL) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_encode("none", MPRESS_F64, NULL, 0, NULL, 0, &encoded) == MPRESS_CODEC_OK);
  CHECK(encoded.bytes == 0);
}

/* What is wrong on devices is found before any is looked for. */
static void devices(void) {
  mpress_report report;
  memset(&report, 0, sizeof report);
  CHECK(mpress_report_status(&report) == MPRESS_CODEC_PENDING);
  report.sequence = 1;
  CHECK(mpress_report_status(&report) == MPRESS_CODEC_OK);
  report.status = 2;
  CHECK(mpress_report_status(&report) == MPRESS_CODEC_CORRUPT);
  CHECK(mpress_report_status(NULL) == MPRESS_CODEC_ARGUMENT);
  CHECK(mpress_workspace_bytes("zip", MPRESS_F64, COUNT) == 0);
  CHECK(mpress_encode_async("mpc", MPRESS_F64, values, COUNT, NULL, 0, &report, NULL, NULL) ==
        MPRESS_CODEC_ARGUMENT);
  CHECK(strstr(mpress_codec_error_text(), "payload"));
  CHECK(mpress_decode_async("mpc", MPRESS_F64, values, 8, NULL, again, COUNT, (mpress_combine)9,
                            &report, NULL, NULL) == MPRESS_CODEC_ARGUMENT);
  CHECK(strstr(mpress_codec_error_text(), "how is 9"));
  mpress_payload payload = {values, 8};
  CHECK(mpress_add_async(MPRESS_F64, &payload, 1, COUNT, again, sizeof again, &report, NULL,
                         NULL) == MPRESS_CODEC_ARGUMENT);
  CHECK(strstr(mpress_codec_error_text(), "number is 1"));
}

static void all(void* unused) {
  (void)unused;
  all_codecs();
  all_alike();
  sums();
  environment();
  wrong();
  devices();
}
static void nothing(void* unused) { (void)unused; }

/* Threads of task runtimes have 16 KB of stack. */
int main(void) {
  const size_t least = stack_of(nothing, NULL), need = stack_of(all, NULL) - least;
  if (need > 8 << 10) {
    fprintf(stderr, "%zu bytes of stack\n", need);
    return 1;
  }
  puts("ok");
  return 0;
}
