// What an OpenAPI schema says of single fields: types, minimum, maximum, length, number of items and of fields,
// patterns; and enumerations and required fields. Made once of a schema; then immutable and thread-safe.
#pragma once

#include <absl/status/status.h>

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace re2 {
class RE2;
}

namespace medley::model {

class SchemaBounds {
 public:
  // Whether a value must have the required fields, and one of the values of an enumeration.
  enum class Check { kPresentFields, kAll };

  explicit SchemaBounds(const nlohmann::json& schema);
  SchemaBounds(SchemaBounds&&) noexcept;
  ~SchemaBounds();

  // A field that is null is not checked, nor is one that the schema does not know. Errors: InvalidArgument for the
  // first violation, as "spec.limit: must be at most 1000000, is 2000000".
  absl::Status Of(const nlohmann::json& value, const std::string& path, Check check) const;
  // The same for a number alone. `value` may be what stands in no field, as a column of a range.
  absl::Status OfNumber(double value, const std::string& path) const;

 private:
  absl::Status OfType(const nlohmann::json& value, const std::string& path) const;
  absl::Status OfText(const std::string& text, const std::string& path, Check check) const;
  absl::Status OfFields(const nlohmann::json& object, const std::string& path, Check check) const;
  absl::Status OfItems(const nlohmann::json& list, const std::string& path, Check check) const;

  std::string type_;  // empty: any
  bool int_or_string_ = false;
  std::optional<double> minimum_, maximum_;
  bool above_ = false, below_ = false;  // whether the minimum and the maximum are none of the values
  std::optional<size_t> min_length_, max_length_, min_items_, max_items_, min_fields_, max_fields_;
  std::unique_ptr<const re2::RE2> pattern_;
  std::vector<std::string> names_;     // of an enumeration; empty: any text
  std::vector<std::string> required_;  // fields
  std::map<std::string, SchemaBounds, std::less<>> fields_;
  std::unique_ptr<const SchemaBounds> items_, values_;  // of a list; of a map
};

}  // namespace medley::model
