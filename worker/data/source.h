// Where the rows of a data source lie and how they are separated. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/model/job_spec.h"

namespace medley::worker {

struct SourceFile {
  std::string path;
  char delimiter = ',';
};

// `root` is the prefix of the paths of file:// URIs. Errors: Unimplemented (format); InvalidArgument (URI).
absl::StatusOr<SourceFile> FileOf(const model::SourceSpec& source, const std::string& root);

}  // namespace medley::worker
