#include "tests/bench/machine_limits.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "common/base/processor_time.h"
#include "worker/params/update_kernels.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace medley::worker {
namespace {

constexpr int kTries = 5;
constexpr double kSeconds = 0.05;  // of a try
constexpr int64_t kTurns = 100'000;
constexpr size_t kSums = 16;  // that do not depend on each other, so that the latency of an instruction does not count

// Each computes kTurns x kSums products, and returns a sum that depends on all of them.
#if defined(__x86_64__)
__attribute__((target("avx512f"))) float Products512(float factor) {
  __m512 sums[kSums];  // NOLINT: std::array ignores the alignment of its elements
  for (__m512& sum : sums) sum = _mm512_set1_ps(factor);
  const __m512 by = _mm512_set1_ps(0.999F);
  for (int64_t turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, by, by);
  }
  float all = 0;
  for (const __m512& sum : sums) {
    alignas(64) std::array<float, 16> values;
    _mm512_store_ps(values.data(), sum);
    for (const float value : values) all += value;
  }
  return all;
}

// 8 sums: with more, registers are saved to memory.
__attribute__((target("avx2,fma"))) float Products256(float factor) {
  __m256 sums[kSums / 2];  // NOLINT: as above
  for (__m256& sum : sums) sum = _mm256_set1_ps(factor);
  const __m256 by = _mm256_set1_ps(0.999F);
  for (int64_t turn = 0; turn < 2 * kTurns; ++turn) {
#pragma GCC unroll 8
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, by, by);
  }
  float all = 0;
  for (const __m256& sum : sums) {
    alignas(32) std::array<float, 8> values;
    _mm256_store_ps(values.data(), sum);
    for (const float value : values) all += value;
  }
  return all;
}
#endif

// Four numbers an instruction, as every 64-bit processor has.
float ProductsBaseline(float factor) {
  using Four = float __attribute__((vector_size(16)));
  std::array<Four, kSums / 2> sums;
  sums.fill(Four{factor, factor, factor, factor});
  const Four by = {0.999F, 0.999F, 0.999F, 0.999F};
  for (int64_t turn = 0; turn < 2 * kTurns; ++turn) {
#pragma GCC unroll 8
    for (Four& sum : sums) sum = sum * by + by;
  }
  float all = 0;
  for (const Four& sum : sums) all += sum[0] + sum[1] + sum[2] + sum[3];
  return all;
}

struct Peak {
  float (*products)(float) = ProductsBaseline;
  double width = 4;
};

Peak PeakOfThisProcessor() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {Products512, 16};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {Products256, 8};
#endif
  return {};
}

}  // namespace

double MostFlops() {
  const Peak peak = PeakOfThisProcessor();
  volatile float kept = 0;  // so that the work is done
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double start = base::ProcessorSeconds();
    double flops = 0, spent = 0;
    do {
      kept = kept + peak.products(1.0F + 1e-6F * static_cast<float>(attempt));
      flops += 2 * peak.width * static_cast<double>(kSums) * static_cast<double>(kTurns);
      spent = base::ProcessorSeconds() - start;
    } while (spent < kSeconds);
    best = std::max(best, flops / spent);
  }
  return best;
}

double MostBytes(size_t bytes) {
  const size_t floats = std::max<size_t>(1024, bytes / (2 * sizeof(float)));
  std::vector<float> to(floats, 1), from(floats, 2);
  const AddKernel add = AddKernelOf(BestInstructions());
  double best = 0;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double start = base::ProcessorSeconds();
    double moved = 0, spent = 0;
    do {
      add(to.data(), from.data(), floats);
      moved += 3 * sizeof(float) * static_cast<double>(floats);
      spent = base::ProcessorSeconds() - start;
    } while (spent < kSeconds);
    best = std::max(best, moved / spent);
  }
  return best;
}

}  // namespace medley::worker
