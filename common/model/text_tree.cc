#include "common/model/text_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>
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

// Builds the tree from a parser's events: no tree of yaml-cpp's own in between, and limits hold while reading.
class YamlReader final : public YAML::EventHandler {
 public:
  // What was read, or the first failure.
  absl::StatusOr<json> Take() {
    MEDLEY_RETURN_IF_ERROR(failure_);
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t anchor) override { Put(nullptr, anchor); }
  void OnScalar(const YAML::Mark&, const std::string& tag, YAML::anchor_t anchor, const std::string& value) override {
    const bool is_key = !frames_.empty() && frames_.back().tree.is_object() && !frames_.back().key;
    Put(tag == "!" || is_key ? json(value) : PlainScalar(value), anchor);
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Fail(base::InvalidArgument("{}: an alias within what it stands for", Path()));
    // Aliases are expanded, so that a short text may stand for very many values.
    values_ += found->second.values;
    Put(found->second.tree, YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(json::array(), anchor);
  }
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
    Open(json::object(), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    json tree;
    YAML::anchor_t anchor;
    int values_before;
    std::optional<std::string> key;  // of a map: read, its value is not
  };
  struct Anchored {
    json tree;
    int values;
  };

  void Fail(absl::Status status) {
    if (failure_.ok()) failure_ = std::move(status);
  }

  // Where the value that comes next belongs.
  std::string Path() const {
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.tree.is_array()) {
        path += fmt::format("[{}]", frame.tree.size());
      } else if (frame.key) {
        path += path.empty() ? *frame.key : "." + *frame.key;
      }
    }
    return path;
  }

  void Open(json empty, YAML::anchor_t anchor) {
    if (frames_.size() >= kMaxDepth) Fail(base::InvalidArgument("nested deeper than {} levels", kMaxDepth));
    if (!frames_.empty() && frames_.back().tree.is_object() && !frames_.back().key) {
      Fail(base::InvalidArgument("{}: a field's name must be plain text", Path()));
    }
    if (failure_.ok()) frames_.push_back({std::move(empty), anchor, values_, std::nullopt});
  }

  void Close() {
    if (!failure_.ok()) return;
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    Put(std::move(frame.tree), frame.anchor, frame.values_before);
  }

  void Put(json value, YAML::anchor_t anchor) { Put(std::move(value), anchor, values_); }
  void Put(json value, YAML::anchor_t anchor, int values_before) {
    if (++values_ > kMaxValues) Fail(base::InvalidArgument("more than {} values", kMaxValues));
    if (!failure_.ok()) return;
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {value, values_ - values_before};
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = frames_.back(); frame.tree.is_array()) {
      frame.tree.push_back(std::move(value));
    } else if (!frame.key) {
      SetKey(frame, value);
    } else {
      frame.tree[*frame.key] = std::move(value);
      frame.key.reset();
    }
  }

  void SetKey(Frame& frame, const json& value) {
    if (!value.is_string()) return Fail(base::InvalidArgument("{}: a field's name must be plain text", Path()));
    frame.key = value.get<std::string>();
    if (frame.tree.contains(*frame.key)) Fail(base::InvalidArgument("{}: given twice", Path()));
  }

  absl::Status failure_;
  json root_;
  std::vector<Frame> frames_;  // open sequences and maps, outermost first
  std::map<YAML::anchor_t, Anchored> anchors_;
  int values_ = 0;
};

// Swallows a document.
class Ignore final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

absl::StatusOr<json> ReadYaml(std::string_view text) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    YamlReader reader;
    if (!parser.HandleNextDocument(reader)) return base::InvalidArgument("the document is empty");
    // YAML::LoadAll would never end where the parser does not move on from a character that begins nothing.
    Ignore rest;
    if (parser.HandleNextDocument(rest)) return base::InvalidArgument("more than one YAML document");
    return reader.Take();
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
    default:
      out << tree.dump();
      return;
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
