// Finds the columns that a schema names in the header of a file. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "common/model/job_spec.h"

namespace medley::worker {

// Returns the schema with the number of every named column. `header` is the first line of the file `path`, whose fields
// `delimiter` separates. With `label_may_lack` a label that the header lacks gets the number -1. A schema without names
// is returned as it is. Errors: InvalidArgument "train.csv: the header has no column 'agee'; did you mean `age`?", or
// for a name that the header has twice.
absl::StatusOr<model::SchemaSpec> FindColumns(const model::SchemaSpec& schema, std::string_view header, char delimiter,
                                              const std::string& path, bool label_may_lack = false);

// The column for messages: "'age'", or its number.
std::string LabelColumnText(const model::SchemaSpec& schema);

}  // namespace medley::worker
