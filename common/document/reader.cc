#include "common/document/reader.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "common/base/closest.h"
#include "common/base/quantity.h"
#include "common/base/status.h"

namespace medley::document {

using nlohmann::json;

// What the readers of one document share.
struct Reader::Record {
  json owned;
  bool strict = false;  // notes what is read
  absl::Status first;
  std::unordered_map<const json*, bool> read;                                 // true: with all that is below
  std::unordered_map<const json*, std::set<std::string, std::less<>>> known;  // by object: fields that were looked for

  void Note(const json* value, bool whole) {
    if (strict) read[value] |= whole;
  }
};

namespace {

const json& NoFields() {
  static const json none = json::object();
  return none;
}

std::string Short(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

absl::StatusOr<Reader> Reader::Parse(std::string_view text, std::string path) {
  MEDLEY_ASSIGN_OR_RETURN(json tree, document::Parse(text));
  if (!tree.is_object()) {
    return base::InvalidArgument("{}: must be an object, is {}", path.empty() ? "the document" : path, Short(tree));
  }
  auto record = std::make_shared<Record>();
  record->owned = std::move(tree);
  record->strict = true;
  const json* const root = &record->owned;
  return Reader(std::move(record), root, std::move(path));
}

Reader::Reader(const json& tree, std::string path)
    : record_(std::make_shared<Record>()), tree_(&tree), path_(std::move(path)) {}

void Reader::Require(std::initializer_list<std::string_view> fields) const {
  for (const std::string_view field : fields) {
    if (!Has(field)) Fail(field, "is required");
  }
}

std::string Reader::RequiredString(std::string_view field) const {
  std::string value = String(field);
  if (value.empty()) Fail(field, Has(field) ? "must not be empty" : "is required");
  return value;
}

std::string Reader::String(std::string_view field, std::string otherwise) const {
  Read(field, otherwise);
  return otherwise;
}

double Reader::Number(std::string_view field, double otherwise) const {
  Read(field, otherwise);
  return otherwise;
}

int64_t Reader::Int(std::string_view field, int64_t otherwise) const {
  Read(field, otherwise);
  return otherwise;
}

bool Reader::Bool(std::string_view field, bool otherwise) const {
  Read(field, otherwise);
  return otherwise;
}

void Reader::Read(std::string_view field, std::string& out) const {
  const json* value = Find(field);
  if (value == nullptr) return;
  if (!value->is_string()) return Refuse(Path(field), "a string", *value);
  out = value->get_ref<const std::string&>();
}

void Reader::Read(std::string_view field, bool& out) const {
  const json* value = Find(field);
  if (value == nullptr) return;
  if (!value->is_boolean()) return Refuse(Path(field), "true or false", *value);
  out = value->get<bool>();
}

void Reader::Read(std::string_view field, double& out) const {
  const json* value = Find(field);
  if (value == nullptr) return;
  if (!value->is_number() || !std::isfinite(value->get<double>())) return Refuse(Path(field), "a number", *value);
  out = value->get<double>();
}

void Reader::Read(std::string_view field, std::vector<double>& out) const {
  const auto items = Items(field, "a list of numbers");
  if (!items) return;
  out.clear();
  for (size_t i = 0; i < items->size(); ++i) {
    const json& item = *(*items)[i];
    if (!item.is_number() || !std::isfinite(item.get<double>())) return Refuse(ItemPath(field, i), "a number", item);
    out.push_back(item.get<double>());
  }
}

base::nanoseconds Reader::Duration(std::string_view field, base::nanoseconds otherwise) const {
  const std::string text = String(field);
  if (text.empty()) return otherwise;
  const auto value = base::ParseDuration(text);
  if (value.ok()) return *value;
  Fail(field, base::Message(value.status()));
  return otherwise;
}

double Reader::Seconds(std::string_view field, double otherwise) const {
  const json* value = Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_string()) {
    const auto parsed = base::ParseDuration(value->get_ref<const std::string&>());
    if (parsed.ok()) return base::ToSeconds(*parsed);
  }
  Refuse(Path(field), "a duration, as in 5m or 1h30m", *value);
  return otherwise;
}

double Reader::Quantity(std::string_view field, double otherwise) const {
  const json* value = Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_number()) return Number(field, otherwise);
  if (value->is_string()) {
    const auto parsed = base::ParseQuantity(value->get_ref<const std::string&>());
    if (parsed.ok()) return *parsed;
  }
  Refuse(Path(field), "a quantity, as in \"2.5\" or \"16Gi\"", *value);
  return otherwise;
}

std::map<std::string, std::string> Reader::StringMap(std::string_view field) const {
  std::map<std::string, std::string> out;
  const json* value = Find(field, /*whole=*/true);
  if (value == nullptr) return out;
  if (!value->is_object()) {
    Refuse(Path(field), "an object", *value);
    return out;
  }
  for (const auto& [name, item] : value->items()) {
    if (item.is_string() || item.is_number()) {
      out[name] = item.is_string() ? item.get<std::string>() : item.dump();
    } else {
      Refuse(Path(field) + "." + name, "a string", item);
    }
  }
  return out;
}

std::vector<std::string> Reader::Strings(std::string_view field, std::vector<std::string> otherwise) const {
  const json* value = Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return {RequiredString(field)};
  std::vector<std::string> out;
  const auto items = Items(field, "a list of strings").value_or(std::vector<const json*>());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i]->is_string() && !items[i]->get_ref<const std::string&>().empty()) {
      out.push_back(items[i]->get<std::string>());
    } else {
      Refuse(ItemPath(field, i), "a string that is not empty", *items[i]);
    }
  }
  return out;
}

json Reader::Raw(std::string_view field) const {
  const json* value = Find(field, /*whole=*/true);
  return value == nullptr ? json::object() : *value;
}

Reader Reader::Child(std::string_view field) const {
  const json* value = Find(field);
  if (value != nullptr && !value->is_object()) {
    Refuse(Path(field), "an object", *value);
    value = nullptr;
  }
  return Reader(record_, value == nullptr ? &NoFields() : value, Path(field));
}

std::vector<Reader> Reader::List(std::string_view field) const {
  std::vector<Reader> out;
  const auto items = Items(field, "a list").value_or(std::vector<const json*>());
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i]->is_object()) {
      out.push_back(Reader(record_, items[i], ItemPath(field, i)));
    } else {
      Refuse(ItemPath(field, i), "an object", *items[i]);
    }
  }
  return out;
}

void Reader::Fail(std::string_view field, std::string_view message) const {
  if (record_->first.ok()) record_->first = base::InvalidArgument("{}: {}", Path(field), message);
}

const absl::Status& Reader::status() const { return record_->first; }

absl::Status Reader::Finish() const {
  MEDLEY_RETURN_IF_ERROR(record_->first);
  return record_->strict ? Unread(*tree_, path_) : absl::OkStatus();
}

const json* Reader::Find(std::string_view field, bool whole) const {
  if (!tree_->is_object()) return nullptr;
  if (record_->strict) record_->known[tree_].emplace(field);
  const auto found = tree_->find(field);
  if (found == tree_->end()) return nullptr;
  record_->Note(&*found, whole);
  return found->is_null() ? nullptr : &*found;
}

std::optional<std::vector<const json*>> Reader::Items(std::string_view field, std::string_view what) const {
  const json* value = Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    Refuse(Path(field), what, *value);
    return std::nullopt;
  }
  std::vector<const json*> out;
  out.reserve(value->size());
  for (const json& item : *value) {
    record_->Note(&item, false);
    out.push_back(&item);
  }
  return out;
}

std::string Reader::Path(std::string_view field) const {
  return path_.empty() ? std::string(field) : fmt::format("{}.{}", path_, field);
}

std::string Reader::ItemPath(std::string_view field, size_t index) const {
  return fmt::format("{}[{}]", Path(field), index);
}

void Reader::Refuse(const std::string& path, std::string_view want, const json& value) const {
  if (record_->first.ok()) record_->first = base::InvalidArgument("{}: must be {}, is {}", path, want, Short(value));
}

bool Reader::IntegerBits(const json* value, const std::string& path, int64_t least, uint64_t most,
                         uint64_t& bits) const {
  if (!value->is_number_integer()) {
    Refuse(path, "an integer", *value);
    return false;
  }
  const bool negative = !value->is_number_unsigned() && value->get<int64_t>() < 0;
  bits = negative ? static_cast<uint64_t>(value->get<int64_t>()) : value->get<uint64_t>();
  const bool fits = negative ? value->get<int64_t>() >= least : bits <= most;
  if (!fits) Refuse(path, fmt::format("an integer in [{}, {}]", least, most), *value);
  return fits;
}

absl::Status Reader::Unread(const json& tree, const std::string& path) const {
  const auto check = [&](const json& value, const std::string& here, std::string_view name) -> absl::Status {
    const auto found = record_->read.find(&value);
    if (found == record_->read.end()) {
      const auto& known = record_->known[&tree];
      return base::InvalidArgument("{}: unknown field{}", here, base::DidYouMean(name, {known.begin(), known.end()}));
    }
    return found->second ? absl::OkStatus() : Unread(value, here);
  };
  if (tree.is_object()) {
    for (const auto& [name, value] : tree.items()) {
      MEDLEY_RETURN_IF_ERROR(check(value, path.empty() ? name : path + "." + name, name));
    }
  } else if (tree.is_array()) {
    for (size_t i = 0; i < tree.size(); ++i) {
      MEDLEY_RETURN_IF_ERROR(check(tree[i], fmt::format("{}[{}]", path, i), ""));
    }
  }
  return absl::OkStatus();
}

}  // namespace medley::document
