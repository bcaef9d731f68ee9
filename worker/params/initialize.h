// Initial values of parameters: a pure function of (seed, operation, parameter, row, column), or stored ones.
//
// Counter-based (SplitMix64 finaliser over the coordinates), so any process can compute any row without the others, and
// the model starts from the same values under every plan. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "worker/params/parameter_spec.h"

namespace medley::worker {

// Fills `row` (spec.columns floats) with the initial values of row `index`, 0 <= index < spec.rows.
void InitializeRow(const ParameterSpec& spec, uint64_t seed, int64_t index, std::span<float> row);

// Fills `values` (spec.Size() floats, row-major) with the initial values of all rows.
void Initialize(const ParameterSpec& spec, uint64_t seed, std::span<float> values);

}  // namespace medley::worker
