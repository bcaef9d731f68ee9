#include "worker/data/dataset.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/data/array_load.h"
#include "worker/data/table_load.h"

namespace medley::worker {

absl::StatusOr<std::shared_ptr<const Dataset>> Dataset::Load(const model::SourceSpec& source,
                                                             const model::DataSpec& spec, const Transform* transform,
                                                             const LoadOptions& options) {
  MEDLEY_ASSIGN_OR_RETURN(LoadedSamples loaded, source.arrays() ? LoadArrays(source, spec, transform, options)
                                                                : LoadTable(source, spec, transform, options));
  const auto make = [&](RowSet set) {
    std::shared_ptr<Dataset> data(new Dataset());
    Batch& rows = loaded.rows[static_cast<size_t>(set)];
    data->shape_ = loaded.file != nullptr ? loaded.file->shape() : rows.shape;
    data->transform_ = loaded.facts.transform;
    data->rows_ = std::move(rows);
    data->file_ = loaded.file;
    data->view_ = loaded.file != nullptr ? loaded.file->view(set) : data->rows_.View(0, data->rows_.samples);
    return data;
  };
  const std::shared_ptr<Dataset> data = make(RowSet::kTraining);
  data->bad_rows_ = loaded.facts.bad_rows;
  data->digest_ = loaded.facts.digest;
  if (transform == nullptr && spec.validation && spec.validation->fraction > 0)
    data->validation_ = make(RowSet::kAside);
  return data;
}

std::shared_ptr<Dataset> Dataset::Make(Batch rows, Transform transform) {
  std::shared_ptr<Dataset> data(new Dataset());
  data->rows_ = std::move(rows);
  data->shape_ = data->rows_.shape;
  data->view_ = data->rows_.View(0, data->rows_.samples);
  data->transform_ = std::move(transform);
  return data;
}

std::shared_ptr<const Dataset> Dataset::FromBatch(Batch rows, Transform transform) {
  return Make(std::move(rows), std::move(transform));
}

Batch Dataset::all() const {
  return {.shape = shape_,
          .samples = view_.samples,
          .ids = {view_.ids.begin(), view_.ids.end()},
          .numerics = {view_.numerics.begin(), view_.numerics.end()},
          .labels = {view_.labels.begin(), view_.labels.end()},
          .weights = {view_.weights.begin(), view_.weights.end()}};
}

void Dataset::Gather(std::span<const int64_t> indices, Batch& batch) const {
  const size_t fields = static_cast<size_t>(shape_.fields);
  const size_t width = static_cast<size_t>(shape_.numerics);
  const size_t labels = static_cast<size_t>(shape_.labels);
  batch.shape = shape_;
  batch.samples = static_cast<int>(indices.size());
  batch.ids.resize(indices.size() * fields);
  batch.numerics.resize(indices.size() * width);
  batch.labels.resize(indices.size() * labels);
  batch.weights.resize(view_.weights.empty() ? 0 : indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t row = static_cast<size_t>(indices[i]);
    std::copy_n(view_.ids.data() + row * fields, fields, batch.ids.data() + i * fields);
    std::copy_n(view_.numerics.data() + row * width, width, batch.numerics.data() + i * width);
    std::copy_n(view_.labels.data() + row * labels, labels, batch.labels.data() + i * labels);
    if (!batch.weights.empty()) batch.weights[i] = view_.weights[row];
  }
}

}  // namespace medley::worker
