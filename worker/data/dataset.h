// A data set in memory, read once from files and immutable then.
//
// Rows are kept as two matrices (int32 ids, float32 numerics) and the labels: a row's values lie
// together because training reads whole rows in random order. Thread-safe after Load.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/transform.h"

namespace medley::worker {

struct LoadOptions {
  int64_t embedding_rows = 65536;  // categorical values are hashed into [0, embedding_rows)
  int threads = 1;                 // parsers
  std::string root;                // put before the paths of file:// URIs
  std::stop_token stop;            // Cancelled when requested
};

class Dataset {
 public:
  // Reads spec.train (or spec.test) whole. The transform of numeric columns is fitted on what is
  // read when `transform` is null, and taken from there otherwise (a test set takes its training
  // set's). Errors: NotFound (file), InvalidArgument "path:line: ..." once more than
  // spec.max_bad_rows rows are unreadable, InvalidArgument for a set without rows, Unimplemented
  // for a format that has no reader.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Load(const model::SourceSpec& source,
                                                             const model::DataSpec& spec, const Transform* transform,
                                                             const LoadOptions& options);

  // From values at hand (tests, profiler, benchmarks). Sizes must agree.
  static std::shared_ptr<const Dataset> FromBatch(Batch rows);

  int64_t rows() const { return rows_.samples; }
  int64_t bad_rows() const { return bad_rows_; }
  const SampleShape& shape() const { return rows_.shape; }
  const Transform& transform() const { return transform_; }
  const Batch& all() const { return rows_; }

  // Copies the rows named by `indices` into `batch` (resized), in that order. Every index in [0,
  // rows).
  void Gather(std::span<const int64_t> indices, Batch& batch) const;

 private:
  Dataset() = default;

  Batch rows_;
  Transform transform_;
  int64_t bad_rows_ = 0;
};

}  // namespace medley::worker
