#include "worker/aten/open_tables.h"

#include <algorithm>

namespace medley::worker::aten {
namespace {

at::Tensor Matrix(std::span<float> values, const worker::ParameterSpec& spec) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size()) / spec.columns, spec.columns},
                       at::TensorOptions().dtype(at::kFloat));
}

}  // namespace

void OpenTables::Set(size_t table, std::span<const float> rows) {
  Table& open = tables_.at(table);
  open.floats = rows.size();
  open.rows.Grow(rows.size());
  open.gradients.Grow(rows.size());
  std::ranges::copy(rows, open.rows.First(rows.size()).begin());
  std::ranges::fill(open.gradients.First(rows.size()), 0.0F);
}

at::Tensor OpenTables::Rows(size_t table, const worker::ParameterSpec& spec) const {
  const Table& open = tables_.at(table);
  return Matrix(open.rows.First(open.floats), spec);
}

void OpenTables::AddGradient(size_t table, const worker::ParameterSpec& spec, const at::Tensor& gradient) {
  const Table& open = tables_.at(table);
  Matrix(open.gradients.First(open.floats), spec).add_(gradient);
}

std::span<const float> OpenTables::Gradients(size_t table) const {
  const Table& open = tables_.at(table);
  return open.gradients.First(open.floats);
}

}  // namespace medley::worker::aten
