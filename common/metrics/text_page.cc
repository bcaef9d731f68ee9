#include "common/metrics/text_page.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace medley::metrics {
namespace {

void AppendEscaped(std::string& out, std::string_view value, bool quotes) {
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
}

std::string_view ToString(TextPage::Kind kind) {
  switch (kind) {
    case TextPage::Kind::kCounter:
      return "counter";
    case TextPage::Kind::kSummary:
      return "summary";
    default:
      return "gauge";
  }
}

}  // namespace

void TextPage::Family(std::string_view name, Kind kind, std::string_view help) {
  name_ = name;
  header_ = "# HELP " + name_ + " ";
  AppendEscaped(header_, help, false);
  header_ += fmt::format("\n# TYPE {} {}\n", name_, ToString(kind));
}

void TextPage::Sample(const LabelPairs& labels, double value, std::string_view suffix) {
  text_ += header_;
  header_.clear();
  text_ += name_;
  text_ += suffix;
  char before = '{';
  for (const auto& [label, label_value] : labels) {
    text_ += before;
    text_ += label;
    text_ += "=\"";
    AppendEscaped(text_, label_value, true);
    text_ += '"';
    before = ',';
  }
  if (!labels.empty()) text_ += '}';
  text_ += ' ';
  if (std::isnan(value)) {
    text_ += "NaN";
  } else if (std::isinf(value)) {
    text_ += value > 0 ? "+Inf" : "-Inf";
  } else {
    fmt::format_to(std::back_inserter(text_), "{}", value);
  }
  text_ += '\n';
}

std::string TextPage::Take() {
  header_.clear();
  return std::exchange(text_, std::string());
}

}  // namespace medley::metrics
