#include "worker/model/kernels/half_tiles.h"

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace traind {

#if defined(__x86_64__)
namespace {

// Target options of its own: the rest of the program runs on any processor.
#define TRAIND_TILES __attribute__((target("avx512f,avx512bw,avx512bf16,amx-tile,amx-bf16")))

constexpr int64_t kLanes = 16;
constexpr int64_t kTall = 2 * kLanes;  // rows of x that two tiles hold

// The format of LDTILECFG (Intel's manual, volume 1, chapter "Programming with AMX").
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

bool AskForTiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if ((d & kBf16) == 0 || (d & kTile) == 0 || !__builtin_cpu_supports("avx512bf16")) return false;
  // Linux keeps the tiles of a process only after it asked (ARCH_REQ_XCOMP_PERM, since 5.16).
  constexpr int64_t kAskForState = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

// Writes the first `count` of kHalfPanel sums.
TRAIND_TILES inline void Keep(const float* sums, int64_t count, float* y) {
  std::copy_n(sums, count, y);
}
TRAIND_TILES inline void Keep(const float* sums, int64_t /*count*/, Bf16* y) {
  const __m512 zero = {}, left = _mm512_load_ps(sums), right = _mm512_load_ps(sums + kLanes);
  // A NaN stays a NaN.
  const __m512bh both =
      _mm512_cvtne2ps_pbh(right <= zero ? zero : right, left <= zero ? zero : left);
  _mm512_storeu_si512(y, (__m512i)both);
}

// Computes `rows` rows (kTall at most) of one panel's columns. x: [kTall, in]. The tiles 0 to 3
// hold the sums, 4 and 5 rows of x, 6 and 7 weights.
template <class Y>
TRAIND_TILES void Panel(const HalfPanels& layer, const Bf16* x, int64_t rows, int64_t begin,
                        int64_t stride, Y* y) {
  const Bf16* weights = layer.weights + begin * layer.in;
  const float* bias = layer.bias + begin;
  _tile_loadd(0, bias, 0);
  _tile_loadd(1, bias + kLanes, 0);
  _tile_loadd(2, bias, 0);
  _tile_loadd(3, bias + kLanes, 0);
  const int64_t wide = layer.in * static_cast<int64_t>(sizeof(Bf16));
  constexpr int64_t kPair = 2 * kHalfPanel * static_cast<int64_t>(sizeof(Bf16));
  for (int64_t k = 0; k < layer.in; k += kHalfPanel) {
    _tile_loadd(4, x + k, wide);
    _tile_loadd(5, x + kLanes * layer.in + k, wide);
    _tile_loadd(6, weights + k * kHalfPanel, kPair);
    _tile_loadd(7, weights + k * kHalfPanel + 2 * kLanes, kPair);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[kTall][kHalfPanel];
  _tile_stored(0, sums[0], sizeof sums[0]);
  _tile_stored(1, sums[0] + kLanes, sizeof sums[0]);
  _tile_stored(2, sums[kLanes], sizeof sums[0]);
  _tile_stored(3, sums[kLanes] + kLanes, sizeof sums[0]);
  const int64_t count = std::min(kHalfPanel, layer.out - begin);
  for (int64_t i = 0; i < rows; ++i) Keep(sums[i], count, y + i * stride + begin);
}

template <class Y>
TRAIND_TILES void AllPanels(const HalfPanels& layer, const Bf16* x, int64_t rows, int64_t stride,
                            Y* y) {
  const int64_t whole = rows / kTall * kTall, rest = rows - whole;
  std::vector<Bf16> last(static_cast<size_t>(rest > 0 ? kTall * layer.in : 0));
  std::copy_n(x + whole * layer.in, rest * layer.in, last.begin());
  const TileConfig config;
  _tile_loadconfig(&config);
  // A panel stays in the first cache while all rows are multiplied by it.
  for (int64_t begin = 0; begin < layer.out; begin += kHalfPanel) {
    for (int64_t row = 0; row < whole; row += kTall) {
      Panel(layer, x + row * layer.in, kTall, begin, stride, y + row * stride);
    }
    if (rest > 0) Panel(layer, last.data(), rest, begin, stride, y + whole * stride);
  }
  _tile_release();
}

}  // namespace

bool HasHalfTiles() {
  static const bool has = AskForTiles();
  return has;
}

void TilesRelu(const HalfPanels& layer, const Bf16* x, int64_t rows, Bf16* y) {
  AllPanels(layer, x, rows, HalfWidth(layer.out), y);
}

void Tiles(const HalfPanels& layer, const Bf16* x, int64_t rows, float* y) {
  AllPanels(layer, x, rows, layer.out, y);
}

#else

bool HasHalfTiles() { return false; }
void TilesRelu(const HalfPanels&, const Bf16*, int64_t, Bf16*) {}
void Tiles(const HalfPanels&, const Bf16*, int64_t, float*) {}

#endif

}  // namespace traind
