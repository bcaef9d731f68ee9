#include "common/model/text_tree.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "common/base/status.h"

namespace medley::model {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{16} << 20;
constexpr int kMaxDepth = 64;
constexpr int kMaxValues = 1'000'000;

// Line and column of `byte`, counted from 1.
std::string Place(std::string_view text, size_t byte) {
  size_t line = 1, column = 1;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return fmt::format("line {}, column {}", line, column);
}

absl::StatusOr<json> ReadJson(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  int values = 0;
  absl::Status failure;
  const auto fail = [&](const absl::Status& status) {
    if (failure.ok()) failure = status;
  };
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) fail(base::InvalidArgument("nested deeper than {} levels", kMaxDepth));
    if (++values > kMaxValues) fail(base::InvalidArgument("more than {} values", kMaxValues));
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end && !keys.empty()) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) fail(base::InvalidArgument("field '{}' is given twice", key));
    }
    return failure.ok();  // nothing is kept after a failure
  };
  try {
    json tree = json::parse(text, watch);
    MEDLEY_RETURN_IF_ERROR(failure);
    return tree;
  } catch (const json::parse_error& error) {
    if (!failure.ok()) return failure;
    return base::InvalidArgument("broken JSON at {}", Place(text, error.byte));
  } catch (const json::exception& error) {
    return base::InvalidArgument("broken JSON: {}", error.what());
  }
}

bool LooksNumeric(std::string_view text) {
  const size_t digits = text[0] == '-' || text[0] == '+' ? 1 : 0;
  if (digits >= text.size()) return false;
  const char c = text[digits];
  return (c >= '0' && c <= '9') || (c == '.' && digits + 1 < text.size());
}

// YAML 1.2's core schema: null, true, false, numbers; everything else is a string.
json PlainScalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (!LooksNumeric(text)) return text;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  if (auto [rest, error] = std::from_chars(first, end, integer); error == std::errc() && rest == end) return integer;
  uint64_t large = 0;
  if (auto [rest, error] = std::from_chars(first, end, large); error == std::errc() && rest == end) return large;
  double real = 0;
  if (auto [rest, error] = std::from_chars(first, end, real); error == std::errc() && rest == end) return real;
  return text;
}

class YamlReader {
 public:
  absl::StatusOr<json> Read(const YAML::Node& node, const std::string& path, int depth) {
    if (depth > kMaxDepth) return base::InvalidArgument("nested deeper than {} levels", kMaxDepth);
    // Aliases are expanded, so that a short text may stand for very many values.
    if (++values_ > kMaxValues) return base::InvalidArgument("more than {} values", kMaxValues);
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null: return json(nullptr);
      case YAML::NodeType::Scalar: return node.Tag() == "!" ? json(node.Scalar()) : PlainScalar(node.Scalar());
      case YAML::NodeType::Sequence: return ReadSequence(node, path, depth);
      case YAML::NodeType::Map: return ReadMap(node, path, depth);
    }
    return json(nullptr);
  }

 private:
  absl::StatusOr<json> ReadSequence(const YAML::Node& node, const std::string& path, int depth) {
    json out = json::array();
    for (size_t i = 0; i < node.size(); ++i) {
      MEDLEY_ASSIGN_OR_RETURN(json item, Read(node[i], fmt::format("{}[{}]", path, i), depth + 1));
      out.push_back(std::move(item));
    }
    return out;
  }
  absl::StatusOr<json> ReadMap(const YAML::Node& node, const std::string& path, int depth) {
    json out = json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) return base::InvalidArgument("{}: a field's name must be plain text", path);
      const std::string& key = entry.first.Scalar();
      const std::string here = path.empty() ? key : path + "." + key;
      if (out.contains(key)) return base::InvalidArgument("{}: given twice", here);
      MEDLEY_ASSIGN_OR_RETURN(out[key], Read(entry.second, here, depth + 1));
    }
    return out;
  }

  int values_ = 0;
};

absl::StatusOr<json> ReadYaml(std::string_view text) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() != 1) {
      return base::InvalidArgument("{}", documents.empty() ? "the document is empty" : "more than one YAML document");
    }
    return YamlReader().Read(documents[0], "", 0);
  } catch (const YAML::Exception& error) {
    return base::InvalidArgument("broken YAML at line {}, column {}: {}", error.mark.line + 1, error.mark.column + 1,
                                 error.msg);
  }
}

void Emit(const json& tree, YAML::Emitter& out) {
  switch (tree.type()) {
    case json::value_t::object:
      out << YAML::BeginMap;
      for (const auto& [key, value] : tree.items()) {
        out << YAML::Key << key << YAML::Value;
        Emit(value, out);
      }
      out << YAML::EndMap;
      return;
    case json::value_t::array:
      out << YAML::BeginSeq;
      for (const json& value : tree) Emit(value, out);
      out << YAML::EndSeq;
      return;
    case json::value_t::string: {
      const auto& text = tree.get_ref<const std::string&>();
      const bool ambiguous = !PlainScalar(text).is_string();
      if (ambiguous) {
        out << YAML::DoubleQuoted << text;
      } else {
        out << text;
      }
      return;
    }
    default: out << tree.dump(); return;
  }
}

// nlohmann's writer refuses what is not UTF-8, and YAML's reader lets some of it pass.
bool IsUtf8(const json& tree) {
  try {
    static_cast<void>(tree.dump());
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

}  // namespace

absl::StatusOr<json> ReadTree(std::string_view text) {
  if (text.size() > kMaxBytes) return base::InvalidArgument("the document is larger than {} bytes", kMaxBytes);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return base::InvalidArgument("the document is empty");
  const bool is_json = text[first] == '{' || text[first] == '[';
  MEDLEY_ASSIGN_OR_RETURN(json tree, is_json ? ReadJson(text) : ReadYaml(text));
  if (!IsUtf8(tree)) return base::InvalidArgument("the document is not valid UTF-8");
  return tree;
}

std::string TreeToYaml(const json& tree) {
  YAML::Emitter out;
  Emit(tree, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace medley::model
