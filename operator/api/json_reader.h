// Reads typed values from JSON. The first field of a wrong type sets the status: an InvalidArgument that names the
// field by its path. Internal to operator/api.
//
//   JsonReader spec(json, "spec");
//   const int keep = spec.Child("checkpoint").Int("keep", 3);
//   MEDLEY_RETURN_IF_ERROR(spec.status());
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "kube/object.h"

namespace medley::ops {

// Borrows the JSON. Children share the status of their root. Not thread-safe.
class JsonReader {
 public:
  JsonReader(const kube::Json& json, std::string path)
      : json_(&json), path_(std::move(path)), status_(std::make_shared<absl::Status>()) {}

  const absl::Status& status() const { return *status_; }
  const std::string& path() const { return path_; }
  bool Has(const char* field) const { return Find(field) != nullptr; }
  // The object in `field`; an empty object when the field is absent.
  JsonReader Child(const char* field) const;
  std::vector<JsonReader> Items(const char* field) const;

  std::string String(const char* field, std::string fallback = "") const;
  int64_t Int(const char* field, int64_t fallback) const;
  double Number(const char* field, double fallback) const;
  bool Bool(const char* field, bool fallback) const;
  double Seconds(const char* field, double fallback) const;               // a Go duration ("1h30m")
  double Quantity(const char* field, double fallback) const;              // a string ("16Gi") or a number
  std::map<std::string, std::string> StringMap(const char* field) const;  // numbers become text
  std::vector<std::string> Strings(const char* field) const;
  // The value unchanged; an empty object when the field is absent.
  kube::Json Raw(const char* field) const;

 private:
  JsonReader(const kube::Json& json, std::string path, std::shared_ptr<absl::Status> status)
      : json_(&json), path_(std::move(path)), status_(std::move(status)) {}
  const kube::Json* Find(const char* field) const;  // null for absent and for JSON null
  void Fail(const std::string& field, const std::string& want) const;

  const kube::Json* json_;
  std::string path_;
  std::shared_ptr<absl::Status> status_;
};

}  // namespace medley::ops
