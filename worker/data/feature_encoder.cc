#include "worker/data/feature_encoder.h"

#include <string>
#include <utility>

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

void FeatureEncoder::Encode(ParsedRows& from, Batch& to) const {
  const size_t width = static_cast<size_t>(to.shape.numerics);
  const size_t fields = static_cast<size_t>(to.shape.fields);
  const size_t first = to.numerics.size();
  to.numerics.resize(first + from.numerics.size());
  for (size_t c = 0; c < width; ++c) {
    const NumericTransform& column = transform_.columns[c];
    for (size_t i = 0; i < static_cast<size_t>(from.samples); ++i) {
      double x = from.numerics[i * width + c];
      if (transform_.single_precision) x = static_cast<double>(static_cast<float>(x));
      if (!bucket_ids_.empty()) {
        from.ids[i * fields + categorical_ + c] = bucket_ids_[c][static_cast<size_t>(column.Bucket(x))];
      }
      to.numerics[first + i * width + c] = column.Standardize(x);
    }
  }
  to.ids.insert(to.ids.end(), from.ids.begin(), from.ids.end());
  to.labels.reserve(to.labels.size() + from.labels.size());
  const LabelTransform& label = transform_.label;
  for (const double value : from.labels) {
    to.labels.push_back(standardises_labels_ ? label.Standardize(value) : static_cast<float>(value));
  }
  for (const double weight : from.weights) to.weights.push_back(static_cast<float>(weight / transform_.weight_mean));
  to.samples += from.samples;
}

}  // namespace medley::worker
