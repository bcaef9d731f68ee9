// Reads the cases of tests/data/manifests, whose README explains them. Values. Aborts on a malformed case.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

struct ManifestCase {
  std::string name;  // of the file
  kube::Object manifest;
  kube::Json update;  // null: the creation is refused, not an update
  std::string schema, rule, world;
  kube::Json condition;  // null, or {type, status, reason, message}

  bool is_pool() const { return manifest.kind() == "ResourcePool"; }
  // The manifest after `update`.
  kube::Object Updated() const;
  // The messages of the operator's own validation, including those for the update.
  std::vector<std::string> Validate() const;
};

// The text of a CRD in tests/data/crds/VERSION, or in deploy/crds when the version is empty.
std::string CrdText(const std::string& file, const std::string& version = "");
kube::Json LoadYaml(const std::string& path);  // relative to the root of the source tree

std::vector<kube::Object> GoodManifests();
std::vector<ManifestCase> BadManifests();

// The messages of all CEL rules of a CRD.
std::set<std::string> RuleSentences(const std::string& crd_file);

}  // namespace medley::ops
