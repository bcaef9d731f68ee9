// Reads samples from files of arrays: one file for each input of the model, and one for the labels.
#pragma once

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

struct ArraySamples {
  Batch rows;                        // encoded: ids and numerics are what the model takes
  std::vector<std::string> classes;  // kMultiClass: "0", "1", ... unless they were given
};

// Errors: those of ReadArray; InvalidArgument for files with different numbers of samples, or none; for an integer
// input that is not in [0, 2^31), a number that is not finite, and a label that the task does not have; for labels from
// which nothing can be learnt (all are equal), unless it is a test set; ResourceExhausted; Cancelled.
absl::StatusOr<ArraySamples> LoadArrays(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                        const ArrayOptions& options);

// How many samples the files have at least, by their headers and lengths. Errors: those of ReadArray for the headers.
absl::StatusOr<int64_t> CountArraySamples(const model::SourceSpec& source, const model::SchemaSpec& schema,
                                          const std::string& root);

// Checks the headers of the inputs, and all labels. Reads no inputs. Errors: as for LoadArrays.
absl::Status CheckArrays(const model::SourceSpec& source, const model::SchemaSpec& schema, const ArrayOptions& options);

}  // namespace medley::worker
