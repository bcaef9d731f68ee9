// What a parameter is, apart from its values: which operation owns it, its shape, and how it
// starts.
//
// Trainers, parameter servers, checkpoints and transfers of state all name parameters by
// (operation, name); an operation is an index into the model's topological order, so the names do
// not depend on the plan. Immutable values.
#pragma once

#include <cstdint>
#include <string>

namespace medley::worker {

enum class Initializer {
  kZero,
  kOne,
  kUniform,        // U(-scale, scale)
  kXavierUniform,  // U(-a, a), a = sqrt(6 / (rows + columns)); Glorot and Bengio 2010
  kHeUniform,      // U(-a, a), a = sqrt(6 / rows); He et al. 2015
};

struct ParameterSpec {
  int operation = 0;
  std::string name;     // "weight", "bias" or "table"; unique within the operation
  int64_t rows = 0;     // dense weight: inputs; bias: 1; sparse table: rows of the table
  int64_t columns = 0;  // dense weight and bias: outputs; sparse table: the row's dimension
  bool sparse = false;  // touched by row: lives in a table here or on the parameter servers
  Initializer initializer = Initializer::kZero;
  float scale = 0;  // of kUniform

  int64_t Size() const { return rows * columns; }
  bool operator==(const ParameterSpec&) const = default;
};

}  // namespace medley::worker
