// A view of a structural OpenAPI schema of a built-in kind or a CRD, which follows $refs.
//
// A Schema consists of pointers: copy it freely, but the document and the Definitions must outlive it. An invalid
// Schema (`!schema`) allows every value. Thread-safe, because nothing is written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/object.h"

namespace medley::kube {

class Schema;

// Schemas by name, to which references ($ref) point.
class Definitions {
 public:
  // `all`: an object of schemas.
  explicit Definitions(Json all) : all_(std::move(all)) {}
  // An invalid Schema if the definition does not exist.
  Schema Find(std::string_view name) const;
  const Json& all() const { return all_; }

 private:
  Json all_;
};

class Schema {
 public:
  enum class ListType { kAtomic, kSet, kMap };

  Schema() = default;
  Schema(const Json* node, const Definitions* definitions);

  explicit operator bool() const { return node_ != nullptr; }
  const Json& json() const { return *node_; }
  // "", "object", "array", "string", ...
  std::string_view type() const;
  // The schema of field `name`: from properties, else additionalProperties. Sets `known` to whether one of them covers
  // the field.
  Schema Field(std::string_view name, bool* known = nullptr) const;
  Schema Items() const;
  Schema Sub(const Json& node) const { return Schema(&node, definitions_); }

  bool Flag(std::string_view name) const;  // a boolean keyword
  bool preserve_unknown() const { return Flag("x-kubernetes-preserve-unknown-fields"); }
  bool int_or_string() const;
  bool quantity() const { return ref_ == "io.k8s.apimachinery.pkg.api.resource.Quantity"; }
  bool embedded_resource() const { return Flag("x-kubernetes-embedded-resource"); }
  // Allows any JSON value: has no type and no properties.
  bool untyped() const;
  bool map_atomic() const;
  ListType list_type() const;
  std::vector<std::string> list_map_keys() const;
  // Strategic merge patch: the key by which a list is merged, or "" if it is not. patch_merges: merge scalars as a set.
  std::string patch_merge_key() const;
  bool patch_merges() const;
  const Json* Default() const;

 private:
  const Json* node_ = nullptr;
  const Definitions* definitions_ = nullptr;
  std::string_view ref_;
};

}  // namespace medley::kube
