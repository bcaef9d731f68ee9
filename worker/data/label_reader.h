// Reads the labels of a row as numbers, in the way of the schema's task.
//
//   binary:     0 or 1; with label.positive 1 for that text and 0 for others
//   regression: the number, not standardised
//   multiClass: the number of the class
//   multiLabel: 0 or 1 for each of label.columns
//
// Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/job_spec.h"
#include "worker/data/csv.h"
#include "worker/data/number.h"

namespace medley::worker {

// A label as it is compared: without a trailing dot, which UCI Adult's test file has.
std::string_view LabelText(std::string_view value);

// Whether a label of Task::kBinary is 1. `positive`: schema.label_positive. Numbers are compared as numbers: 1.0 is 1.
// Nothing for a label that is empty or, without `positive`, neither 0 nor 1.
std::optional<bool> IsOne(std::string_view label, std::string_view positive);

class LabelReader {
 public:
  // `schema` must outlive the reader. multiClass: `classes` are the names of class 0, 1, ...; when they are empty,
  // those of the schema are; when both are, classes get numbers as they are met.
  LabelReader(const model::SchemaSpec& schema, std::vector<std::string> classes);

  // Appends the labels of the row: at least one, which is 0 when the schema names no label column. On error
  // (InvalidArgument naming the column) appends nothing. The row has all columns of the schema.
  absl::Status Append(const CsvFields& row, std::vector<double>& labels);
  // The names of the classes by their numbers, also of those that were met.
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  absl::Status Binary(std::string_view text, std::vector<double>& labels) const;
  absl::Status Number(std::string_view text, std::vector<double>& labels) const;
  absl::Status Class(std::string_view text, std::vector<double>& labels);
  absl::Status Several(const CsvFields& row, std::vector<double>& labels) const;

  const model::SchemaSpec& schema_;
  const ValueReader values_;
  std::vector<std::string> classes_;
  bool collects_ = false;  // classes get numbers as they are met
  std::map<std::string, int32_t, std::less<>> numbers_;
};

}  // namespace medley::worker
