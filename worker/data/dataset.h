// A data set. It is read once from files and immutable afterwards.
//
// Stores two row-major matrices (int32 ids, float32 numerics) and the labels: a row's values are adjacent, because
// training reads whole rows in random order. They are in memory, or, of large data, in a file (sample_file.h) that is
// mapped, or read ahead in the order of the training (sample_windows.h). Thread-safe after Load.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/load_options.h"
#include "worker/data/sample_file.h"
#include "worker/data/sample_order.h"
#include "worker/data/sample_windows.h"
#include "worker/data/transform.h"

namespace medley::worker {

class Dataset {
 public:
  // Reads all of `source`, which is spec.train, spec.test or that of spec.validation: a file, or the files that match a
  // pattern, in the order of their names; compressed with gzip or not. With a null `transform` the transform of numeric
  // columns is fitted on the rows read, without those for validation (row_split.h); otherwise `transform` is applied (a
  // test set uses its training set's). Errors: NotFound (file); InvalidArgument "path:line: ..." when more than
  // spec.max_bad_rows rows cannot be parsed; InvalidArgument for a set without rows, or with labels from which nothing
  // can be learnt (one class, one value, too many classes); FailedPrecondition when a file is changed meanwhile;
  // Unimplemented for an unknown format. Arrays (idx, npy, raw): see array_dataset.h; no numbers are standardised.
  //
  // Samples that take more than options.place.most_in_memory are in a file of options.place.folder, which
  // processes that read the same files in the same way share: one of them writes it while the others wait. Where it
  // cannot be written they are in memory, which `say` says.
  static absl::StatusOr<std::shared_ptr<const Dataset>> Load(const model::SourceSpec& source,
                                                             const model::DataSpec& spec, const Transform* transform,
                                                             const LoadOptions& options);

  // Makes a data set from values in memory (tests, profiler, benchmarks). Sizes must agree.
  static std::shared_ptr<const Dataset> FromBatch(Batch rows, Transform transform = {});
  // The training data of a file of samples. `threads` > 0 read it ahead.
  static std::shared_ptr<const Dataset> FromFile(std::shared_ptr<const SampleFile> file, int threads);

  int64_t rows() const { return view_.samples; }
  int64_t bad_rows() const { return bad_rows_; }
  // A hash of all values that were read, in their order, before any transform: two processes with the same one have
  // read the same samples, whatever the files look like. Empty for FromBatch.
  const std::string& digest() const { return digest_; }
  const SampleShape& shape() const { return shape_; }
  const Transform& transform() const { return transform_; }
  // All rows, as long as the data set exists.
  const BatchView& view() const { return view_; }
  Batch all() const;  // a copy
  bool mapped() const { return file_ != nullptr; }
  // The rows that spec.validation.fraction puts aside, with the same transform; null without it. Its digest is empty:
  // that of the training data counts them.
  const std::shared_ptr<const Dataset>& validation() const { return validation_; }

  // Copies the rows `indices` in that order into `batch`, which is resized; of the lists in `parts` (RowParts), others
  // have any values. Every index is in [0, rows).
  void Gather(std::span<const int64_t> indices, Batch& batch, unsigned parts = kAllParts) const;
  // The same of the rows at `positions` of an order of these rows. Rows in a file whose order has windows are read
  // ahead. Errors: those of SampleWindows::Gather.
  absl::Status GatherAt(const SampleOrder& order, std::span<const int64_t> positions, unsigned parts,
                        const std::stop_token& stop, Batch& batch) const;
  // A block of the file could not be read: the data set must be loaded again.
  bool damaged() const { return windows_ != nullptr && windows_->damaged(); }
  // Bytes of the windows that are in memory; 0 where none are.
  int64_t window_bytes() const { return windows_ != nullptr ? windows_->kept_bytes() : 0; }

 private:
  Dataset() = default;
  static std::shared_ptr<Dataset> Make(Batch rows, Transform transform);
  static std::shared_ptr<Dataset> Make(std::shared_ptr<const SampleFile> file, RowSet set);
  void ReadAhead(int threads);

  SampleShape shape_;
  Batch rows_;                              // none when the rows are in the file
  std::shared_ptr<const SampleFile> file_;  // may be null
  std::shared_ptr<SampleWindows> windows_;  // of the training data in the file; null without a file
  BatchView view_;
  Transform transform_;
  int64_t bad_rows_ = 0;
  std::string digest_;
  std::shared_ptr<const Dataset> validation_;
};

}  // namespace medley::worker
