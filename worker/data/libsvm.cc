#include "worker/data/libsvm.h"

#include <algorithm>
#include <charconv>

#include "common/base/status.h"
#include "common/base/utf8.h"
#include "worker/data/number.h"
#include "worker/data/record.h"

namespace medley::worker {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kAbsent = "0";
constexpr size_t kMostShown = 65536;  // columns of a line whose number of columns is asked for

// The next word of the line; empty at its end.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

struct Feature {
  size_t index = 0;
  std::string_view value;
};

absl::Status ReadFeature(std::string_view word, Feature& feature) {
  const size_t colon = word.find(':');
  const std::string_view digits = word.substr(0, colon);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), feature.index);
  if (colon == std::string_view::npos || error != std::errc() || end != digits.data() + digits.size() ||
      colon + 1 == word.size()) {
    return base::InvalidArgument("'{}' is not INDEX:VALUE, as the features of libsvm are", base::Printable(word));
  }
  if (feature.index == 0) {
    return base::InvalidArgument(
        "'{}': the indices of features count from 1 here, not from 0 (with scikit-learn: dump_svmlight_file(..., "
        "zero_based=False))",
        base::Printable(word));
  }
  if (feature.index > kMostLibsvmIndex) {
    return base::InvalidArgument("'{}': an index is at most {}", base::Printable(word), kMostLibsvmIndex);
  }
  feature.value = word.substr(colon + 1);
  return absl::OkStatus();
}

}  // namespace

absl::Status SplitLibsvm(std::string_view line, size_t columns, CsvFields& fields) {
  line = line.substr(0, line.find('#'));
  std::string_view word = TakeWord(line);
  fields.values.assign(std::max<size_t>(1, columns), kAbsent);
  fields.values[0] = word;
  if (word.find(':') != std::string_view::npos) {
    return base::InvalidArgument("the line begins with '{}', not with a label", base::Printable(word));
  }
  size_t last = 0;
  bool sorted = true;
  std::vector<size_t> unsorted;  // all indices, of a line whose indices do not rise
  const std::string_view all = line;
  for (word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
    if (word.starts_with("qid:")) continue;
    Feature feature;
    MEDLEY_RETURN_IF_ERROR(ReadFeature(word, feature));
    sorted = sorted && feature.index > last;
    last = feature.index;
    if (columns == 0 && feature.index >= fields.values.size()) {
      if (feature.index >= kMostShown) {
        return base::InvalidArgument("'{}': tables with more than {} columns are not read", base::Printable(word),
                                     kMostShown);
      }
      fields.values.resize(feature.index + 1, kAbsent);
    }
    if (feature.index < fields.values.size()) fields.values[feature.index] = feature.value;
  }
  if (sorted) return absl::OkStatus();
  line = all;
  for (word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
    Feature feature;
    if (!word.starts_with("qid:") && ReadFeature(word, feature).ok()) unsorted.push_back(feature.index);
  }
  std::ranges::sort(unsorted);
  const auto twice = std::ranges::adjacent_find(unsorted);
  if (twice == unsorted.end()) return absl::OkStatus();
  return base::InvalidArgument("the line has the index {} twice", *twice);
}

bool LooksLikeLibsvm(std::string_view text, bool whole) {
  bool features = false;
  CsvFields fields;
  for (int rows = 0; rows < kRowsLookedAt && !text.empty();) {
    const auto record = TakeRecord(text, kLibsvmDelimiter, whole);
    if (!record) break;
    std::string_view line = record->text.substr(0, record->text.find('#'));
    const std::string_view label = TakeWord(line);
    if (label.empty()) continue;
    ++rows;
    if (ValueReader().Read(label).kind != ValueKind::kNumber || !SplitLibsvm(record->text, 1, fields).ok())
      return false;
    features = features || line.find(':') != std::string_view::npos;
  }
  return features;
}

absl::Status SplitRow(std::string_view line, char delimiter, size_t columns, CsvFields& fields) {
  return delimiter == kLibsvmDelimiter ? SplitLibsvm(line, columns, fields) : SplitCsv(line, delimiter, fields);
}

}  // namespace medley::worker
