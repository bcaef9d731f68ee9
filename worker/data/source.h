// Where the rows of a data source lie and how they are separated.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/model/job_spec.h"

namespace medley::worker {

struct SourceFile {
  std::string path;  // or a pattern of FindFiles
  char delimiter = ',';
  std::string columns;  // the format of files of columns: "parquet"; empty: they are text
};

// Pure. `root` is the prefix of the paths of file:// URIs. Errors: Unimplemented (format); InvalidArgument (URI).
absl::StatusOr<SourceFile> FileOf(const model::SourceSpec& source, const std::string& root);

// The files that a path means, sorted by name (as bytes): itself, or those that match it as a pattern of the shell with
// *, ? and [...]. A file with just this name comes first, and a folder with just the name of a part of the path.
// Errors: NotFound "data/part-*.csv matches no file".
absl::StatusOr<std::vector<std::string>> FindFiles(const std::string& path);

}  // namespace medley::worker
