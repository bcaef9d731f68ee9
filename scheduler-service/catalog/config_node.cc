#include "scheduler-service/catalog/config_node.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/status.h"
#include "common/model/convert.h"

namespace medley::sched {

using nlohmann::json;

struct ConfigNode::Rep {
  std::string path;
  json fields;
  std::set<std::string> read;
  absl::Status error;

  std::string At(const std::string& field) const { return path.empty() ? field : path + "." + field; }
  void Fail(const std::string& field, std::string_view message) {
    if (error.ok()) error = base::InvalidArgument("{}: {}", At(field), message);
  }
  // The value of a field, which is marked as read; null if the field is absent.
  const json* Find(const std::string& field) {
    read.insert(field);
    const auto found = fields.find(field);
    return found == fields.end() || found->is_null() ? nullptr : &*found;
  }
};

namespace {

std::string Short(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

absl::StatusOr<ConfigNode> ConfigNode::Parse(std::string_view text) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string as_json, model::YamlToJson(text));
  auto rep = std::make_unique<Rep>();
  rep->fields = json::parse(as_json, nullptr, false);
  if (!rep->fields.is_object()) return base::InvalidArgument("the document: must be a mapping");
  return ConfigNode(std::move(rep));
}

ConfigNode::ConfigNode(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
ConfigNode::ConfigNode(const ConfigNode& other) : rep_(std::make_unique<Rep>(*other.rep_)) {}
ConfigNode& ConfigNode::operator=(const ConfigNode& other) {
  rep_ = std::make_unique<Rep>(*other.rep_);
  return *this;
}
ConfigNode::ConfigNode(ConfigNode&&) noexcept = default;
ConfigNode& ConfigNode::operator=(ConfigNode&&) noexcept = default;
ConfigNode::~ConfigNode() = default;

const std::string& ConfigNode::path() const { return rep_->path; }

bool ConfigNode::Has(const std::string& field) const {
  const auto found = rep_->fields.find(field);
  return found != rep_->fields.end() && !found->is_null();
}

std::string ConfigNode::String(const std::string& field) {
  const std::string value = String(field, "");
  if (value.empty()) rep_->Fail(field, Has(field) ? "must not be empty" : "is required");
  return value;
}

std::string ConfigNode::String(const std::string& field, const std::string& otherwise) {
  const json* value = rep_->Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_string()) return value->get<std::string>();
  rep_->Fail(field, "must be a string, is " + Short(*value));
  return otherwise;
}

double ConfigNode::Number(const std::string& field, double otherwise) {
  const json* value = rep_->Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  rep_->Fail(field, "must be a finite number, is " + Short(*value));
  return otherwise;
}

int ConfigNode::Integer(const std::string& field, int otherwise) {
  const double value = Number(field, otherwise);
  if (value == std::floor(value) && std::abs(value) <= std::numeric_limits<int>::max()) return static_cast<int>(value);
  rep_->Fail(field, fmt::format("must be an integer, is {}", value));
  return otherwise;
}

bool ConfigNode::Bool(const std::string& field, bool otherwise) {
  const json* value = rep_->Find(field);
  if (value == nullptr) return otherwise;
  if (value->is_boolean()) return value->get<bool>();
  rep_->Fail(field, "must be true or false, is " + Short(*value));
  return otherwise;
}

base::nanoseconds ConfigNode::Duration(const std::string& field, base::nanoseconds otherwise) {
  const std::string text = String(field, "");
  if (text.empty()) return otherwise;
  const auto value = base::ParseDuration(text);
  if (value.ok()) return *value;
  rep_->Fail(field, base::Message(value.status()));
  return otherwise;
}

std::vector<std::string> ConfigNode::Strings(const std::string& field, const std::vector<std::string>& otherwise) {
  const json* value = rep_->Find(field);
  if (value == nullptr) return otherwise;
  std::vector<std::string> out;
  const json list = value->is_string() ? json::array({*value}) : *value;
  if (!list.is_array()) {
    rep_->Fail(field, "must be a list of strings, is " + Short(*value));
    return otherwise;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string() && !list[i].get_ref<const std::string&>().empty()) {
      out.push_back(list[i].get<std::string>());
    } else {
      rep_->Fail(fmt::format("{}[{}]", field, i), "must be a string that is not empty, is " + Short(list[i]));
    }
  }
  return out;
}

std::vector<ConfigNode> ConfigNode::List(const std::string& field) {
  const json* value = rep_->Find(field);
  std::vector<ConfigNode> out;
  if (value == nullptr) return out;
  if (!value->is_array()) rep_->Fail(field, "must be a list, is " + Short(*value));
  for (size_t i = 0; value->is_array() && i < value->size(); ++i) {
    const std::string at = fmt::format("{}[{}]", field, i);
    if (!(*value)[i].is_object()) {
      rep_->Fail(at, "must be a mapping, is " + Short((*value)[i]));
      continue;
    }
    auto rep = std::make_unique<Rep>();
    rep->path = rep_->At(at);
    rep->fields = (*value)[i];
    out.push_back(ConfigNode(std::move(rep)));
  }
  return out;
}

std::optional<ConfigNode> ConfigNode::Mapping(const std::string& field) {
  const json* value = rep_->Find(field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    rep_->Fail(field, "must be a mapping, is " + Short(*value));
    return std::nullopt;
  }
  auto rep = std::make_unique<Rep>();
  rep->path = rep_->At(field);
  rep->fields = *value;
  return ConfigNode(std::move(rep));
}

void ConfigNode::Fail(const std::string& field, std::string_view message) { rep_->Fail(field, message); }

absl::Status ConfigNode::Finish() const {
  MEDLEY_RETURN_IF_ERROR(rep_->error);
  for (const auto& [field, value] : rep_->fields.items()) {
    if (!rep_->read.contains(field)) return base::InvalidArgument("{}: unknown field", rep_->At(field));
  }
  return absl::OkStatus();
}

}  // namespace medley::sched
