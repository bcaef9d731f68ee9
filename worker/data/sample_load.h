// Puts the samples of a data source into memory, or into a file of samples (sample_file.h) which processes of a machine
// share: what reading a table and reading arrays have in common.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/batch.h"
#include "worker/data/load_options.h"
#include "worker/data/sample_file.h"
#include "worker/data/sample_key.h"

namespace medley::worker {

struct LoadedSamples {
  SampleFacts facts;
  std::array<Batch, 2> rows;               // by RowSet; none when they are in the file
  std::shared_ptr<const SampleFile> file;  // null: the samples are in memory
};

// Where samples are written. Lives during one load; not thread-safe.
class SampleTarget {
 public:
  SampleTarget(const SamplePlace& place, std::string key, const std::vector<FileIdentity>& files)
      : place_(place), key_(std::move(key)), files_(files) {}

  // Errors: as OfDisk.
  absl::Status Begin();
  const std::filesystem::path& folder() const { return place_.folder; }
  // Remembers an error of the file of samples, after which the samples can still be read into memory.
  absl::Status OfDisk(absl::Status status);
  const absl::Status& disk() const { return disk_; }
  absl::StatusOr<std::unique_ptr<SampleFileWriter>> Create(const SampleCounts& counts, const SampleFacts& facts);
  // All samples are written. The file is given its name if it can be shared.
  absl::StatusOr<LoadedSamples> Finish(SampleFileWriter& writer, SampleFacts facts);

 private:
  bool MayShare() const;

  const SamplePlace& place_;
  const std::string key_;
  const std::vector<FileIdentity>& files_;
  int64_t began_at_ = 0;  // ns since 1970, by the clock of the file system
  absl::Status disk_;
};

struct SampleSource {
  std::string name;                // of the data, for messages
  std::vector<std::string> paths;  // all files that are read
};

// Calls `read` with a target, or with null where the samples are to be in memory, unless another process has kept the
// samples. It may be called again after an error of the target's disk. Errors: those of `read`; FailedPrecondition when
// a file was changed meanwhile; OutOfRange when the samples do not fit into memory and there is no disk; Cancelled.
using ReadSamples = absl::FunctionRef<absl::StatusOr<LoadedSamples>(SampleTarget* target, const LoadOptions& options)>;
absl::StatusOr<LoadedSamples> LoadSamples(const SampleSource& samples, const model::SourceSpec& source,
                                          const model::DataSpec& spec, const Transform* transform,
                                          const LoadOptions& options, ReadSamples read);

// The digest of the training data and of the samples that were put aside.
std::string DigestOfBoth(const std::string& rows, const std::string& validation);

}  // namespace medley::worker
