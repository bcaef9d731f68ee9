// When a key of an embedding table gets a row, and when it loses the row again (spec.training.embeddings).
//
// A *sighting* of a key is a step whose batch has the key, over all trainers, so it does not depend on the plan. A key
// with too few sightings has no row: it reads as its initial values, and gradients for it are dropped. That is the
// admission by frequency of DeepRec's counter filter and Paddle's count filter. Whether a key has lost its row
// follows from its last step and its sightings alone, so nothing has to look for such rows: their memory is used again
// when it is found, which no value depends on.
//
// Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace medley::worker {

// What is known of the use of a key. Without sightings nothing is.
struct RowUse {
  uint32_t sightings = 0;  // as of last_step
  uint32_t last_step = 0;  // of the last sighting
  bool operator==(const RowUse&) const = default;
};

struct RowLifetime {
  int64_t admit_after = 1;  // sightings, that of the present step included
  int64_t evict_after = 0;  // steps without a sighting; 0: never
  int64_t decay_steps = 0;  // sightings are halved in each step that is a multiple of it; 0: never

  bool Counts() const { return admit_after > 1 || evict_after > 0 || decay_steps > 0; }
  // Sightings in `step` >= use.last_step, before one in this step.
  uint32_t SightingsAt(RowUse use, int64_t step) const;
  // False: in `step` the key is one that was never seen.
  bool IsKnown(RowUse use, int64_t step) const;
  // The use of a key that is seen in `step`.
  RowUse Seen(RowUse use, int64_t step) const;

  bool operator==(const RowLifetime&) const = default;
};

// A use as floats behind those of a row, for files and messages. Their values have no meaning; they are copied only.
inline constexpr size_t kUseFloats = 2;
RowUse UseOf(std::span<const float, kUseFloats> floats);
void PutUse(RowUse use, std::span<float, kUseFloats> floats);

}  // namespace medley::worker
