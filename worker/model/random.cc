#include "worker/model/random.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace medley::worker {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0], product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

namespace {

// Calls visit(place, factor) for the places of a mask of this size.
template <typename Visit>
void ForEachFactor(const Draw& draw, double keep, size_t size, const Visit& visit) {
  constexpr double kRange = 4294967296.0;  // 2^32
  const auto limit = static_cast<uint64_t>(std::llround(keep * kRange));
  const auto scale = static_cast<float>(1 / keep);
  const std::array<uint32_t, 2> key = {static_cast<uint32_t>(draw.seed), static_cast<uint32_t>(draw.seed >> 32)};
  for (size_t i = 0; i < size; i += 4) {
    const auto numbers = Philox({static_cast<uint32_t>(i / 4), static_cast<uint32_t>(draw.sample),
                                 static_cast<uint32_t>(draw.step), static_cast<uint32_t>(draw.call)},
                                key);
    const size_t count = std::min<size_t>(4, size - i);
    for (size_t k = 0; k < count; ++k) visit(i + k, numbers[k] < limit ? scale : 0.0F);
  }
}

}  // namespace

void DropoutMask(const Draw& draw, double keep, std::span<float> mask) {
  ForEachFactor(draw, keep, mask.size(), [&](size_t i, float factor) { mask[i] = factor; });
}

void DropOut(const Draw& draw, double keep, std::span<float> values) {
  ForEachFactor(draw, keep, values.size(), [&](size_t i, float factor) { values[i] *= factor; });
}

}  // namespace medley::worker
