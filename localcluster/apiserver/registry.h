// The resources of this server: the built-in ones and those of CRDs. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/mutex.h"
#include "kube/schema/rules.h"
#include "kube/schema/schema.h"

namespace medley::localcluster::apiserver {

// One version of one resource. Immutable; a request keeps it alive even if its CRD changes.
struct ResourceInfo {
  kube::Resource resource;
  std::string singular;
  std::string list_kind;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  bool builtin = true;
  bool has_status = false;
  bool has_generation = false;  // changes of spec increment metadata.generation
  bool has_scale = false;
  std::string spec_replicas, status_replicas, label_selector;  // ".spec.replicas", of scale
  std::string definition;                                      // built-in: its name in Definitions
  kube::Json schema_document;                // CRD: openAPIV3Schema with apiVersion, kind and metadata
  kube::Schema schema;                       // invalid: every value is allowed
  std::shared_ptr<const kube::Rules> rules;  // CRD: of its schema; null: none
  kube::Json columns;                        // CRD: additionalPrinterColumns, or null
  std::string crd;                           // CRD: its name

  // The name of the store's bucket, which holds the objects of all versions of a resource.
  std::string bucket() const { return resource.group + "/" + resource.plural; }
};
using InfoPtr = std::shared_ptr<const ResourceInfo>;

// The built-in resources. `definitions` is borrowed.
std::vector<InfoPtr> BuiltinResources(const kube::Definitions& definitions);

class Registry {
 public:
  explicit Registry(const kube::Definitions& definitions);

  // Null if the resource does not exist.
  InfoPtr Find(const std::string& group, const std::string& version, const std::string& plural) const;
  InfoPtr FindKind(const std::string& group, const std::string& version, const std::string& kind) const;
  // Any version of a resource; null if the resource does not exist.
  InfoPtr FindBucket(const std::string& bucket) const;
  std::vector<InfoPtr> All() const;  // sorted by group, version, plural
  const kube::Definitions& definitions() const { return definitions_; }

  // Serves the served versions of a validated CRD; replaces the CRD's previous versions.
  void SetCrd(const kube::Json& crd);
  void RemoveCrd(const std::string& name);

 private:
  using Id = std::tuple<std::string, std::string, std::string>;  // group, version, plural

  const kube::Definitions& definitions_;
  mutable base::Mutex mutex_;
  std::map<Id, InfoPtr> infos_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace medley::localcluster::apiserver
