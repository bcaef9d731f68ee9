#include "common/document/difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace medley::document {
namespace {

using Json = nlohmann::json;

std::string Shown(const Json* value) {
  if (value == nullptr || value->is_null()) return "not set";
  std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= kLongestValue) return text;
  size_t end = kLongestValue - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "...";
}

const Json* Member(const Json* object, const std::string& name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

void Compare(const Json* before, const Json* after, const std::string& field, std::vector<Difference>& found) {
  if (before == nullptr && after == nullptr) return;
  if (before != nullptr && after != nullptr && *before == *after) return;
  const auto is_object = [](const Json* value) { return value != nullptr && value->is_object(); };
  const bool descends = (is_object(before) || before == nullptr) && (is_object(after) || after == nullptr);
  if (descends) {
    std::set<std::string> names;
    for (const Json* side : {before, after}) {
      if (side == nullptr) continue;
      for (const auto& [name, value] : side->items()) names.insert(name);
    }
    const size_t had = found.size();
    for (const std::string& name : names) {
      Compare(Member(before, name), Member(after, name), field + "." + name, found);
    }
    if (found.size() > had || (before != nullptr && after != nullptr)) return;
    found.push_back({field, Shown(before), Shown(after)});  // one is an empty object
    return;
  }
  const bool lists = before != nullptr && after != nullptr && before->is_array() && after->is_array();
  if (lists && before->size() == after->size()) {
    for (size_t i = 0; i < before->size(); ++i) {
      Compare(&(*before)[i], &(*after)[i], fmt::format("{}[{}]", field, i), found);
    }
    return;
  }
  found.push_back({field, Shown(before), Shown(after)});
}

}  // namespace

std::vector<Difference> Differences(const Json& before, const Json& after, const std::string& field) {
  std::vector<Difference> found;
  Compare(before.is_null() ? nullptr : &before, after.is_null() ? nullptr : &after, field, found);
  return found;
}

std::string Sentence(const std::vector<Difference>& differences, const std::string& old_place,
                     const std::string& new_place, size_t most) {
  std::string text;
  for (size_t i = 0; i < std::min(most, differences.size()); ++i) {
    const Difference& each = differences[i];
    text += fmt::format("{}{} is {} {} and {} {}", i == 0 ? "" : "; ", each.field, each.before, old_place, each.after,
                        new_place);
  }
  if (differences.size() > most) text += fmt::format("; {} more fields differ", differences.size() - most);
  return text;
}

}  // namespace medley::document
