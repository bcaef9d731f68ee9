// The rows of a block's tables in an open step, and the sums of their gradients, in the host's memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/aten/torch.h"
#include "worker/model/aligned_floats.h"
#include "worker/params/parameter_spec.h"

namespace medley::worker::aten {

class OpenTables {
 public:
  // Makes place for so many tables; keeps memory of earlier steps.
  void Resize(size_t tables) { tables_.resize(tables); }
  size_t size() const { return tables_.size(); }

  // Copies the rows of a table, and sets their gradients to zero.
  void Set(size_t table, std::span<const float> rows);
  // The rows as a matrix over this memory, as long as Set is not called. Nobody may write to them.
  at::Tensor Rows(size_t table, const worker::ParameterSpec& spec) const;
  // `gradient`: of all rows, in the host's memory.
  void AddGradient(size_t table, const worker::ParameterSpec& spec, const at::Tensor& gradient);
  std::span<const float> Gradients(size_t table) const;

 private:
  struct Table {
    worker::AlignedFloats rows, gradients;
    size_t floats = 0;
  };
  std::vector<Table> tables_;
};

}  // namespace medley::worker::aten
