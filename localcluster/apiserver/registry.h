// Which resources this server has: the built-in ones and those of the CRDs. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/mutex.h"
#include "localcluster/apiserver/schema.h"

namespace medley::kube::apiserver {

// One version of one resource. Immutable; a request keeps it alive while its CRD changes.
struct ResourceInfo {
  Resource resource;
  std::string singular;
  std::string list_kind;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool builtin = true;
  bool has_status = false;
  bool has_generation = false;  // spec changes bump metadata.generation
  bool has_scale = false;
  std::string spec_replicas, status_replicas, label_selector;  // ".spec.replicas", of scale
  std::string definition;                                      // built-in: its name in Definitions
  Json schema_document;  // CRD: openAPIV3Schema with apiVersion, kind and metadata
  Schema schema;         // invalid: anything goes
  Json columns;          // CRD: additionalPrinterColumns, or null
  std::string crd;       // CRD: its name

  // Objects of all versions of a resource live together.
  std::string bucket() const { return resource.group + "/" + resource.plural; }
};
using InfoPtr = std::shared_ptr<const ResourceInfo>;

// The built-in resources. `definitions` is borrowed.
std::vector<InfoPtr> BuiltinResources(const Definitions& definitions);

class Registry {
 public:
  explicit Registry(const Definitions& definitions);

  // Null when there is none.
  InfoPtr Find(const std::string& group, const std::string& version, const std::string& plural) const;
  InfoPtr FindKind(const std::string& group, const std::string& version, const std::string& kind) const;
  // Any version of a resource; null when there is none.
  InfoPtr FindBucket(const std::string& bucket) const;
  std::vector<InfoPtr> All() const;  // sorted by group, version, plural
  const Definitions& definitions() const { return definitions_; }

  // Serves the served versions of a (validated) CRD in place of what it said before.
  void SetCrd(const Json& crd);
  void RemoveCrd(const std::string& name);

 private:
  using Id = std::tuple<std::string, std::string, std::string>;  // group, version, plural

  const Definitions& definitions_;
  mutable base::Mutex mutex_;
  std::map<Id, InfoPtr> infos_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::kube::apiserver
