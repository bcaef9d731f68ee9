// Initial values of parameters: a pure function of (seed, operation, parameter, row, column).
//
// Counter-based (SplitMix64 finaliser over the coordinates), so any process can make any row on its
// own and whatever plan is in force the model starts from the same numbers. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "worker/params/parameter_spec.h"

namespace medley::worker {

// Fills `row` (spec.columns floats) with the initial values of row `index`, 0 <= index < spec.rows.
void InitializeRow(const ParameterSpec& spec, uint64_t seed, int64_t index, std::span<float> row);

// All rows, row-major: spec.Size() floats.
void Initialize(const ParameterSpec& spec, uint64_t seed, std::span<float> values);

}  // namespace medley::worker
