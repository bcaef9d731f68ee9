// A mapping of a configuration file that is read strictly: every field has the type that its reader asks for, and a
// field that nobody asked for is an error. Errors name the path ("feeds[1].period: must be a duration ...").
//
//   ConfigNode node = ...;                       // feeds[1]
//   const std::string url = node.String("url");  // required
//   const auto regions = node.Strings("regions", {});
//   MEDLEY_RETURN_IF_ERROR(node.Finish());       // the first thing that was wrong, or a field that was not read
//
// The first error is kept and later reads give empty values, so that a reader needs one check at its end. A copy starts
// as its original stands and then goes its own way. Not thread-safe.
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
  // A whole document, YAML or JSON: a mapping. Errors: InvalidArgument.
  static absl::StatusOr<ConfigNode> Parse(std::string_view text);
  ConfigNode(const ConfigNode& other);
  ConfigNode& operator=(const ConfigNode& other);
  ConfigNode(ConfigNode&&) noexcept;
  ConfigNode& operator=(ConfigNode&&) noexcept;
  ~ConfigNode();

  // "feeds[1]"; empty for the document.
  const std::string& path() const;
  // True when the field is there (and not null). Does not count as reading it.
  bool Has(const std::string& field) const;

  // Required: not there is an error, and so is an empty string.
  std::string String(const std::string& field);
  std::string String(const std::string& field, const std::string& otherwise);
  double Number(const std::string& field, double otherwise);  // finite
  int Integer(const std::string& field, int otherwise);
  bool Bool(const std::string& field, bool otherwise);
  // Go durations: 90s, 5m, 2h; days as 336h.
  base::nanoseconds Duration(const std::string& field, base::nanoseconds otherwise);
  // A list of strings, or one string for a list of one; no empty ones.
  std::vector<std::string> Strings(const std::string& field, const std::vector<std::string>& otherwise);
  // Mappings.
  std::vector<ConfigNode> List(const std::string& field);       // not there: empty
  std::optional<ConfigNode> Mapping(const std::string& field);  // not there: none

  // Notes an error of the reader's own about a field: "PATH.FIELD: MESSAGE".
  void Fail(const std::string& field, std::string_view message);
  // The first error, or that a field is not known.
  absl::Status Finish() const;

 private:
  struct Rep;
  explicit ConfigNode(std::unique_ptr<Rep> rep);
  std::unique_ptr<Rep> rep_;
};

}  // namespace medley::sched
