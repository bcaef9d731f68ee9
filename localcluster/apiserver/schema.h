// A view of a structural OpenAPI schema, of a built-in kind or of a CRD, with $refs followed.
//
// A Schema is two pointers: copy it freely, while the document and the Definitions live. An invalid
// Schema (`!schema`) stands for "anything goes". Thread-safe: nothing is written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kube/object.h"

namespace medley::kube::apiserver {

class Schema;

// Definitions by name: those of the built-in kinds, compiled into the program (schemas/builtin.json).
class Definitions {
 public:
  Definitions();
  // An invalid Schema when there is none.
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
  // The schema of field `name`: from properties, else additionalProperties; `known` says whether any
  // of them covers it.
  Schema Field(std::string_view name, bool* known = nullptr) const;
  Schema Items() const;
  Schema Sub(const Json& node) const { return Schema(&node, definitions_); }

  bool Flag(std::string_view name) const;  // a boolean keyword
  bool preserve_unknown() const { return Flag("x-kubernetes-preserve-unknown-fields"); }
  bool int_or_string() const;
  bool quantity() const { return ref_ == "io.k8s.apimachinery.pkg.api.resource.Quantity"; }
  bool embedded_resource() const { return Flag("x-kubernetes-embedded-resource"); }
  // Any JSON at all (no type, no properties).
  bool untyped() const;
  bool map_atomic() const;
  ListType list_type() const;
  std::vector<std::string> list_map_keys() const;
  // Strategic merge: the key of a list that merges; "" when it replaces. `set`: scalars that merge.
  std::string patch_merge_key() const;
  bool patch_merges() const;
  const Json* Default() const;

 private:
  const Json* node_ = nullptr;
  const Definitions* definitions_ = nullptr;
  std::string_view ref_;
};

}  // namespace medley::kube::apiserver
