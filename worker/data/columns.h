// Finds the columns that a schema names in the header of a file, and checks those that it counts. Pure.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/model/job_spec.h"

namespace medley::worker {

// The fields of `header`, which is the first record of the file `path`. Errors: those of SplitCsv.
absl::StatusOr<std::vector<std::string>> HeaderNames(std::string_view header, char delimiter, const std::string& path);

// Returns the schema with the number of every named column. `header`: the names of the columns of the file `path`. With
// `label_may_lack` a label or a weight that the header lacks gets the number -1. A schema without names is returned as
// it is. Errors: InvalidArgument "train.csv: the header has no column 'agee'; did you mean `age`?", or for a name that
// the header has twice.
absl::StatusOr<model::SchemaSpec> FindColumns(const model::SchemaSpec& schema, const std::vector<std::string>& header,
                                              const std::string& path, bool label_may_lack = false);

// Checks that each column that the schema gives by its number has the same name in two headers: that of `of`, which is
// `expected`, and that of the file `path`. `labels`: whether the columns of labels and weights are checked too. Errors:
// InvalidArgument "test.csv: the header differs from that of train.csv: column 2 is 'height', but 'age' there ...".
absl::Status CompareHeaders(const model::SchemaSpec& schema, const std::vector<std::string>& expected,
                            const std::string& of, const std::vector<std::string>& header, const std::string& path,
                            bool labels = true);

// The column for messages: "'age'", or its number.
std::string LabelColumnText(const model::SchemaSpec& schema);
std::string WeightColumnText(const model::SchemaSpec& schema);

}  // namespace medley::worker
