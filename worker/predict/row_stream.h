// Reads the rows of a CSV file piece by piece, in bounded memory, as features of a model. Not thread-safe.
//
// A row has as many columns as the header, or without one as most of the first rows. Where the schema has names, the
// header says which column is which; columns with numbers have the names that they had in the training data. Labels
// that are ignored may be absent, when the schema has names or when they are the last columns. Blank lines are left
// out, and the header too. Up to `max_bad_rows` rows that cannot be read are skipped.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
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
  RowStream(const ExportedModel& model, Labels labels, std::string name, Read read, int64_t max_bad_rows = 0);
  ~RowStream();

  // Replaces `rows` by the next ones, at most about `most`; by none at the end of the data. Errors: InvalidArgument
  // ("data.csv:17: expected 15 columns, found 14"), those of `read`.
  absl::Status Next(int most, Batch& rows);
  // How many rows were skipped before each of the rows of the last Next, and after the last one: one more than these.
  const std::vector<int64_t>& skipped() const { return skipped_; }
  int64_t bad_rows() const { return bad_rows_; }
  const std::string& first_bad() const { return first_bad_; }  // with the line: "data.csv:17: ..."

 private:
  absl::Status Fill();
  absl::Status LookAhead();
  absl::StatusOr<bool> NextRecord(std::string_view& record);
  absl::Status ReadHeader(std::string_view record);
  absl::Status BeginRows(std::string_view first);
  absl::Status Append(std::string_view record);
  absl::Status Skip(const absl::Status& why);

  model::SchemaSpec schema_;
  const Labels labels_;
  const std::string name_;
  const Read read_;
  const char delimiter_;
  const int64_t embedding_rows_;
  const std::vector<std::string> classes_;
  const std::vector<std::string> training_header_;
  const FeatureEncoder encoder_;
  const int64_t max_bad_rows_;
  std::unique_ptr<RowParser> parser_;  // null before the first row
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been read of the buffer
  size_t end_ = 0;
  bool ended_ = false;
  int64_t line_ = 1;      // of the next record
  int64_t row_line_ = 1;  // of the last one
  size_t columns_ = 0;    // of every row; 0: not known yet
  ParsedRows parsed_;
  std::vector<int64_t> skipped_;
  int64_t bad_rows_ = 0;
  std::string first_bad_;
};

}  // namespace medley::worker
