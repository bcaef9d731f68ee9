// Reads the rows of a CSV file piece by piece, in bounded memory, as features of a model. Not thread-safe.
//
// A row has as many columns as the first one. Where the schema has names, the header says which column is which. Labels
// that are ignored may be absent then, or when they are the last columns that the schema names. Blank lines are left
// out, and the first line too when the schema says that it is a header.
#pragma once

#include <absl/status/statusor.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/data/batch.h"
#include "worker/data/feature_encoder.h"
#include "worker/data/row_parser.h"
#include "worker/export/exported_model.h"

namespace medley::worker {

class RowStream {
 public:
  enum class Labels { kIgnored, kRequired };

  // Reads at most `bytes` of the data; returns 0 at their end.
  using Read = std::function<absl::StatusOr<size_t>(char* to, size_t bytes)>;
  // `name` is for error messages. `model` is not kept.
  RowStream(const ExportedModel& model, Labels labels, std::string name, Read read);
  ~RowStream();

  // Replaces `rows` by the next ones, at most about `most`; by none at the end of the data. Errors: InvalidArgument
  // ("data.csv:17: expected 15 columns, found 14"), those of `read`.
  absl::Status Next(int most, Batch& rows);

 private:
  absl::StatusOr<bool> NextLine(std::string_view& line);
  absl::Status ReadHeader(std::string_view line);
  absl::Status BeginRows(std::string_view first);
  absl::Status Append(std::string_view line, Batch& rows);

  model::SchemaSpec schema_;
  const Labels labels_;
  const std::string name_;
  const Read read_;
  const char delimiter_;
  const int64_t embedding_rows_;
  const std::vector<std::string> classes_;
  const FeatureEncoder encoder_;
  std::unique_ptr<RowParser> parser_;  // null before the first row
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been read of the buffer
  size_t end_ = 0;
  bool ended_ = false;
  int64_t line_ = 0;
  size_t columns_ = 0;
};

}  // namespace medley::worker
