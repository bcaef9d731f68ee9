// Kubernetes objects as JSON, with typed access to metadata.
//
// No kind has a C++ type in this library; callers that own a kind (operator/api) convert it.
// Object is a value and not thread-safe. Caches hand out ObjectPtr, which is shared and immutable.
#pragma once

#include <absl/status/statusor.h>

#include <compare>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace medley::kube {

using Json = nlohmann::json;

// One line of JSON. Never throws: bytes that are not UTF-8 are replaced.
std::string Dump(const Json& json);

// A resource of the API: the parts of its URLs, and its kind.
struct Resource {
  std::string group;  // "" for the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  // "v1" or "group/version".
  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // "/api/v1/namespaces/NS/pods/NAME/status". Empty parts are omitted.
  std::string Path(std::string_view ns, std::string_view name = "", std::string_view subresource = "") const;
  auto operator<=>(const Resource&) const = default;
};

// The core resources that Medley uses.
namespace resources {
Resource Pods();
Resource Services();
Resource ConfigMaps();
Resource Secrets();
Resource Nodes();
Resource Namespaces();
Resource ResourceQuotas();
Resource Events();                     // core/v1
Resource NetworkPolicies();            // networking.k8s.io/v1
Resource PodDisruptionBudgets();       // policy/v1
Resource Leases();                     // coordination.k8s.io/v1
Resource CustomResourceDefinitions();  // apiextensions.k8s.io/v1
}  // namespace resources

// "ns/name", or "name" for a cluster-scoped object.
struct Key {
  std::string ns;
  std::string name;
  std::string ToString() const { return ns.empty() ? name : ns + "/" + name; }
  auto operator<=>(const Key&) const = default;
};

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

class Object {
 public:
  Object() : json_(Json::object()) {}
  explicit Object(Json json) : json_(std::move(json)) {}
  // Sets apiVersion, kind, metadata.name and metadata.namespace.
  Object(const Resource& resource, Key key);

  const Json& json() const { return json_; }
  Json& mutable_json() { return json_; }
  // The value at a JSON pointer ("/spec/suspend"); null if absent.
  const Json& At(std::string_view pointer) const;

  std::string api_version() const { return String("/apiVersion"); }
  std::string kind() const { return String("/kind"); }
  Key key() const { return {String("/metadata/namespace"), String("/metadata/name")}; }
  std::string uid() const { return String("/metadata/uid"); }
  std::string resource_version() const { return String("/metadata/resourceVersion"); }
  int64_t generation() const;
  bool deleting() const { return !At("/metadata/deletionTimestamp").is_null(); }
  std::string label(std::string_view name) const;
  std::string annotation(std::string_view name) const;
  std::vector<OwnerReference> owners() const;
  std::optional<OwnerReference> controller() const;
  // The string at `pointer`, or "".
  std::string String(std::string_view pointer) const;

  void SetLabel(std::string_view name, std::string_view value);
  void SetAnnotation(std::string_view name, std::string_view value);
  // Errors: AlreadyExists if the object has another controller.
  absl::Status SetController(const Object& owner);

 private:
  Json json_;
};
using ObjectPtr = std::shared_ptr<const Object>;

// A label selector, parsed from "a=b,c!=d,e in (x,y),f,!g". Errors: InvalidArgument.
class LabelSelector {
 public:
  static absl::StatusOr<LabelSelector> Parse(std::string_view text);
  bool Matches(const Object& object) const;

 private:
  struct Requirement {
    std::string key;
    enum class Op { kExists, kMissing, kIn, kNotIn } op;
    std::vector<std::string> values;
  };
  std::vector<Requirement> requirements_;
};

// JSON merge patch (RFC 7386).
void MergePatch(Json& target, const Json& patch);

}  // namespace medley::kube
