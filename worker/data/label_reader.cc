#include "worker/data/label_reader.h"

#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "common/base/utf8.h"

namespace medley::worker {
namespace {

constexpr size_t kLongestClass = 1024;  // so that all classes fit into a message

absl::Status ZeroOrOne(std::string_view text, int column, double& label) {
  const std::optional<bool> one = IsOne(text, "");
  if (!one && LabelText(text).empty()) return base::InvalidArgument("column {}: the label is empty", column);
  if (!one) {
    return base::InvalidArgument("column {}: the label '{}' is neither 0 nor 1", column,
                                 base::Printable(LabelText(text)));
  }
  label = *one ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace

std::string_view LabelText(std::string_view value) {
  if (!value.empty() && value.back() == '.') value.remove_suffix(1);
  return value;
}

std::optional<bool> IsOne(std::string_view label, std::string_view positive) {
  label = LabelText(label);
  positive = LabelText(positive);
  if (label.empty()) return std::nullopt;
  if (!positive.empty() && label == positive) return true;
  if (positive.empty() && label.size() == 1 && (label[0] == '0' || label[0] == '1')) return label[0] == '1';
  static const ValueReader kNumbers;
  const Value value = kNumbers.Read(label);
  const bool number = value.kind == ValueKind::kNumber;
  if (positive.empty())
    return number && (value.number == 0 || value.number == 1) ? std::optional(value.number == 1) : std::nullopt;
  if (!number) return false;
  const Value one = kNumbers.Read(positive);
  return one.kind == ValueKind::kNumber && one.number == value.number;
}

LabelReader::LabelReader(const model::SchemaSpec& schema, std::vector<std::string> classes)
    : schema_(schema), values_(schema.missing), classes_(classes.empty() ? schema.label_classes : std::move(classes)) {
  collects_ = classes_.empty();
  for (size_t i = 0; i < classes_.size(); ++i) numbers_[classes_[i]] = static_cast<int32_t>(i);
}

absl::Status LabelReader::Append(const CsvFields& row, std::vector<double>& labels) {
  if (!schema_.label_columns.empty()) return Several(row, labels);
  if (schema_.label_column < 0) {
    labels.push_back(0);
    return absl::OkStatus();
  }
  const std::string_view text = row.values[static_cast<size_t>(schema_.label_column)];
  switch (schema_.task) {
    case model::Task::kRegression:
      return Number(text, labels);
    case model::Task::kMultiClass:
      return Class(text, labels);
    case model::Task::kBinary:
    case model::Task::kOwnLoss:
    case model::Task::kMultiLabel:
      break;
  }
  return Binary(text, labels);
}

absl::Status LabelReader::Binary(std::string_view text, std::vector<double>& labels) const {
  double label = 0;
  if (schema_.label_positive.empty()) {
    MEDLEY_RETURN_IF_ERROR(ZeroOrOne(text, schema_.label_column, label));
  } else {
    const std::optional<bool> one = IsOne(text, schema_.label_positive);
    if (!one) return base::InvalidArgument("column {}: the label is empty", schema_.label_column);
    label = *one ? 1 : 0;
  }
  labels.push_back(label);
  return absl::OkStatus();
}

absl::Status LabelReader::Number(std::string_view text, std::vector<double>& labels) const {
  double label = 0;
  MEDLEY_RETURN_IF_ERROR(values_.ReadNumber(text, schema_.label_column, label));
  if (std::isnan(label)) return base::InvalidArgument("column {}: the label is missing", schema_.label_column);
  if (schema_.label_log && label <= -1) {
    return base::InvalidArgument(
        "column {}: the label {} is not above -1, so spec.data.schema.label.transform Log1p has no logarithm of it",
        schema_.label_column, base::Printable(text));
  }
  labels.push_back(label);
  return absl::OkStatus();
}

absl::Status LabelReader::Class(std::string_view text, std::vector<double>& labels) {
  if (text.empty()) return base::InvalidArgument("column {}: the label is empty", schema_.label_column);
  if (text.size() > kLongestClass) {
    return base::InvalidArgument("column {}: the label '{}' is longer than the {} bytes that a class may have",
                                 schema_.label_column, base::Printable(text), kLongestClass);
  }
  auto found = numbers_.find(text);
  if (found == numbers_.end()) {
    if (!collects_) {
      return base::InvalidArgument("column {}: the label '{}' is no class of the training data", schema_.label_column,
                                   base::Printable(text));
    }
    // One more than allowed, so that the file is refused as a whole.
    if (classes_.size() > model::kMostClasses) {
      return base::InvalidArgument("column {}: the label has more than {} different values", schema_.label_column,
                                   model::kMostClasses);
    }
    found = numbers_.emplace(std::string(text), static_cast<int32_t>(classes_.size())).first;
    classes_.emplace_back(text);
  }
  labels.push_back(found->second);
  return absl::OkStatus();
}

absl::Status LabelReader::Several(const CsvFields& row, std::vector<double>& labels) const {
  const size_t before = labels.size();
  for (const int column : schema_.label_columns) {
    const absl::Status read = ZeroOrOne(row.values[static_cast<size_t>(column)], column, labels.emplace_back());
    if (read.ok()) continue;
    labels.resize(before);
    return read;
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
