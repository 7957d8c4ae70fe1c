// What host memory that GPUs have pinned can carry, and what messages make of it.
// bench/host_link.py builds and runs this, and keeps what it prints: a JSON object a line.
//   host_link ceiling              all GPUs at once, copying out, in, and both, by where memory
//   lies host_link messages FILE [BYTES...]
//                                  two ranks, each with a GPU of its own: one way, and both at
//                                  once; the messages hold what the file does, f32
#include <cuda_runtime.h>
#include <dirent.h>
#include <linux/mempolicy.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr std::size_t copied_bytes = 256u << 20;

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "host_link: %s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

int numa_nodes() {
  int nodes = 0;
  while (::access(("/sys/devices/system/node/node" + std::to_string(nodes)).c_str(), F_OK) == 0) {
    ++nodes;
  }
  return std::max(nodes, 1);
}

/// The node that a GPU is attached to; -1 where the system does not tell.
int node_of(int device) {
  char bus[32] = "";
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, device), "a bus");
  for (char* c = bus; *c; ++c) *c = static_cast<char>(std::tolower(*c));
  int node = -1;
  if (std::FILE* file =
          std::fopen((std::string("/sys/bus/pci/devices/") + bus + "/numa_node").c_str(), "r")) {
    if (std::fscanf(file, "%d", &node) != 1) node = -1;
    std::fclose(file);
  }
  return node;
}

std::byte* pinned_on(int node, int nodes) {
  void* memory =
      ::mmap(nullptr, copied_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  if (nodes > 1) {
    const unsigned long mask = 1ul << node;
    ::syscall(SYS_mbind, memory, copied_bytes, MPOL_BIND, &mask, sizeof mask * 8, 0);
  }
  check(cudaHostRegister(memory, copied_bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
        "pinning");
  return static_cast<std::byte*>(memory);
}

struct Copier {
  int device;
  std::byte *out, *in;  // host memory
  void *from, *to;      // the device's
  cudaStream_t streams[2];
};

/// GB/s of each GPU, each way, while all of `copiers` do the same.
double together(const std::vector<Copier>& copiers, bool out, bool in) {
  std::vector<double> times;
  for (int round = 0; round < 8; ++round) {
    const double begin = now();
    for (const Copier& one : copiers) {
      check(cudaSetDevice(one.device), "a device");
      if (out)
        check(cudaMemcpyAsync(one.out, one.from, copied_bytes, cudaMemcpyDefault, one.streams[0]),
              "a copy");
      if (in)
        check(cudaMemcpyAsync(one.to, one.in, copied_bytes, cudaMemcpyDefault, one.streams[1]),
              "a copy");
    }
    for (const Copier& one : copiers) {
      check(cudaSetDevice(one.device), "a device");
      for (cudaStream_t stream : one.streams) check(cudaStreamSynchronize(stream), "a stream");
    }
    if (round > 0) times.push_back(now() - begin);
  }
  return static_cast<double>(copied_bytes) / median(times) / 1e9;
}

void ceiling() {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "devices");
  const int nodes = numa_nodes();
  for (int node = 0; node < nodes; ++node) {
    std::vector<Copier> copiers;
    for (int device = 0; device < devices; ++device) {
      check(cudaSetDevice(device), "a device");
      Copier one{device, pinned_on(node, nodes), pinned_on(node, nodes)};
      check(cudaMalloc(&one.from, copied_bytes), "memory");
      check(cudaMalloc(&one.to, copied_bytes), "memory");
      for (cudaStream_t& stream : one.streams) check(cudaStreamCreate(&stream), "a stream");
      copiers.push_back(one);
    }
    for (std::size_t count = 1; count <= copiers.size(); ++count) {
      const std::vector<Copier> some(copiers.begin(), copiers.begin() + static_cast<long>(count));
      const double out = together(some, true, false);
      const double in = together(some, false, true);
      const double both = together(some, true, true);
      std::printf(
          "{\"what\": \"ceiling\", \"gpus\": %zu, \"memory_node\": %d, \"gpu_node\": %d, "
          "\"out_gb_s\": %.1f, \"in_gb_s\": %.1f, \"both_gb_s\": %.1f}\n",
          count, node, node_of(some.back().device), out, in, both);
    }
    for (Copier& one : copiers) {
      check(cudaSetDevice(one.device), "a device");
      check(cudaFree(one.from), "memory");
      check(cudaFree(one.to), "memory");
      for (std::byte* memory : {one.out, one.in}) {
        check(cudaHostUnregister(memory), "memory");
        ::munmap(memory, copied_bytes);
      }
    }
  }
}

struct Ends {
  float *send, *receive;
  int rank;
};

void one_way(const Ends& ends, int count) {
  const int other = 1 - ends.rank;
  if (ends.rank == 0) {
    MPI_Send(ends.send, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(ends.receive, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(ends.receive, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(ends.send, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
  }
}

void both_ways(const Ends& ends, int count) {
  MPI_Request requests[2];
  const int other = 1 - ends.rank;
  MPI_Irecv(ends.receive, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(ends.send, count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

void messages(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Ends ends{};
  MPI_Comm_rank(MPI_COMM_WORLD, &ends.rank);
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "devices");
  check(cudaSetDevice(ends.rank % devices), "a device");
  std::FILE* file = argc > 2 ? std::fopen(argv[2], "rb") : nullptr;
  if (!file) MPI_Abort(MPI_COMM_WORLD, 1);
  std::vector<float> values(copied_bytes / sizeof(float));
  if (std::fread(values.data(), 1, copied_bytes, file) != copied_bytes)
    MPI_Abort(MPI_COMM_WORLD, 1);
  std::fclose(file);
  check(cudaMalloc(&ends.send, copied_bytes), "memory");
  check(cudaMalloc(&ends.receive, copied_bytes), "memory");
  check(cudaMemcpy(ends.send, values.data(), copied_bytes, cudaMemcpyDefault), "a copy");
  check(cudaDeviceSynchronize(), "a device");
  std::vector<std::size_t> sizes;
  for (int i = 3; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty()) sizes = {65536, 1 << 20, 32 << 20, copied_bytes};
  for (const std::size_t bytes : sizes) {
    const auto count = static_cast<int>(bytes / sizeof(float));
    const int rounds = static_cast<int>(std::clamp<std::size_t>((4ul << 30) / bytes, 11, 301));
    for (const bool both : {false, true}) {
      std::vector<double> times;
      check(cudaMemset(ends.receive, 0, bytes), "memory");
      check(cudaDeviceSynchronize(), "a device");
      for (int round = -8; round < rounds; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        both ? both_ways(ends, count) : one_way(ends, count);
        const double took = (now() - begin) / (both ? 1 : 2);
        if (round >= 0) times.push_back(took);
      }
      float got = 0;  // what came is near what was sent
      check(cudaMemcpy(&got, ends.receive + count / 2, sizeof got, cudaMemcpyDefault), "a copy");
      const float sent = values[static_cast<std::size_t>(count / 2)];
      if (ends.rank != 0) continue;
      std::printf(
          "{\"what\": \"message\", \"bytes\": %zu, \"both\": %s, \"us\": %.1f, \"least_us\": "
          "%.1f, \"rounds\": %d, \"sent\": %g, \"got\": %g}\n",
          bytes, both ? "true" : "false", median(times) * 1e6,
          *std::min_element(times.begin(), times.end()) * 1e6, rounds, sent, got);
      std::fflush(stdout);
    }
  }
  MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "ceiling") {
    ceiling();
  } else if (what == "messages") {
    messages(argc, argv);
  } else {
    std::fprintf(stderr, "host_link: ceiling | messages FILE [BYTES...]\n");
    return 2;
  }
  return 0;
}
