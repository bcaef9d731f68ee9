#include "operator/runtime/source.h"

namespace medley::ops {
namespace {

std::string GroupOf(const std::string& api_version) {
  const size_t slash = api_version.find('/');
  return slash == std::string::npos ? "" : api_version.substr(0, slash);
}

}  // namespace

KeyMapper MapSelf() {
  return [](const kube::Object& object) { return std::vector<kube::Key>{object.key()}; };
}

KeyMapper MapController(const kube::Informer& owners) {
  return [&owners](const kube::Object& object) -> std::vector<kube::Key> {
    const kube::Resource& resource = owners.resource();
    const auto owner = object.controller();
    if (!owner || owner->kind != resource.kind || GroupOf(owner->api_version) != resource.group) {
      return {};
    }
    kube::Key key{resource.namespaced ? object.key().ns : "", owner->name};
    const std::string cached = owners.store().UidOf(key);
    if (!cached.empty() && cached != owner->uid) return {};
    return {std::move(key)};
  };
}

UpdateFilter GenerationChanged() {
  return [](const kube::Object& before, const kube::Object& now) {
    return before.generation() != now.generation() || before.deleting() != now.deleting() || before.uid() != now.uid();
  };
}

}  // namespace medley::ops
