#include "worker/data/label_reader.h"

#include <cmath>
#include <utility>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/label_values.h"
#include "worker/data/number.h"

namespace medley::worker {
namespace {

constexpr size_t kLongestClass = 1024;  // so that all classes fit into a message

absl::Status ZeroOrOne(std::string_view text, int column, float& label) {
  text = LabelText(text);
  if (text.empty()) return base::InvalidArgument("column {}: the label is empty", column);
  if (text != "0" && text != "1") {
    return base::InvalidArgument("column {}: the label '{}' is neither 0 nor 1", column, base::Printable(text));
  }
  label = text == "1" ? 1.0F : 0.0F;
  return absl::OkStatus();
}

}  // namespace

LabelReader::LabelReader(const model::SchemaSpec& schema, std::vector<std::string> classes)
    : schema_(schema), classes_(classes.empty() ? schema.label_classes : std::move(classes)) {
  collects_ = classes_.empty();
  for (size_t i = 0; i < classes_.size(); ++i) numbers_[classes_[i]] = static_cast<int32_t>(i);
}

absl::Status LabelReader::Append(const CsvFields& row, std::vector<float>& labels) {
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

absl::Status LabelReader::Binary(std::string_view text, std::vector<float>& labels) const {
  float label = 0;
  if (schema_.label_positive.empty()) {
    MEDLEY_RETURN_IF_ERROR(ZeroOrOne(text, schema_.label_column, label));
  } else {
    text = LabelText(text);
    if (text.empty()) return base::InvalidArgument("column {}: the label is empty", schema_.label_column);
    label = text == LabelText(schema_.label_positive) ? 1.0F : 0.0F;
  }
  labels.push_back(label);
  return absl::OkStatus();
}

absl::Status LabelReader::Number(std::string_view text, std::vector<float>& labels) const {
  float label = 0;
  MEDLEY_RETURN_IF_ERROR(ReadNumber(text, schema_.label_column, label));
  if (std::isnan(label)) return base::InvalidArgument("column {}: the label is missing", schema_.label_column);
  labels.push_back(label);
  return absl::OkStatus();
}

absl::Status LabelReader::Class(std::string_view text, std::vector<float>& labels) {
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
  labels.push_back(static_cast<float>(found->second));
  return absl::OkStatus();
}

absl::Status LabelReader::Several(const CsvFields& row, std::vector<float>& labels) const {
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
