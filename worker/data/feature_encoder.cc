#include "worker/data/feature_encoder.h"

#include <string>
#include <utility>

#include "worker/data/row_parser.h"

namespace medley::worker {

FeatureEncoder::FeatureEncoder(Transform transform, const model::SchemaSpec& schema, int64_t embedding_rows)
    : transform_(std::move(transform)),
      categorical_(schema.categorical.size()),
      standardises_labels_(schema.task == model::Task::kRegression) {
  if (schema.numeric_buckets == 0) return;
  for (size_t c = 0; c < transform_.columns.size(); ++c) {
    std::vector<int32_t>& ids = bucket_ids_.emplace_back();
    for (size_t bucket = 0; bucket < transform_.columns[c].edges.size() + 2; ++bucket) {
      ids.push_back(HashedId(std::to_string(bucket), static_cast<int>(categorical_ + c), embedding_rows));
    }
  }
}

void FeatureEncoder::Encode(Batch& rows) const {
  const size_t width = static_cast<size_t>(rows.shape.numerics);
  const size_t fields = static_cast<size_t>(rows.shape.fields);
  for (size_t c = 0; c < width; ++c) {
    const NumericTransform& column = transform_.columns[c];
    for (size_t i = 0; i < static_cast<size_t>(rows.samples); ++i) {
      float& x = rows.numerics[i * width + c];
      if (!bucket_ids_.empty()) {
        rows.ids[i * fields + categorical_ + c] = bucket_ids_[c][static_cast<size_t>(column.Bucket(x))];
      }
      x = column.Standardize(x);
    }
  }
  if (!standardises_labels_) return;
  const double mean = transform_.label.mean;
  const double deviation = transform_.label.deviation;
  for (float& label : rows.labels) label = static_cast<float>((static_cast<double>(label) - mean) / deviation);
}

}  // namespace medley::worker
