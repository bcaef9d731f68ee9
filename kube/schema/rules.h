// The rules of a schema (x-kubernetes-validations): expressions of CEL that its values must meet.
//
//   MEDLEY_ASSIGN_OR_RETURN(const Rules rules, Rules::Compile(schema));  // once
//   rules.Check(object, nullptr, &errors);                               // often
//
// Immutable and thread-safe.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "kube/schema/field_error.h"

namespace medley::kube {

class Rules {
 public:
  // `schema`: the openAPIV3Schema of a version of a CRD, of the whole object. Errors: InvalidArgument: the path of a
  // rule, and why it is no expression over the values of the schema.
  static absl::StatusOr<Rules> Compile(const Json& schema);
  Rules(Rules&&) noexcept;
  Rules& operator=(Rules&&) noexcept;
  ~Rules();

  // Appends an error for each rule that `object` breaks, the rules of an object before those of its fields. A rule that
  // has no value, or takes too long, is an error too. `object` must fit the schema (ValidateSchema) and have its
  // defaults. `old`: what an update replaces, or null. Rules about oldSelf count where both values exist; others do not
  // fault what an update leaves as it was.
  void Check(const Json& object, const Json* old, FieldErrors* errors) const;

 private:
  struct Node;
  class Compiler;
  class Checker;
  explicit Rules(std::unique_ptr<const Node> root);

  std::unique_ptr<const Node> root_;  // null: no rules
};

}  // namespace medley::kube
