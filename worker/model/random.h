// Random numbers that do not depend on where a sample is trained: a function of seed, call, step, sample and place.
//
// Philox 4x32 with 10 rounds (Salmon, Moraes, Dror, Shaw 2011: "Parallel random numbers: as easy as 1, 2, 3"). Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace medley::worker {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

struct Draw {
  uint64_t seed = 0;
  int32_t call = 0;    // of the program: the node; of a built-in model: the operation
  int64_t step = 0;    // of the job; its low 32 bits count
  int64_t sample = 0;  // of the step's whole batch, 0 for its first; its low 32 bits count
};

// Fills `mask` with 1 / keep at a place with probability `keep` in (0, 1], else with 0.
void DropoutMask(const Draw& draw, double keep, std::span<float> mask);
// Multiplies `values` by that mask.
void DropOut(const Draw& draw, double keep, std::span<float> values);

}  // namespace medley::worker
