#include <algorithm>
#include <cctype>

#include "common/base/status.h"
#include "common/base/text.h"
#include "kube/object.h"

namespace medley::kube {
namespace {

// Splits at commas outside parentheses.
std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == ',' && depth == 0) {
      parts.push_back(base::Trim(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  parts.push_back(base::Trim(text.substr(begin)));
  return parts;
}

bool ValidName(std::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  const auto alnum = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return alnum(name.front()) && alnum(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return alnum(c) || c == '-' || c == '_' || c == '.'; });
}

bool ValidKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return ValidName(key);
  const std::string_view prefix = key.substr(0, slash);
  return !prefix.empty() && prefix.size() <= 253 && std::all_of(prefix.begin(), prefix.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.';
  }) && ValidName(key.substr(slash + 1));
}

bool ValidValue(std::string_view value) { return value.empty() || ValidName(value); }

absl::Status Bad(std::string_view text, std::string_view part) {
  return base::InvalidArgument("parsing label selector '{}': invalid requirement '{}'", text, part);
}

// The parts of one requirement, before its names are checked.
struct Parts {
  std::string_view key;
  std::string_view op;  // "", "!", "=", "!=", "in", "notin"
  std::vector<std::string_view> values;
};

std::optional<Parts> TakeApart(std::string_view part) {
  if (part.empty()) return std::nullopt;
  if (const size_t open = part.find('('); open != std::string_view::npos) {
    if (part.back() != ')') return std::nullopt;
    const std::string_view head = base::Trim(part.substr(0, open));
    const size_t space = head.find_last_of(" \t");
    if (space == std::string_view::npos) return std::nullopt;
    Parts out{base::Trim(head.substr(0, space)), head.substr(space + 1),
              Split(part.substr(open + 1, part.size() - open - 2))};
    if (out.op != "in" && out.op != "notin") return std::nullopt;
    return out;
  }
  if (const size_t at = part.find("!="); at != std::string_view::npos) {
    return Parts{base::Trim(part.substr(0, at)), "!=", {base::Trim(part.substr(at + 2))}};
  }
  if (const size_t at = part.find('='); at != std::string_view::npos) {
    const size_t width = part.substr(at).starts_with("==") ? 2 : 1;
    return Parts{base::Trim(part.substr(0, at)), "=", {base::Trim(part.substr(at + width))}};
  }
  if (part.front() == '!') return Parts{base::Trim(part.substr(1)), "!", {}};
  return Parts{part, "", {}};
}

}  // namespace

absl::StatusOr<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  if (base::Trim(text).empty()) return selector;
  using Op = Requirement::Op;
  for (const std::string_view part : Split(text)) {
    const std::optional<Parts> parts = TakeApart(part);
    if (!parts || !ValidKey(parts->key)) return Bad(text, part);
    Requirement requirement{std::string(parts->key), Op::kExists, {}};
    if (parts->op == "!") requirement.op = Op::kMissing;
    if (parts->op == "=" || parts->op == "in") requirement.op = Op::kIn;
    if (parts->op == "!=" || parts->op == "notin") requirement.op = Op::kNotIn;
    for (const std::string_view value : parts->values) {
      if (!ValidValue(value)) return Bad(text, part);
      requirement.values.emplace_back(value);
    }
    selector.requirements_.push_back(std::move(requirement));
  }
  return selector;
}

bool LabelSelector::Matches(const Object& object) const {
  const Json& labels = object.At("/metadata/labels");
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const Json* value = nullptr;
    if (labels.is_object()) {
      const auto it = labels.find(r.key);
      if (it != labels.end() && it->is_string()) value = &*it;
    }
    const auto listed = [&] {
      return std::any_of(r.values.begin(), r.values.end(),
                         [&](const std::string& v) { return value->get_ref<const std::string&>() == v; });
    };
    switch (r.op) {
      case Requirement::Op::kExists:
        return value != nullptr;
      case Requirement::Op::kMissing:
        return value == nullptr;
      case Requirement::Op::kIn:
        return value != nullptr && listed();
      case Requirement::Op::kNotIn:
        return value == nullptr || !listed();
    }
    return false;
  });
}

}  // namespace medley::kube
