#include "localcluster/apiserver/json_text.h"

#include <re2/re2.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <optional>
#include <sstream>

#include "common/base/status.h"

namespace medley::kube::apiserver {
namespace {

constexpr int kMaxDocuments = 1000;

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

Json Scalar(const std::string& tag, const std::string& text) {
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;  // quoted
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

// One YAML document to JSON. Aliases are refused: they can make a small text a huge value.
class YamlBuilder final : public YAML::EventHandler {
 public:
  using Mark = YAML::Mark;
  void OnDocumentStart(const Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, YAML::anchor_t) override { Put(nullptr); }
  void OnAlias(const Mark& mark, YAML::anchor_t) override { Fail(mark, "aliases are not supported"); }
  void OnScalar(const Mark&, const std::string& tag, YAML::anchor_t, const std::string& value) override {
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().key.has_value()) {
      stack_.back().key = value;
    } else {
      Put(Scalar(tag, value));
    }
  }
  void OnSequenceStart(const Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open(mark, Json::array());
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    Open(mark, Json::object());
  }
  void OnMapEnd() override { Close(); }

  Json& value() { return value_; }
  const std::string& error() const { return error_; }

 private:
  struct Level {
    Json value;
    std::optional<std::string> key;
  };
  void Fail(const Mark& mark, const std::string& why) {
    if (error_.empty()) error_ = fmt::format("line {}: {}", mark.line + 1, why);
    Put(nullptr);
  }
  void Open(const Mark& mark, Json container) {
    if (!stack_.empty() && stack_.back().value.is_object() && !stack_.back().key.has_value()) {
      if (error_.empty()) error_ = fmt::format("line {}: a key is not a scalar", mark.line + 1);
      stack_.back().key = "";
    }
    if (stack_.size() >= static_cast<size_t>(kMaxDepth) && error_.empty()) {
      error_ = fmt::format("nested deeper than {} levels", kMaxDepth);
    }
    stack_.push_back({std::move(container), std::nullopt});
  }
  void Close() {
    Json done = std::move(stack_.back().value);
    stack_.pop_back();
    if (static_cast<int>(stack_.size()) < kMaxDepth) Put(std::move(done));
  }
  void Put(Json value) {
    if (stack_.empty()) {
      value_ = std::move(value);
    } else if (stack_.back().value.is_array()) {
      stack_.back().value.push_back(std::move(value));
    } else if (stack_.back().key.has_value()) {
      stack_.back().value[*stack_.back().key] = std::move(value);
      stack_.back().key.reset();
    } else {
      stack_.back().key = "";  // a key that is null
    }
  }

  Json value_;
  std::string error_;
  std::vector<Level> stack_;
};

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
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // The count bounds the parser too: a stray "}" gives it empty documents without end.
    for (int i = 0; i < kMaxDocuments; ++i) {
      YamlBuilder builder;
      if (!parser.HandleNextDocument(builder)) return documents;
      if (!builder.error().empty()) return base::InvalidArgument("invalid YAML: {}", builder.error());
      if (!builder.value().is_null()) documents.push_back(std::move(builder.value()));
    }
  } catch (const YAML::Exception& e) {
    return base::InvalidArgument("invalid YAML: {}", e.what());
  }
  return base::InvalidArgument("invalid YAML: more than {} documents", kMaxDocuments);
}

std::string Dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace medley::kube::apiserver
