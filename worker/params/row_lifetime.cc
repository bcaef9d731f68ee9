#include "worker/params/row_lifetime.h"

#include <bit>

namespace medley::worker {

uint32_t RowLifetime::SightingsAt(RowUse use, int64_t step) const {
  if (decay_steps <= 0) return use.sightings;
  const int64_t halvings = step / decay_steps - int64_t{use.last_step} / decay_steps;
  return halvings >= 32 ? 0 : halvings <= 0 ? use.sightings : use.sightings >> halvings;
}

bool RowLifetime::IsKnown(RowUse use, int64_t step) const {
  if (evict_after > 0 && step - int64_t{use.last_step} > evict_after) return false;
  return SightingsAt(use, step) > 0;
}

RowUse RowLifetime::Seen(RowUse use, int64_t step) const {
  const uint32_t before = IsKnown(use, step) ? SightingsAt(use, step) : 0;
  return {before == UINT32_MAX ? before : before + 1, static_cast<uint32_t>(step)};
}

RowUse UseOf(std::span<const float, kUseFloats> floats) {
  return {std::bit_cast<uint32_t>(floats[0]), std::bit_cast<uint32_t>(floats[1])};
}

void PutUse(RowUse use, std::span<float, kUseFloats> floats) {
  floats[0] = std::bit_cast<float>(use.sightings);
  floats[1] = std::bit_cast<float>(use.last_step);
}

}  // namespace medley::worker
