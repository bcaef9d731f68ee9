// The cases of tests/data/manifests (its README says what they mean). Values; dies on a malformed
// one.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "kube/object.h"

namespace medley::ops {

struct ManifestCase {
  std::string name;  // of the file
  kube::Object manifest;
  kube::Json update;  // null: it is the creation that is refused
  std::string schema, rule, world;
  kube::Json condition;  // null, or {type, status, reason, message}

  bool is_pool() const { return manifest.kind() == "ResourcePool"; }
  // The manifest after `update`.
  kube::Object Updated() const;
  // What the operator's own validation says of it, the update included.
  std::vector<std::string> Validate() const;
};

// tests/data/crds/VERSION, or deploy/crds when it is empty, as text.
std::string CrdText(const std::string& file, const std::string& version = "");
kube::Json LoadYaml(const std::string& path);  // from the root of the tree

std::vector<kube::Object> GoodManifests();
std::vector<ManifestCase> BadManifests();

// The sentences of all rules of a CRD.
std::set<std::string> RuleSentences(const std::string& crd_file);

}  // namespace medley::ops
