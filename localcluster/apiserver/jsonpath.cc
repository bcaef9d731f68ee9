// The subset of JSONPath that printer columns and scale paths use.
#include "localcluster/apiserver/table.h"

namespace medley::localcluster::apiserver {
namespace {

std::string_view Unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front()) {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// Applies a filter such as ?(@.type=="Ready"): returns the items for which it is true.
kube::Json Filtered(const kube::Json& list, std::string_view filter) {
  kube::Json out = kube::Json::array();
  const size_t at = filter.find("@.");
  const size_t equals = filter.find("==");
  if (!list.is_array() || at == std::string_view::npos || equals == std::string_view::npos) return out;
  std::string_view field = filter.substr(at + 2, equals - at - 2);
  while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
  std::string_view value = filter.substr(equals + 2);
  while (!value.empty() && (value.back() == ')' || value.back() == ' ')) value.remove_suffix(1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  const std::string wanted(Unquoted(value));
  for (const kube::Json& item : list) {
    const auto it = item.is_object() ? item.find(std::string(field)) : item.end();
    if (!item.is_object() || it == item.end()) continue;
    if ((it->is_string() ? it->get<std::string>() : kube::Dump(*it)) == wanted) out.push_back(item);
  }
  return out;
}

kube::Json Member(const kube::Json& value, const std::string& name) {
  if (!value.is_object()) return nullptr;
  const auto it = value.find(name);
  return it == value.end() ? kube::Json() : *it;
}

kube::Json Bracket(const kube::Json& value, std::string_view inside, bool* many) {
  if (inside.starts_with("?")) {
    *many = true;
    return Filtered(value, inside);
  }
  if (inside == "*") {
    *many = true;
    return value.is_array() ? value : kube::Json::array();
  }
  if (inside.starts_with("'") || inside.starts_with("\"")) {
    return Member(value, std::string(Unquoted(inside)));
  }
  if (!value.is_array() || inside.empty() || inside.size() > 6) return nullptr;
  const long index = std::strtol(std::string(inside).c_str(), nullptr, 10);
  const auto size = static_cast<long>(value.size());
  const long at = index < 0 ? size + index : index;
  return at >= 0 && at < size ? value[static_cast<size_t>(at)] : kube::Json();
}

}  // namespace

kube::Json JsonPath(const kube::Json& object, const std::string& path) {
  std::string_view rest = path;
  if (rest.starts_with("{") && rest.ends_with("}")) rest = rest.substr(1, rest.size() - 2);
  if (rest.starts_with("$")) rest.remove_prefix(1);
  kube::Json value = object;
  bool many = false;
  while (!rest.empty()) {
    bool step_many = false;
    const auto step = [&](const kube::Json& one) -> kube::Json {
      if (rest[0] == '[') return Bracket(one, rest.substr(1, rest.find(']') - 1), &step_many);
      const size_t start = rest[0] == '.' ? 1 : 0;
      std::string name;
      for (size_t i = start; i < rest.size() && rest[i] != '.' && rest[i] != '['; ++i) {
        if (rest[i] == '\\' && i + 1 < rest.size()) ++i;
        name += rest[i];
      }
      return Member(one, name);
    };
    if (rest[0] == '[' && rest.find(']') == std::string_view::npos) return nullptr;
    if (many) {
      kube::Json next = kube::Json::array();
      for (const kube::Json& one : value) {
        const kube::Json found = step(one);
        if (!found.is_null()) next.push_back(found);
      }
      value = std::move(next);
    } else {
      value = step(value);
      many = step_many;
    }
    if (rest[0] == '[') {
      rest.remove_prefix(rest.find(']') + 1);
    } else {
      size_t end = 1;
      while (end < rest.size() && rest[end] != '.' && rest[end] != '[') {
        end += rest[end] == '\\' && end + 1 < rest.size() ? 2 : 1;
      }
      rest.remove_prefix(std::min(end, rest.size()));
    }
  }
  if (!many) return value;
  if (value.empty()) return nullptr;
  return value.size() == 1 ? value[0] : value;
}

}  // namespace medley::localcluster::apiserver
