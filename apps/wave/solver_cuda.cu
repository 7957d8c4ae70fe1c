// The solver on a GPU. Two streams: `edges` packs and unpacks faces and computes the shells, before
// all else; `cells` computes the interior. Each waits for the other's work of the step before.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "grid.h"

namespace {

constexpr int tile_z = 32, tile_y = 16;
constexpr int most_planes = 64;  // that a block of threads computes one after another
constexpr int copy_threads = 256, most_copy_blocks = 256;

struct Fields {
  Layout layout;
  const real* now;
  real* old;
  const real* factor;
  const real* damping[3];
};

struct Faces {
  Box box[SIDES];
  real* packed[SIDES];  // null where there is no neighbour
};

/// Replaces `old` by the next step in a box. A block of threads goes along x with a tile of the
/// plane in shared memory and the cells before and behind it in registers (Micikevicius, GPGPU-2,
/// 2009), so that most cells are read once.
__global__ void __launch_bounds__(tile_z* tile_y, 3) step_box(Fields f, Box box, int planes) {
  __shared__ real tile[tile_y + 2 * HALO][tile_z + 2 * HALO];
  const int k = box.from[2] + static_cast<int>(blockIdx.x) * tile_z + threadIdx.x;
  const int j = box.from[1] + static_cast<int>(blockIdx.y) * tile_y + threadIdx.y;
  const int first = box.from[0] + static_cast<int>(blockIdx.z) * planes;
  const int last = min(first + planes, box.to[0]);
  const bool inside = k < box.to[2] && j < box.to[1];

  // Threads beyond the box load the cells that those in it need, and no further ones.
  const int most_k = box.to[2] + HALO - 1, most_j = box.to[1] + HALO - 1;
  const int own_k = min(k, most_k), own_j = min(j, most_j);
  const ptrdiff_t sx = f.layout.stride[0], sy = f.layout.stride[1];
  size_t at = layout_at(&f.layout, first, own_j, own_k);
  const ptrdiff_t lower = -HALO * sy, upper = (min(j + tile_y, most_j) - own_j) * sy;
  const int left = -HALO, right = min(k + tile_z, most_k) - own_k;
  const bool loads_rows = threadIdx.y < HALO && j - HALO <= most_j;
  const bool loads_columns = threadIdx.x < HALO && k - HALO <= most_k;
  const int y = threadIdx.y + HALO, z = threadIdx.x + HALO;

  real behind[HALO], ahead[HALO], here = f.now[at];
  for (int n = 0; n < HALO; ++n) {
    behind[n] = f.now[at - (n + 1) * sx];
    ahead[n] = f.now[at + (n + 1) * sx];
  }
  real old = 0, factor = 0, damping_y = 0, damping_z = 0;
  if (inside) {
    old = f.old[at];
    factor = f.factor[at];
    damping_y = f.damping[1][j];
    damping_z = f.damping[2][k];
  }
  for (int i = first; i < last; ++i, at += sx) {
    const real* p = f.now + at;
    tile[y][z] = here;
    if (loads_rows) {
      tile[y - HALO][z] = p[lower];
      tile[y + tile_y][z] = p[upper];
    }
    if (loads_columns) {
      tile[y][z - HALO] = p[left];
      tile[y][z + tile_z] = p[right];
    }
    real coming = 0, coming_old = 0,
         coming_factor = 0;  // on their way while this plane is computed
    if (i + 1 < last) {
      coming = p[(HALO + 1) * sx];
      if (inside) {
        coming_old = f.old[at + sx];
        coming_factor = f.factor[at + sx];
      }
    }
    __syncthreads();
    if (inside) {
      const auto around = [&](int n) {
        return cell_around(tile[y][z - n], tile[y][z + n], tile[y - n][z], tile[y + n][z],
                           behind[n - 1], ahead[n - 1]);
      };
      f.old[at] = cell_next(here, around(1), around(2), around(3), around(4), old, factor,
                            f.damping[0][i] * damping_y * damping_z);
    }
    __syncthreads();
    for (int n = HALO - 1; n > 0; --n) behind[n] = behind[n - 1];
    behind[0] = here;
    here = ahead[0];
    for (int n = 0; n + 1 < HALO; ++n) ahead[n] = ahead[n + 1];
    ahead[HALO - 1] = coming;
    old = coming_old;
    factor = coming_factor;
  }
}

/// Copies all sides' boxes between `field` and the packed faces.
__global__ void copy_faces(Layout layout, Faces faces, real* field, bool pack) {
  const Box box = faces.box[blockIdx.y];
  real* const packed = faces.packed[blockIdx.y];
  if (!packed) return;
  const int ny = box.to[1] - box.from[1], nz = box.to[2] - box.from[2];
  const int cells = static_cast<int>(box_cells(&box));
  for (int n = blockIdx.x * blockDim.x + threadIdx.x; n < cells; n += gridDim.x * blockDim.x) {
    real& cell = field[layout_at(&layout, box.from[0] + n / nz / ny, box.from[1] + n / nz % ny,
                                 box.from[2] + n % nz)];
    if (pack) {
      packed[n] = cell;
    } else {
      cell = packed[n];
    }
  }
}

__global__ void add_sources(Sources sources, real* field, double wavelet) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < sources.count) field[sources.at[n]] += static_cast<real>(sources.strength[n] * wavelet);
}

void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "wave: %s: %s\n", what, cudaGetErrorString(code));
  std::abort();
}

struct CudaSolver : Solver {
  int number = 0;
  Fields fields{};
  Regions regions{};
  Faces out{}, in{};
  Sources inner{}, outer{};  // in the interior; in the shells
  cudaStream_t edges = nullptr, cells = nullptr;
  cudaEvent_t packed = nullptr, advanced = nullptr;
  cudaEvent_t computed[2] = {}, arrived[2] = {};  // of this step and the one before
  unsigned step = 0;
  bool unaccounted = false;  // the wait of the step before
  std::vector<void*> memory;
  std::vector<real> host;
};

CudaSolver& of(Solver* solver) { return *static_cast<CudaSolver*>(solver); }

void launch_box(const CudaSolver& s, const Box& box, cudaStream_t stream) {
  if (!box_cells(&box)) return;
  const auto tiles = [&](int axis, int tile) {
    return static_cast<unsigned>((box.to[axis] - box.from[axis] + tile - 1) / tile);
  };
  const dim3 grid(tiles(2, tile_z), tiles(1, tile_y), tiles(0, most_planes));
  step_box<<<grid, dim3(tile_z, tile_y), 0, stream>>>(s.fields, box, most_planes);
  check(cudaGetLastError(), "computing cells");
}

void launch_copy(const CudaSolver& s, const Faces& faces, bool pack) {
  size_t most = 0;
  for (int side = 0; side < SIDES; ++side) most = std::max(most, box_cells(&faces.box[side]));
  if (!most) return;
  const auto blocks = static_cast<unsigned>(
      std::min<size_t>((most + copy_threads - 1) / copy_threads, most_copy_blocks));
  copy_faces<<<dim3(blocks, SIDES), copy_threads, 0, s.edges>>>(
      s.fields.layout, faces, const_cast<real*>(s.fields.now), pack);
  check(cudaGetLastError(), "copying faces");
}

void launch_sources(const CudaSolver& s, const Sources& sources, double wavelet,
                    cudaStream_t stream) {
  if (!sources.count) return;
  const auto blocks = static_cast<unsigned>((sources.count + copy_threads - 1) / copy_threads);
  add_sources<<<blocks, copy_threads, 0, stream>>>(sources, s.fields.old, wavelet);
  check(cudaGetLastError(), "adding sources");
}

/// Adds the time from the end of the interior to the arrival of the halos, where that was later.
void account(CudaSolver& s, unsigned step) {
  if (!s.unaccounted) return;
  s.unaccounted = false;
  const cudaEvent_t computed = s.computed[step % 2];
  if (cudaEventQuery(computed) == cudaErrorNotReady) return;  // the interior took longer
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, computed, s.arrived[step % 2]), "timing");
  if (milliseconds > 0) s.waited += 1e-3 * milliseconds;
}

void begin(Solver* solver) {
  CudaSolver& s = of(solver);
  check(cudaSetDevice(s.number), "cudaSetDevice");
  launch_copy(s, s.out, true);
  check(cudaEventRecord(s.packed, s.edges), "recording an event");
  // The shells of this step need the interior of the last one, which goes on beside the packing.
  check(cudaStreamWaitEvent(s.edges, s.advanced, 0), "ordering streams");
  check(cudaStreamWaitEvent(s.cells, s.packed, 0), "ordering streams");
  launch_box(s, s.regions.interior, s.cells);
  check(cudaEventRecord(s.computed[s.step % 2], s.cells), "recording an event");
  check(cudaEventSynchronize(s.packed), "packing faces");
  account(s, s.step - 1);
}

void compute(Solver*) {}

void end(Solver* solver, double wavelet) {
  CudaSolver& s = of(solver);
  check(cudaEventRecord(s.arrived[s.step % 2], s.edges), "recording an event");
  launch_copy(s, s.in, false);
  for (const Box& shell : s.regions.shell) launch_box(s, shell, s.edges);
  launch_sources(s, s.outer, wavelet, s.edges);
  launch_sources(s, s.inner, wavelet, s.cells);
  check(cudaEventRecord(s.advanced, s.cells), "recording an event");
  real* const next = s.fields.old;
  s.fields.old = const_cast<real*>(s.fields.now);
  s.fields.now = next;
  s.unaccounted = true;
  ++s.step;
}

void finish(Solver* solver) {
  CudaSolver& s = of(solver);
  check(cudaStreamSynchronize(s.cells), "computing cells");
  check(cudaStreamSynchronize(s.edges), "computing shells");
  account(s, s.step - 1);
}

void restart(Solver* solver) {
  CudaSolver& s = of(solver);
  s.waited = 0;
  s.unaccounted = false;
}

const real* newest(Solver* solver) {
  CudaSolver& s = of(solver);
  s.host.resize(s.fields.layout.padded);
  check(
      cudaMemcpy(s.host.data(), s.fields.now, s.host.size() * sizeof(real), cudaMemcpyDeviceToHost),
      "copying the field");
  return s.host.data();
}

void release(Solver* solver) {
  CudaSolver* const s = static_cast<CudaSolver*>(solver);
  for (cudaEvent_t event :
       {s->packed, s->advanced, s->computed[0], s->computed[1], s->arrived[0], s->arrived[1]}) {
    if (event) cudaEventDestroy(event);
  }
  for (cudaStream_t stream : {s->edges, s->cells}) {
    if (stream) cudaStreamDestroy(stream);
  }
  for (void* block : s->memory) cudaFree(block);
  delete s;
}

/// Memory of the GPU with a copy of `values`, or zeroes. Null where there is too little.
template <typename T>
T* allocate(CudaSolver& s, size_t count, const T* values = nullptr) {
  void* block = nullptr;
  const size_t bytes = std::max<size_t>(count, 1) * sizeof(T);
  if (cudaMalloc(&block, bytes) != cudaSuccess) return nullptr;
  s.memory.push_back(block);
  if (values) {
    check(cudaMemcpy(block, values, count * sizeof(T), cudaMemcpyHostToDevice), "copying in");
  } else {
    check(cudaMemset(block, 0, bytes), "clearing memory");
  }
  return static_cast<T*>(block);
}

bool in_interior(const Problem& p, size_t at) {
  const auto sx = static_cast<size_t>(p.layout.stride[0]);
  const auto sy = static_cast<size_t>(p.layout.stride[1]);
  const size_t cell[3] = {at / sx, at % sx / sy, at % sy};
  for (int axis = 0; axis < 3; ++axis) {
    const int position = static_cast<int>(cell[axis]) - HALO;
    if (position < p.regions.interior.from[axis] || position >= p.regions.interior.to[axis]) {
      return false;
    }
  }
  return true;
}

bool allocate_sources(CudaSolver& s, const Problem& p, bool interior, Sources& sources) {
  std::vector<size_t> at;
  std::vector<double> strength;
  for (int n = 0; n < p.sources.count; ++n) {
    if (in_interior(p, p.sources.at[n]) != interior) continue;
    at.push_back(p.sources.at[n]);
    strength.push_back(p.sources.strength[n]);
  }
  sources.count = static_cast<int>(at.size());
  sources.at = allocate(s, at.size(), at.data());
  sources.strength = allocate(s, at.size(), strength.data());
  return sources.at && sources.strength;
}

bool allocate_all(CudaSolver& s, const Problem& p) {
  Fields& f = s.fields;
  f.layout = p.layout;
  f.now = allocate<real>(s, p.layout.padded);
  f.old = allocate<real>(s, p.layout.padded);
  f.factor = allocate(s, p.layout.padded, p.medium.factor);
  bool complete = f.now && f.old && f.factor;
  for (int axis = 0; axis < 3; ++axis) {
    f.damping[axis] = allocate(s, static_cast<size_t>(p.cells[axis]), p.medium.damping[axis]);
    complete = complete && f.damping[axis];
  }
  for (int side = 0; side < SIDES; ++side) {
    s.out.box[side] = p.regions.face[side];
    s.in.box[side] = p.regions.halo[side];
    const size_t cells = box_cells(&p.regions.face[side]);
    if (!cells) continue;
    s.send[side] = s.out.packed[side] = allocate<real>(s, cells);
    s.receive[side] = s.in.packed[side] = allocate<real>(s, cells);
    complete = complete && s.send[side] && s.receive[side];
  }
  return complete && allocate_sources(s, p, true, s.inner) &&
         allocate_sources(s, p, false, s.outer);
}

}  // namespace

Solver* cuda_solver(const Problem* problem, int number, char* error, size_t error_size) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::snprintf(error, error_size, "--device cuda: no GPU was found");
    return nullptr;
  }
  auto* const s = new CudaSolver;
  s->number = number % devices;
  s->regions = problem->regions;
  s->begin = begin;
  s->compute = compute;
  s->end = end;
  s->finish = finish;
  s->restart = restart;
  s->newest = newest;
  s->free = release;
  check(cudaSetDevice(s->number), "cudaSetDevice");
  if (!allocate_all(*s, *problem)) {
    std::snprintf(error, error_size, "GPU %d has too little memory for %zu cells", s->number,
                  problem->layout.padded);
    release(s);
    return nullptr;
  }
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  check(cudaStreamCreateWithPriority(&s->edges, cudaStreamNonBlocking, greatest), "a stream");
  check(cudaStreamCreateWithPriority(&s->cells, cudaStreamNonBlocking, least), "a stream");
  for (cudaEvent_t* event : {&s->packed, &s->advanced}) {
    check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "an event");
  }
  for (cudaEvent_t* event : {&s->computed[0], &s->computed[1], &s->arrived[0], &s->arrived[1]}) {
    check(cudaEventCreate(event), "an event");
  }
  check(cudaDeviceSynchronize(), "preparing the fields");
  return s;
}
