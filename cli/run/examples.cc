#include "cli/run/examples.h"

#include <array>
#include <string>
#include <utility>

#include "common/base/status.h"

namespace medley::cli {
namespace {

// The patterns of deploy/crds; manifests_test.cc checks that each of them is here.
constexpr std::array<std::pair<const char*, const char*>, 10> kExamples = {{
    {R"('^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$')", "90s, 5m or 1h30m"},
    {R"('^([0-9]+(\.[0-9]*)?|\.[0-9]+)(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]+))?$')", "500m, 2.5 or 16Gi"},
    {R"('^[0-9]+(\.[0-9]+)?(([KMGTPE]i)|[kMGTPE])?$')", "2, 1.5k or 16Gi"},
    {R"('^[0-9]+(\.[0-9]+)?%$')", "10% or 2.5%"},
    {R"('^[0-9]+(\.[0-9]+)?$')", "\"12\" or \"0.35\""},
    {R"('^[A-Za-z0-9-]+$')", "eu-west-1"},
    {R"('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')", "shop-keys"},
    {R"('^(s3|gs)://[a-zA-Z0-9][-a-zA-Z0-9._]+(/[^?#*\[\]]*)?$')", "s3://bucket/jobs"},
    {R"('^[1-9][0-9]*(Mi|Gi|Ti)$')", "512Mi or 2Gi"},
    {R"('^https?://[^/?#@ ]+/?$')", "https://minio.example:9000"},
}};

}  // namespace

std::string ExampleOf(const std::string& pattern) {
  for (const auto& [known, example] : kExamples) {
    if (known == "'" + pattern + "'") return example;
  }
  return "";
}

absl::Status WithExample(const absl::Status& error) {
  std::string message = base::Message(error);
  bool changed = false;
  for (const auto& [pattern, example] : kExamples) {
    const std::string quoted = pattern;
    for (size_t at = message.find(quoted); at != std::string::npos; at = message.find(quoted, at + quoted.size())) {
      message.insert(at + quoted.size(), std::string(", as in ") + example);
      changed = true;
    }
  }
  return changed ? absl::Status(error.code(), message) : error;
}

}  // namespace medley::cli
