// A data set in memory. It is read once from files and immutable afterwards.
//
// Stores two row-major matrices (int32 ids, float32 numerics) and the labels: a row's values are adjacent, because
// training reads whole rows in random order. Thread-safe after Load.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/read_progress.h"
#include "worker/data/transform.h"

namespace medley::worker {

struct LoadOptions {
  int64_t embedding_rows = 65536;    // categorical values are hashed into [0, embedding_rows)
  int threads = 1;                   // number of parser threads
  std::string root;                  // prefix for the paths of file:// URIs
  std::stop_token stop;              // ends the load with Cancelled
  std::function<void()> on_piece;    // called by the parser threads after each MiB of the file
  ReadProgress* progress = nullptr;  // which the load tells how far it is; may be null
};

class Dataset {
 public:
  // Reads all of `source`, which is spec.train, spec.test or that of spec.validation: a file, or the files that match a
  // pattern, in the order of their names; compressed with gzip or not. With a null `transform` the transform of numeric
  // columns is fitted on the rows read, without those for validation (row_split.h); otherwise `transform` is applied (a
  // test set uses its training set's). Errors: NotFound (file); InvalidArgument "path:line: ..." when more than
  // spec.max_bad_rows rows cannot be parsed; InvalidArgument for a set without rows, or with labels from which nothing
  // can be learnt (one class, one value, too many classes); Unimplemented for an unknown format. Arrays (idx, npy,
  // raw): see array_dataset.h; no numbers are standardised.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Load(const model::SourceSpec& source,
                                                             const model::DataSpec& spec, const Transform* transform,
                                                             const LoadOptions& options);

  // Makes a data set from values in memory (tests, profiler, benchmarks). Sizes must agree.
  static std::shared_ptr<const Dataset> FromBatch(Batch rows, Transform transform = {});

  int64_t rows() const { return rows_.samples; }
  int64_t bad_rows() const { return bad_rows_; }
  // A hash of all values that were read, in their order, before any transform: two processes with the same one have
  // read the same samples, whatever the files look like. Empty for FromBatch.
  const std::string& digest() const { return digest_; }
  const SampleShape& shape() const { return rows_.shape; }
  const Transform& transform() const { return transform_; }
  const Batch& all() const { return rows_; }
  // The rows that spec.validation.fraction puts aside, with the same transform; null without it. Its digest is empty:
  // that of the training data counts them.
  const std::shared_ptr<const Dataset>& validation() const { return validation_; }

  // Copies the rows `indices` in that order into `batch`, which is resized. Every index is in [0, rows).
  void Gather(std::span<const int64_t> indices, Batch& batch) const;

 private:
  Dataset() = default;
  static absl::StatusOr<std::shared_ptr<const Dataset>> LoadFromArrays(const model::SourceSpec& source,
                                                                       const model::DataSpec& spec,
                                                                       const Transform* transform,
                                                                       const LoadOptions& options);

  Batch rows_;
  Transform transform_;
  int64_t bad_rows_ = 0;
  std::string digest_;
  std::shared_ptr<const Dataset> validation_;
};

}  // namespace medley::worker
