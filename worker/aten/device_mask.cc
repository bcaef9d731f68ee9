#include "worker/aten/device_mask.h"

#include <array>
#include <cmath>
#include <utility>

namespace medley::worker::aten {
namespace {

using at::Tensor;

constexpr int64_t kLow = 0xFFFFFFFF;

// Whole numbers of 32 bits in tensors of 64; products wrap around, as those of uint64_t do.
Tensor High(const Tensor& product) { return product.bitwise_right_shift(32).bitwise_and_(kLow); }
Tensor Low(const Tensor& product) { return product.bitwise_and(kLow); }

}  // namespace

void DrawCounters::Set(int64_t step, int64_t first_sample, const at::TensorOptions& place) {
  const at::AutoGradMode none(false);
  for (auto [to, number] : {std::pair(&step_, step), std::pair(&first_sample_, first_sample)}) {
    if (!to->defined()) *to = at::empty({}, place.dtype(at::kLong));
    to->fill_(number & kLow);
  }
}

Tensor MasksOnDevice(const Draw& first, double keep, int64_t rows, int64_t columns, const at::TensorOptions& options,
                     const Tensor& step, const Tensor& sample) {
  constexpr int kRounds = 10;
  constexpr int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  const at::AutoGradMode none(false);
  const at::TensorOptions whole = options.dtype(at::kLong).requires_grad(false);
  const int64_t quads = (columns + 3) / 4;
  const auto low = [](int64_t number) { return static_cast<int64_t>(static_cast<uint32_t>(number)); };
  Tensor samples = at::arange(rows, whole);
  sample.defined() ? samples.add_(sample) : samples.add_(low(first.sample));
  const Tensor steps =
      step.defined() ? step.view({1, 1}).expand({rows, quads}) : at::full({rows, quads}, low(first.step), whole);
  // Philox 4x32 of all counters at once: {quad, sample, step, call}.
  std::array<Tensor, 4> counter = {at::arange(quads, whole).view({1, quads}).expand({rows, quads}),
                                   samples.bitwise_and_(kLow).view({rows, 1}).expand({rows, quads}), steps,
                                   at::full({rows, quads}, low(first.call), whole)};
  auto key0 = static_cast<uint32_t>(first.seed), key1 = static_cast<uint32_t>(first.seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const Tensor product0 = counter[0].mul(kMultiplier0), product1 = counter[2].mul(kMultiplier1);
    counter = {High(product1).bitwise_xor_(counter[1]).bitwise_xor_(static_cast<int64_t>(key0)), Low(product1),
               High(product0).bitwise_xor_(counter[3]).bitwise_xor_(static_cast<int64_t>(key1)), Low(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  constexpr double kRange = 4294967296.0;  // 2^32
  const auto limit = static_cast<int64_t>(std::llround(keep * kRange));
  const Tensor numbers = at::stack({counter[0], counter[1], counter[2], counter[3]}, 2).view({rows, quads * 4});
  return numbers.narrow(1, 0, columns).lt(limit).to(at::kFloat).mul_(static_cast<float>(1 / keep));
}

}  // namespace medley::worker::aten
