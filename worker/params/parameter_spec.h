// Describes a parameter without its values: the operation that owns it, its shape and its initial distribution.
//
// Trainers, parameter servers, checkpoints and state transfers all identify a parameter by (operation, name). An
// operation is an index into the model's topological order, so the identity does not depend on the plan. Immutable
// values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace medley::worker {

enum class Initializer {
  kZero,
  kOne,
  kUniform,        // U(-scale, scale)
  kXavierUniform,  // U(-a, a), a = sqrt(6 / (rows + columns)); Glorot and Bengio 2010
  kHeUniform,      // U(-a, a), a = sqrt(6 / rows); He et al. 2015
  kStored,         // sparse: those of stored_rows; else the owner of the parameter writes the values
};

// What an update does with it.
enum class ParameterRole {
  kTrained,
  kFrozen,     // nothing
  kStatistic,  // adds the "gradient", which is the change itself, such as that of a batch norm's running mean
};

// The initial rows of a sparse parameter with Initializer::kStored: float32, row after row, unaligned.
struct StoredRows {
  std::shared_ptr<const void> keeper;  // of the bytes
  const std::byte* bytes = nullptr;
  bool operator==(const StoredRows&) const { return true; }  // they do not identify a parameter
};

struct ParameterSpec {
  int operation = 0;
  std::string name;     // "weight", "bias" or "table"; unique within the operation
  int64_t rows = 0;     // dense weight: inputs; bias: 1; sparse table: rows of the table
  int64_t columns = 0;  // dense weight and bias: outputs; sparse table: the row's dimension
  bool sparse = false;  // read and updated by row; stored in a local table or on parameter servers
  Initializer initializer = Initializer::kZero;
  float scale = 0;      // used by kUniform
  int first_field = 0;  // sparse: a sample's ids [first_field, first_field + fields) are rows of the table
  int fields = 0;
  int drawn = 0;  // sparse: how many of these ids, the last ones, are drawn at random for each sample of the training
  ParameterRole role = ParameterRole::kTrained;
  std::vector<int64_t> shape;  // kStored: of the tensor, whose elements are rows x columns; else empty
  StoredRows stored_rows;
  // The operation that owns this parameter, of which this is a copy: several operations use it (tied weights). The
  // gradients of all copies are added (program::Kind::kShare), so their values stay equal. -1: it is no copy.
  int copy_of = -1;

  int64_t Size() const { return rows * columns; }
  bool operator==(const ParameterSpec&) const = default;
};

}  // namespace medley::worker
