/* The codecs of include/mpress/codec.h on a GPU: the bytes of the host's, in stream order, in a
 * graph, and wrong arguments. Links libmpress.so and the CUDA runtime. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <mpress/codec.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                      \
  ((condition) ? (void)0                                                                      \
               : (fprintf(stderr, "%s:%d: failed: %s (%s)\n", __FILE__, __LINE__, #condition, \
                          mpress_codec_error_text()),                                         \
                  exit(1)))
#define CUDA(call) CHECK((call) == cudaSuccess)

enum { COUNT = 1000003 };
static float field[COUNT], again[COUNT];

int main(void) {
  const char* const specs[] = {"mpc", "zfp:8", "szp:abs=1e-3", "szp:rel=1e-4,mode=dense"};
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < COUNT; ++i) field[i] = (float)sin(1e-3 * i) + 2;
  float *elements, *decoded;
  CUDA(cudaMalloc((void**)&elements, sizeof field));
  CUDA(cudaMalloc((void**)&decoded, sizeof field));
  mpress_report* reports;
  CUDA(cudaHostAlloc((void**)&reports, 4 * sizeof *reports, cudaHostAllocMapped));
  for (int k = 0; k < (int)(sizeof specs / sizeof *specs); ++k) {
    const size_t room = mpress_max_payload_bytes(specs[k], MPRESS_F32, COUNT);
    const size_t work = mpress_workspace_bytes(specs[k], MPRESS_F32, COUNT);
    CHECK(room > 0 && work > 0);
    void *payload, *workspace, *sum;
    CUDA(cudaMalloc(&payload, room));
    CUDA(cudaMalloc(&sum, room));
    CUDA(cudaMalloc(&workspace, work));
    CUDA(cudaMemset(workspace, 0, work));
    CUDA(cudaDeviceSynchronize());
    memset(reports, 0, 4 * sizeof *reports);
    /* One behind the other, without a look at the size in between. */
    CUDA(cudaMemcpyAsync(elements, field, sizeof field, cudaMemcpyHostToDevice, stream));
    CHECK(mpress_report_status(&reports[0]) == MPRESS_CODEC_PENDING);
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, payload, room, &reports[0],
                              workspace, stream) == MPRESS_CODEC_OK);
    CHECK(mpress_decode_async(specs[k], MPRESS_F32, payload, room, &reports[0], decoded, COUNT,
                              MPRESS_REPLACE, &reports[1], workspace, stream) == MPRESS_CODEC_OK);
    CUDA(cudaMemcpyAsync(again, decoded, sizeof field, cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));
    CHECK(mpress_report_status(&reports[0]) == MPRESS_CODEC_OK);
    CHECK(mpress_report_status(&reports[1]) == MPRESS_CODEC_OK);
    /* The twin's bytes. */
    mpress_encoded encoded;
    char* const host = malloc(room);
    char* const copied = malloc(room);
    CHECK(mpress_encode(specs[k], MPRESS_F32, field, COUNT, host, room, &encoded) ==
          MPRESS_CODEC_OK);
    CHECK(encoded.bytes == reports[0].bytes);
    CUDA(cudaMemcpy(copied, payload, encoded.bytes, cudaMemcpyDeviceToHost));
    CHECK(memcmp(host, copied, encoded.bytes) == 0);
    const double bound = isnan(encoded.bound) ? 1 : encoded.bound;
    for (int i = 0; i < COUNT; ++i) CHECK(fabs(again[i] - field[i]) <= bound * 1.0001);
    if (strncmp(specs[k], "szp:abs", 7) == 0) {
      const mpress_payload both[] = {{payload, encoded.bytes}, {payload, encoded.bytes}};
      CHECK(mpress_add_async(MPRESS_F32, both, 2, COUNT, sum, room, &reports[2], workspace,
                             stream) == MPRESS_CODEC_OK);
      CHECK(mpress_decode_async(specs[k], MPRESS_F32, sum, room, &reports[2], decoded, COUNT,
                                MPRESS_REPLACE, &reports[3], workspace, stream) == MPRESS_CODEC_OK);
      CUDA(cudaMemcpyAsync(again, decoded, sizeof field, cudaMemcpyDeviceToHost, stream));
      CUDA(cudaStreamSynchronize(stream));
      CHECK(mpress_report_status(&reports[3]) == MPRESS_CODEC_OK);
      for (int i = 0; i < COUNT; ++i) CHECK(fabs(again[i] - 2 * field[i]) <= 2.001 * bound);
    }
    /* A graph, replayed. */
    cudaGraph_t graph;
    cudaGraphExec_t replay;
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, payload, room, &reports[0],
                              workspace, stream) == MPRESS_CODEC_OK);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&replay, graph, 0));
    CUDA(cudaMemset(payload, 0, room));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(replay, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(copied, payload, encoded.bytes, cudaMemcpyDeviceToHost));
    CHECK(memcmp(host, copied, encoded.bytes) == 0);
    CUDA(cudaGraphExecDestroy(replay));
    CUDA(cudaGraphDestroy(graph));
    /* Wrong arguments. */
    CHECK(mpress_encode_async("auto", MPRESS_F32, elements, COUNT, payload, room, &reports[0],
                              workspace, stream) == MPRESS_CODEC_ARGUMENT);
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, (char*)payload + 4, room,
                              &reports[0], workspace, stream) == MPRESS_CODEC_ARGUMENT);
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, payload, room - 1, &reports[0],
                              workspace, stream) == MPRESS_CODEC_ROOM);
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, payload, room, NULL, workspace,
                              stream) == MPRESS_CODEC_ARGUMENT);
    CHECK(mpress_encode_async(specs[k], MPRESS_F32, elements, COUNT, payload, room, &reports[0],
                              NULL, stream) == MPRESS_CODEC_ARGUMENT);
    /* What is no payload. */
    memset(&reports[1], 0, sizeof reports[1]);
    CUDA(cudaMemset(payload, 0x5a, 4096));
    CHECK(mpress_decode_async(specs[k], MPRESS_F32, payload, encoded.bytes, NULL, decoded, COUNT,
                              MPRESS_REPLACE, &reports[1], workspace, stream) == MPRESS_CODEC_OK);
    CUDA(cudaStreamSynchronize(stream));
    CHECK(mpress_report_status(&reports[1]) == MPRESS_CODEC_CORRUPT);
    free(host);
    free(copied);
    CUDA(cudaFree(payload));
    CUDA(cudaFree(sum));
    CUDA(cudaFree(workspace));
  }
  CUDA(cudaFreeHost(reports));
  CUDA(cudaFree(elements));
  CUDA(cudaFree(decoded));
  CUDA(cudaStreamDestroy(stream));
  puts("ok");
  return 0;
}
