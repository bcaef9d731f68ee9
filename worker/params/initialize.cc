#include "worker/params/initialize.h"

#include <cmath>
#include <cstring>

#include "common/base/hash.h"
#include "common/base/rng.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

// Half the width of the uniform distribution.
double Amplitude(const ParameterSpec& spec) {
  const double rows = static_cast<double>(spec.rows);
  const double columns = static_cast<double>(spec.columns);
  switch (spec.initializer) {
    case Initializer::kUniform:
      return static_cast<double>(spec.scale);
    case Initializer::kXavierUniform:
      return std::sqrt(6.0 / (rows + columns));
    case Initializer::kHeUniform:
      return std::sqrt(6.0 / rows);
    case Initializer::kZero:
    case Initializer::kStored:
    case Initializer::kOne:
      break;
  }
  return 0;
}

uint64_t ParameterKey(const ParameterSpec& spec, uint64_t seed) {
  return base::Mix64(base::Mix64(seed ^ 0x6d65646c65790001ULL) + static_cast<uint64_t>(spec.operation)) ^
         base::Hash64(spec.name);
}

// Maps the top 24 bits of a 64-bit number to [0, 1).
double Unit(uint64_t bits) { return static_cast<double>(bits >> 40) * 0x1.0p-24; }

void FillRow(const ParameterSpec& spec, uint64_t key, double amplitude, int64_t index, std::span<float> row) {
  if (spec.initializer == Initializer::kZero || spec.initializer == Initializer::kOne) {
    const float value = spec.initializer == Initializer::kOne ? 1.0F : 0.0F;
    for (float& x : row) x = value;
    return;
  }
  if (spec.stored_rows.bytes != nullptr) {
    std::memcpy(row.data(), spec.stored_rows.bytes + static_cast<size_t>(index) * row.size_bytes(), row.size_bytes());
    return;
  }
  const uint64_t row_key = base::Mix64(key + static_cast<uint64_t>(index));
  for (size_t column = 0; column < row.size(); ++column) {
    row[column] = static_cast<float>(amplitude * (2 * Unit(base::Mix64(row_key ^ column)) - 1));
  }
}

}  // namespace

void InitializeRow(const ParameterSpec& spec, uint64_t seed, int64_t index, std::span<float> row) {
  MEDLEY_CHECK(std::ssize(row) == spec.columns && index >= 0 && index < spec.rows, spec.name);
  FillRow(spec, ParameterKey(spec, seed), Amplitude(spec), index, row);
}

void Initialize(const ParameterSpec& spec, uint64_t seed, std::span<float> values) {
  MEDLEY_CHECK(std::ssize(values) == spec.Size(), spec.name);
  const uint64_t key = ParameterKey(spec, seed);
  const double amplitude = Amplitude(spec);
  const size_t columns = static_cast<size_t>(spec.columns);
  for (int64_t row = 0; row < spec.rows; ++row) {
    FillRow(spec, key, amplitude, row, values.subspan(static_cast<size_t>(row) * columns, columns));
  }
}

}  // namespace medley::worker
