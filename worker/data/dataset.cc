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
    return loaded.file != nullptr ? Make(loaded.file, set)
                                  : Make(std::move(loaded.rows[static_cast<size_t>(set)]), loaded.facts.transform);
  };
  const std::shared_ptr<Dataset> data = make(RowSet::kTraining);
  if (loaded.file != nullptr) data->ReadAhead(options.threads);
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

std::shared_ptr<Dataset> Dataset::Make(std::shared_ptr<const SampleFile> file, RowSet set) {
  std::shared_ptr<Dataset> data(new Dataset());
  data->shape_ = file->shape();
  data->transform_ = file->facts().transform;
  data->view_ = file->view(set);
  data->file_ = std::move(file);
  return data;
}

void Dataset::ReadAhead(int threads) { windows_ = std::make_shared<SampleWindows>(file_, RowSet::kTraining, threads); }

std::shared_ptr<const Dataset> Dataset::FromFile(std::shared_ptr<const SampleFile> file, int threads) {
  const std::shared_ptr<Dataset> data = Make(std::move(file), RowSet::kTraining);
  data->ReadAhead(threads);
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

absl::Status Dataset::GatherAt(const SampleOrder& order, std::span<const int64_t> positions, unsigned parts,
                               const std::stop_token& stop, Batch& batch) const {
  MEDLEY_CHECK(order.rows() == rows(), "the order is of other data");
  if (windows_ != nullptr && windows_->Serves(order)) return windows_->Gather(order, positions, parts, stop, batch);
  std::vector<int64_t> indices;
  indices.reserve(positions.size());
  for (const int64_t position : positions) indices.push_back(order(position));
  Gather(indices, batch, parts);
  return absl::OkStatus();
}

void Dataset::Gather(std::span<const int64_t> indices, Batch& batch, unsigned parts) const {
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
    if (parts & kIds) std::copy_n(view_.ids.data() + row * fields, fields, batch.ids.data() + i * fields);
    if (parts & kNumerics) std::copy_n(view_.numerics.data() + row * width, width, batch.numerics.data() + i * width);
    if (parts & kLabels) std::copy_n(view_.labels.data() + row * labels, labels, batch.labels.data() + i * labels);
    if ((parts & kWeights) && !batch.weights.empty()) batch.weights[i] = view_.weights[row];
  }
}

}  // namespace medley::worker
