#include "cli/data/label_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "common/base/closest.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

template <size_t N>
bool IsOneOf(const std::string& text, const std::array<const char*, N>& words) {
  return std::ranges::any_of(words, [&](const char* word) { return Lower(text) == word; });
}

constexpr std::array kLabelNames = {"label",    "target",   "class",     "y",          "outcome", "clicked", "click",
                                    "bought",   "survived", "converted", "churned",    "churn",   "default", "fraud",
                                    "is_fraud", "response", "result",    "conversion", "labels"};
constexpr std::array kPositives = {"1",   "yes", "true",      "y",   "t",  "positive", "pos",  "on",   ">50k",     "ja",
                                   "oui", "si",  "s\xc3\xad", "sim", "da", "tak",      "wahr", "vrai", "verdadero"};
constexpr std::array kNegatives = {"0",     "no",   "false", "n",   "f",          "negative", "neg",  "off",
                                   "<=50k", "nein", "non",   "nee", "n\xc3\xa3o", "falsch",   "faux", "falso"};
constexpr std::array kWeightNames = {
    "weights", "sample_weight", "sample_weights", "sampleweight", "row_weight", "case_weight", "wt", "fnlwgt"};

}  // namespace

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool IsLabelName(const std::string& name) { return IsOneOf(name, kLabelNames); }
bool IsWeightName(const std::string& name) { return IsOneOf(name, kWeightNames); }

int MeaningOf(const std::string& text) { return IsOneOf(text, kPositives) ? 1 : IsOneOf(text, kNegatives) ? -1 : 0; }

worker::Value NumberOf(const std::string& text) {
  static const worker::ValueReader kReader;
  return kReader.Read(text);
}

absl::StatusOr<size_t> FindColumn(const std::string& path, const TableGuess& table, const std::string& wanted) {
  std::vector<std::string> names;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].named && table.columns[c].name == wanted) return c;
    if (table.columns[c].named) names.push_back(table.columns[c].name);
  }
  size_t number = 0;
  const auto [end, error] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
  if (error == std::errc() && end == wanted.data() + wanted.size() && number < table.columns.size()) return number;
  return base::NotFound(
      "{}: there is no column '{}'{}", path, wanted,
      names.empty() ? fmt::format("; the file has no header, and columns from 0 to {}", table.columns.size() - 1)
                    : base::DidYouMean(wanted, names));
}

}  // namespace medley::cli
