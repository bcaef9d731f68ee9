// YAML text to a tree and back, by the parser and the emitter of yaml-cpp.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <sstream>

#include "common/base/status.h"
#include "common/document/place.h"
#include "common/document/tree_builder.h"

namespace medley::document {
namespace {

using nlohmann::json;

// Ends the parser once the builder has refused something: it has no other way to stop.
class Refused final : public std::exception {
 public:
  explicit Refused(const YAML::Mark& at) : mark(at) {}
  const YAML::Mark mark;
};

std::string PlaceOf(const YAML::Mark& mark) {
  return fmt::format("line {}, column {}", mark.line + 1, mark.column + 1);
}

bool LooksNumeric(std::string_view text) {
  const size_t digits = text[0] == '-' || text[0] == '+' ? 1 : 0;
  if (digits >= text.size()) return false;
  const char c = text[digits];
  return (c >= '0' && c <= '9') || (c == '.' && digits + 1 < text.size());
}

bool IsNotFinite(std::string_view text) {
  if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
  return text == ".inf" || text == ".Inf" || text == ".INF" || text == ".nan" || text == ".NaN" || text == ".NAN";
}

// `text` without quotes, by YAML 1.2's core schema: null, true, false, numbers; everything else is a string.
// `finite` becomes false for a number that no double holds; the value is a string then.
json PlainScalar(const std::string& text, bool& finite) {
  finite = true;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  finite = !IsNotFinite(text);
  if (!finite || !LooksNumeric(text)) return text;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  if (auto [rest, error] = std::from_chars(first, end, integer); error == std::errc() && rest == end) return integer;
  uint64_t large = 0;
  if (auto [rest, error] = std::from_chars(first, end, large); error == std::errc() && rest == end) return large;
  double real = 0;
  const auto [rest, error] = std::from_chars(first, end, real);
  if (rest != end) return text;
  finite = error == std::errc();
  return finite ? json(real) : json(text);
}

// What yaml-cpp writes as it is, and reads as the end of a line or of a document.
bool NeedsQuotes(std::string_view text) {
  return text.starts_with("---") || text.starts_with("...") ||
         std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

bool IsPlainString(const std::string& text) {
  bool finite = true;
  return PlainScalar(text, finite).is_string() && finite;
}

class YamlEvents final : public YAML::EventHandler {
 public:
  explicit YamlEvents(TreeBuilder& builder) : builder_(builder) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { Check(mark, builder_.Put(nullptr, anchor)); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override { Check(mark, builder_.Alias(anchor)); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    // "!" is what the parser calls a quoted scalar.
    const bool quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!quoted) CheckTag(mark, tag);
    if (builder_.ExpectsKey()) {
      return Check(mark, anchor == YAML::NullAnchor ? builder_.Key(text)
                                                    : builder_.Fail("the name of a field may not have an anchor"));
    }
    bool finite = true;
    json value = quoted ? json(text) : PlainScalar(text, finite);
    Check(mark, finite ? builder_.Put(std::move(value), anchor) : builder_.Fail(text + " is not a finite number"));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Check(mark, builder_.Open(json::array(), anchor));
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    CheckTag(mark, tag);
    Check(mark, builder_.Open(json::object(), anchor));
  }
  void OnSequenceEnd() override { Check(last_, builder_.Close()); }
  void OnMapEnd() override { Check(last_, builder_.Close()); }

 private:
  void CheckTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      Check(mark, builder_.Fail("tags such as " + tag + " are not supported"));
  }
  void Check(const YAML::Mark& mark, bool ok) {
    last_ = mark;
    if (!ok) throw Refused(mark);
  }

  TreeBuilder& builder_;
  YAML::Mark last_;
};

// nlohmann's writer refuses what is not UTF-8, and YAML's reader lets some of it pass.
absl::Status CheckUtf8(const json& tree) {
  try {
    static_cast<void>(tree.dump());
    return absl::OkStatus();
  } catch (const json::exception&) {
    return base::InvalidArgument("the document is not valid UTF-8");
  }
}

// Up to `most` documents; more are an error. Empty ones are null.
absl::StatusOr<std::vector<json>> ReadDocuments(std::string_view text, const Limits& limits, int most) {
  if (text.size() > limits.bytes) return CheckSize(text, limits);
  TreeBuilder builder(limits, text.size(), nullptr);
  std::vector<json> documents;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // The count bounds the parser too: it may give empty documents without end for a character that begins nothing.
    for (;;) {
      YamlEvents events(builder);
      if (!parser.HandleNextDocument(events)) return documents;
      if (static_cast<int>(documents.size()) == most) {
        if (most == 1) return base::InvalidArgument("more than one YAML document");
        return base::InvalidArgument("more than {} YAML documents", most);
      }
      documents.push_back(builder.Take());
      MEDLEY_RETURN_IF_ERROR(CheckUtf8(documents.back()));
    }
  } catch (const Refused& refused) {
    return base::InvalidArgument("{}, at {}", builder.failure(), PlaceOf(refused.mark));
  } catch (const YAML::Exception& error) {
    return base::InvalidArgument("broken YAML at {}: {}", PlaceOf(error.mark), error.msg);
  }
}

void Emit(const json& tree, YAML::Emitter& out) {
  switch (tree.type()) {
    case json::value_t::object:
      out << YAML::BeginMap;
      for (const auto& [key, value] : tree.items()) {
        out << YAML::Key;
        if (NeedsQuotes(key)) out << YAML::DoubleQuoted;
        out << key << YAML::Value;
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
      if (!IsPlainString(text) || NeedsQuotes(text)) out << YAML::DoubleQuoted;
      out << text;
      return;
    }
    case json::value_t::null:
      out << YAML::Null;
      return;
    default:
      out << tree.dump();
      return;
  }
}

}  // namespace

absl::StatusOr<json> ParseYaml(std::string_view text, const Limits& limits) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<json> documents, ReadDocuments(text, limits, 1));
  return documents.empty() ? json() : std::move(documents.front());
}

absl::StatusOr<std::vector<json>> ParseYamlStream(std::string_view text, const Limits& limits) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<json> documents, ReadDocuments(text, limits, kMaxDocuments));
  std::erase_if(documents, [](const json& document) { return document.is_null(); });
  return documents;
}

std::string ToYaml(const json& tree) {
  YAML::Emitter out;
  Emit(tree, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace medley::document
