// File names and manifest of a checkpoint on disk. ROOT/step-N/ holds the data files and manifest.json, which is
// written last: a folder without a manifest is not a checkpoint.
//
// Immutable values and pure functions, thread-safe. The binary format of data files is in format.h.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace medley::worker {

// A data file of a checkpoint. `name` is relative to the folder; `crc32` is zlib's, over the whole file.
struct CheckpointFileEntry {
  std::string name;
  int64_t bytes = 0;
  uint32_t crc32 = 0;
  bool operator==(const CheckpointFileEntry&) const = default;
};

// The content of manifest.json. The ledger (rows, data_epochs, batch_size) and `step` say which samples the state
// contains.
struct CheckpointManifest {
  std::string job_uid;
  std::string model_fingerprint;
  int64_t generation = 0;  // the generation that wrote it
  int64_t step = 0;
  int64_t rows = 0;
  int32_t data_epochs = 0;
  int32_t batch_size = 0;
  std::string folder;  // "step-N", relative to the root
  std::vector<CheckpointFileEntry> files;
  bool operator==(const CheckpointManifest&) const = default;
};

// Returns for example "step-00000042".
std::string CheckpointFolder(int64_t step);
// The inverse of CheckpointFolder; InvalidArgument for any other name.
absl::StatusOr<int64_t> StepOfFolder(std::string_view folder);

// "dense-e3-s1-0.mck": file of stage 1 written by generation 3; `part` tells several apart.
std::string DenseFileName(int64_t generation, int stage, int part = 0);
// "rows-e3-2.mck": file of shard 2.
std::string RowsFileName(int64_t generation, int shard);

std::string ToJson(const CheckpointManifest& manifest);
// Errors: DataLoss naming the field.
absl::StatusOr<CheckpointManifest> ParseManifest(std::string_view json);

}  // namespace medley::worker
