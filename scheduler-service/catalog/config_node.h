// A strict reader for one mapping of a configuration file: a field must have the type that the caller expects, and a
// field that the caller did not read is an error. Errors name the path ("feeds[1].period: must be a duration ...").
//
//   ConfigNode node = ...;                       // feeds[1]
//   const std::string url = node.String("url");  // required
//   const auto regions = node.Strings("regions", {});
//   MEDLEY_RETURN_IF_ERROR(node.Finish());       // the first error, or a field that was not read
//
// The node keeps the first error and continues with default values, so the caller checks once, with Finish. A copy is
// independent of its original. Not thread-safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace medley::sched {

class ConfigNode {
 public:
  // Parses a document, YAML or JSON, whose root must be a mapping. Errors: InvalidArgument.
  static absl::StatusOr<ConfigNode> Parse(std::string_view text);
  ConfigNode(const ConfigNode& other);
  ConfigNode& operator=(const ConfigNode& other);
  ConfigNode(ConfigNode&&) noexcept;
  ConfigNode& operator=(ConfigNode&&) noexcept;
  ~ConfigNode();

  // For example "feeds[1]"; empty for the root.
  const std::string& path() const;
  // True if the field exists and is not null. Does not mark it as read.
  bool Has(const std::string& field) const;

  // A required field: a missing field or an empty string is an error.
  std::string String(const std::string& field);
  std::string String(const std::string& field, const std::string& otherwise);
  double Number(const std::string& field, double otherwise);  // finite
  int Integer(const std::string& field, int otherwise);
  bool Bool(const std::string& field, bool otherwise);
  // Go durations: 90s, 5m, 2h; days as 336h.
  base::nanoseconds Duration(const std::string& field, base::nanoseconds otherwise);
  // A list of non-empty strings; a single string counts as a list of one.
  std::vector<std::string> Strings(const std::string& field, const std::vector<std::string>& otherwise);
  // Mappings.
  std::vector<ConfigNode> List(const std::string& field);       // empty if the field is absent
  std::optional<ConfigNode> Mapping(const std::string& field);  // nullopt if the field is absent

  // Records an error that the caller found in a field: "PATH.FIELD: MESSAGE".
  void Fail(const std::string& field, std::string_view message);
  // Returns the first error, or an error for a field that was not read.
  absl::Status Finish() const;

 private:
  struct Rep;
  explicit ConfigNode(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::sched
