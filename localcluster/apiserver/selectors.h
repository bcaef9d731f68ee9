// Selects the objects of a list or a watch. Immutable after Parse.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "localcluster/apiserver/registry.h"

namespace medley::localcluster::apiserver {

class Selector {
 public:
  // Errors: 400 for invalid syntax, and for a field by which the resource cannot be selected.
  static absl::StatusOr<Selector> Parse(const ResourceInfo& info, const std::string& ns, const std::string& labels,
                                        const std::string& fields);
  bool Matches(const kube::Object& object) const;

 private:
  struct Term {
    std::string pointer;  // "/metadata/name"
    std::string value;
    bool equal = true;
  };
  std::string ns_;
  std::optional<kube::LabelSelector> labels_;
  std::vector<Term> fields_;
};

}  // namespace medley::localcluster::apiserver
