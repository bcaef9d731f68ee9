// Turns parsed rows into what layers take: standardises the numbers and the labels of Task::kRegression, and sets the
// ids of bucketed columns, by the transform that was fitted on the training data. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/row_parser.h"
#include "worker/data/transform.h"

namespace medley::worker {

class FeatureEncoder {
 public:
  // `transform` has a column for each of schema.numeric.
  FeatureEncoder(Transform transform, const model::SchemaSpec& schema, int64_t embedding_rows);

  // Appends to `to` the rows of `from`, whose ids of bucketed columns it sets.
  void Encode(ParsedRows& from, Batch& to) const;

 private:
  const Transform transform_;
  const size_t categorical_;
  const bool standardises_labels_;
  std::vector<std::vector<int32_t>> bucket_ids_;  // by column and bucket; empty: columns are not bucketed
};

}  // namespace medley::worker
