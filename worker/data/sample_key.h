// What samples follow from: a file of samples is used again only for the same files of the same content, read in the
// same way.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/transform.h"

namespace medley::worker {

// For the file that a path leads to.
struct FileIdentity {
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = 0;
  int64_t written = 0;  // ns since 1970: when the content changed
  int64_t changed = 0;  // ns since 1970: when anything of the file changed
  bool operator==(const FileIdentity&) const = default;
};

// Errors: those of stat.
absl::StatusOr<std::vector<FileIdentity>> IdentitiesOf(const std::vector<std::string>& paths);

// 32 hexadecimal digits. `transform`: that is applied; null: it is fitted on the rows.
std::string SampleKey(const std::vector<FileIdentity>& files, const model::SourceSpec& source,
                      const model::DataSpec& spec, const Transform* transform, int64_t embedding_rows);

}  // namespace medley::worker
