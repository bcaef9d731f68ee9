// Reads samples from files of arrays: one file for each input of the model, and one for the labels. In bounded memory.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/model/data_spec.h"
#include "worker/data/batch.h"
#include "worker/data/read_progress.h"

namespace medley::worker {

struct ArrayOptions {
  std::string root;  // prefix for the paths of file:// URIs
  std::stop_token stop;
  std::function<void()> on_piece;    // called after each piece of about 1 MiB; may be empty
  ReadProgress* progress = nullptr;  // may be null
  std::vector<std::string> classes;  // of the training data, for a test set; empty: those of the schema, if any
  bool test = false;                 // all labels may be equal
};

// The label of a token that has no class, such as padding: it counts for no loss and no metric. For kMultiClass with
// several labels a sample, a class for each token.
inline constexpr float kNoLabel = -100;

// What the labels say of a data set, before its inputs are read.
struct ArrayScan {
  int64_t samples = 0;
  std::vector<std::string> classes;  // kMultiClass: "0", "1", ... unless they were given
};

// Reads the labels, or without labels the first input, which it counts. Errors: those of ArrayReader; InvalidArgument
// for no samples, for a label that the task does not have, and for labels from which nothing can be learnt (all are
// equal), unless it is a test set; Cancelled.
absl::StatusOr<ArrayScan> ScanArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                     const ArrayOptions& options);

// Calls `use` with the samples in pieces of some MiB, in their order, encoded: ids and numerics are what the model
// takes. `use` may change a piece. Returns the number of samples. Errors: those of ArrayReader and of `use`;
// InvalidArgument for files with different numbers of samples, or none; for an integer input that is not in [0, 2^31),
// a number that is not finite, and a label that the task does not have; Cancelled.
absl::StatusOr<int64_t> ReadArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                   const ArrayOptions& options, absl::FunctionRef<absl::Status(Batch& piece)> use);

// All files of the inputs, in the order of these, and then those of the labels. Errors: those of FindFiles.
absl::StatusOr<std::vector<std::string>> ArrayPaths(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                                    const std::string& root);

// How many samples the files have at least, by their headers and lengths. Errors: those of ArrayReader for the headers.
absl::StatusOr<int64_t> CountArraySamples(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                          const std::string& root);

// Checks the headers of the inputs, and all labels. Reads no inputs. Errors: as for ScanArrays.
absl::Status CheckArrays(const model::SourceSpec& source, const model::SchemaSpec& schema, const ArrayOptions& options);

}  // namespace medley::worker
