#include "operator/api/cause.h"

#include <algorithm>
#include <cctype>

#include "kube/object.h"

namespace medley::ops {
namespace {

constexpr std::string_view kProgram = "medley-worker: ";

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}

bool IsRole(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// From a line such as {"msg":"the job failed","why":"..."}; empty: the line is something else.
std::string LoggedMessage(std::string_view line) {
  if (!line.starts_with('{')) return "";
  const kube::Json parsed = kube::Json::parse(line, nullptr, false);
  if (!parsed.is_object()) return "";
  const kube::Object fields(parsed);
  std::string text = fields.String("/msg");
  for (const char* key : {"/error", "/why", "/reason"}) {
    if (const std::string why = fields.String(key); !why.empty()) text += (text.empty() ? "" : ": ") + why;
  }
  return text;
}

std::string Sentence(std::string_view text) {
  text = Trimmed(text);
  while (!text.empty() && (text.back() == '.' || text.back() == ';')) text.remove_suffix(1);
  if (text.empty()) return "";
  const bool ends = text.back() == '!' || text.back() == '?';
  return std::string(text) + (ends ? "" : ".");
}

}  // namespace

std::string CauseIn(std::string_view last_line) {
  std::string_view line = Trimmed(last_line);
  if (std::string logged = LoggedMessage(line); !logged.empty()) return logged;
  if (!line.starts_with(kProgram)) return std::string(line);
  line.remove_prefix(kProgram.size());
  const size_t colon = line.find(": ");
  if (colon != std::string_view::npos && IsRole(line.substr(0, colon))) line.remove_prefix(colon + 2);
  return std::string(line);
}

std::string CauseFirst(std::string_view cause, std::string_view circumstances) {
  const std::string first = Sentence(cause);
  const std::string second = Sentence(circumstances);
  return first + (first.empty() || second.empty() ? "" : " ") + second;
}

}  // namespace medley::ops
