// The only parser of JSON and YAML text in Medley. It turns text into a tree of values, within limits.
//
// It accepts what both languages have in common: objects whose fields have strings as names and occur once, lists,
// strings of valid UTF-8, finite numbers, booleans and null. YAML follows the 1.2 core schema (`010` is ten, `yes` is a
// string). Aliases are expanded, but anchors and aliases add at most kAliasFactor times the text.
//
// Pure and thread-safe. Errors: InvalidArgument with the path of the field, the line and the column:
// "training.epochs: is given twice, at line 7, column 3"; "broken YAML at line 3, column 1: ...".
#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace medley::document {

struct Limits {
  size_t bytes = size_t{16} << 20;
  int depth = 64;             // nested objects and lists
  size_t values = 1'000'000;  // of the expanded tree
};

// How much anchors and aliases may add, as a multiple of the text's size.
inline constexpr size_t kAliasFactor = 16;
inline constexpr int kMaxDocuments = 1000;

// Parses one document, as JSON when the text begins with { or [, else as YAML. An empty document is an error.
absl::StatusOr<nlohmann::json> Parse(std::string_view text, const Limits& limits = {});

// With `duplicates`, a field that is given twice is not an error: the last value counts, and the field's path is added.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const Limits& limits = {},
                                         std::vector<std::string>* duplicates = nullptr);

// Parses YAML, also when the text begins with a brace (JSON is accepted as well). An empty document is null.
absl::StatusOr<nlohmann::json> ParseYaml(std::string_view text, const Limits& limits = {});

// The documents of a YAML stream except empty ones, at most kMaxDocuments. The limits apply to all of them together.
absl::StatusOr<std::vector<nlohmann::json>> ParseYamlStream(std::string_view text, const Limits& limits = {});

// Block YAML that ParseYaml reads back as `tree`.
std::string ToYaml(const nlohmann::json& tree);

}  // namespace medley::document
