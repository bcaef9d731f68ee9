// Text to JSON at the edge: bounded in depth, duplicates reported, YAML too. Pure functions.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace medley::kube::apiserver {

// Deeper documents are refused, so that every recursion below is bounded.
inline constexpr int kMaxDepth = 200;

struct ParsedJson {
  Json value;
  std::vector<std::string> duplicates;  // "spec.replicas": keys given twice; the last one stands
};

// Errors: InvalidArgument with the place.
absl::StatusOr<ParsedJson> ParseJson(std::string_view text);

// Every document of a YAML (or JSON) stream; empty documents are left out.
absl::StatusOr<std::vector<Json>> ParseYaml(std::string_view text);

// dump() that never throws: broken UTF-8 is replaced.
std::string Dump(const Json& value);

}  // namespace medley::kube::apiserver
