#include "scheduler-service/handlers/field_path.h"

#include <cctype>

#include "common/base/status.h"

namespace medley::sched {
namespace {

bool IsName(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

}  // namespace

std::string FieldOf(std::string_view message) {
  size_t i = 0;
  while (i < message.size()) {
    const size_t name = i;
    while (i < message.size() && (IsName(message[i]) || (i > name && message[i] == '-'))) ++i;
    if (i == name || std::isdigit(static_cast<unsigned char>(message[name])) != 0) return "";
    while (i < message.size() && message[i] == '[') {
      const size_t close = message.find(']', i);
      if (close == std::string_view::npos) return "";
      i = close + 1;
    }
    if (message.substr(i, 2) == ": ") return std::string(message.substr(0, i));
    if (i >= message.size() || message[i] != '.') return "";
    ++i;
  }
  return "";
}

absl::Status WithinField(std::string_view parent, const absl::Status& status) {
  if (status.ok()) return status;
  const std::string message = base::Message(status);
  const char* joint = FieldOf(message).empty() ? ": " : ".";
  return base::MakeStatus(status.code(), std::string(parent) + joint + message);
}

}  // namespace medley::sched
