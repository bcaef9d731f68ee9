#include "common/kube/embedded/json_text.h"

#include <re2/re2.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>

#include "common/base/status.h"

namespace medley::kube::embedded {
namespace {

// Builds the document, counts its depth and notes keys that come twice.
class Builder : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Put(nullptr); }
  bool boolean(bool value) override { return Put(value); }
  bool number_integer(number_integer_t value) override { return Put(value); }
  bool number_unsigned(number_unsigned_t value) override { return Put(value); }
  bool number_float(number_float_t value, const string_t&) override { return Put(value); }
  bool string(string_t& value) override { return Put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    key_ = value;
    if (stack_.back()->contains(key_)) {
      std::string path;
      for (const std::string& name : names_) path += name + ".";
      parsed_.duplicates.push_back(path + key_);
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    error_ = e.what();
    return false;
  }

  ParsedJson& parsed() { return parsed_; }
  const std::string& error() const { return error_; }

 private:
  bool Open(Json container) {
    if (static_cast<int>(stack_.size()) >= kMaxDepth) {
      error_ = fmt::format("nested deeper than {} levels", kMaxDepth);
      return false;
    }
    const bool named = !stack_.empty() && stack_.back()->is_object();
    if (named) names_.push_back(key_);
    named_.push_back(named);
    stack_.push_back(Insert(std::move(container)));
    return true;
  }
  bool Close() {
    stack_.pop_back();
    if (named_.back()) names_.pop_back();
    named_.pop_back();
    return true;
  }
  bool Put(Json value) {
    Insert(std::move(value));
    return true;
  }
  Json* Insert(Json value) {
    if (stack_.empty()) {
      parsed_.value = std::move(value);
      return &parsed_.value;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    Json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  ParsedJson parsed_;
  std::string error_;
  std::string key_;
  std::vector<Json*> stack_;
  std::vector<std::string> names_;
  std::vector<bool> named_;
};

Json Scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str") return text;  // quoted
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (RE2::FullMatch(text, "[-+]?(0|[1-9][0-9]{0,17})")) {
    return static_cast<int64_t>(std::strtoll(text.c_str(), nullptr, 10));
  }
  if (RE2::FullMatch(text, "[-+]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][-+]?[0-9]+)?")) {
    return std::strtod(text.c_str(), nullptr);
  }
  return text;
}

absl::StatusOr<Json> FromYaml(const YAML::Node& node, int depth) {
  if (depth > kMaxDepth) return base::InvalidArgument("nested deeper than {} levels", kMaxDepth);
  switch (node.Type()) {
    case YAML::NodeType::Undefined:
    case YAML::NodeType::Null: return Json(nullptr);
    case YAML::NodeType::Scalar: return Scalar(node);
    case YAML::NodeType::Sequence: {
      Json array = Json::array();
      for (const YAML::Node& item : node) {
        MEDLEY_ASSIGN_OR_RETURN(Json value, FromYaml(item, depth + 1));
        array.push_back(std::move(value));
      }
      return array;
    }
    case YAML::NodeType::Map: {
      Json object = Json::object();
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) return base::InvalidArgument("a key is not a scalar");
        MEDLEY_ASSIGN_OR_RETURN(object[entry.first.Scalar()], FromYaml(entry.second, depth + 1));
      }
      return object;
    }
  }
  return base::InvalidArgument("unknown YAML node");
}

}  // namespace

absl::StatusOr<ParsedJson> ParseJson(std::string_view text) {
  Builder builder;
  if (!Json::sax_parse(text, &builder)) {
    return base::InvalidArgument("invalid JSON: {}", builder.error());
  }
  return std::move(builder.parsed());
}

absl::StatusOr<std::vector<Json>> ParseYaml(std::string_view text) {
  std::vector<Json> documents;
  try {
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      MEDLEY_ASSIGN_OR_RETURN(Json value, FromYaml(node, 0));
      if (!value.is_null()) documents.push_back(std::move(value));
    }
  } catch (const YAML::Exception& e) {
    return base::InvalidArgument("invalid YAML: {}", e.what());
  }
  return documents;
}

std::string Dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace medley::kube::embedded
