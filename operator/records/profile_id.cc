#include "operator/records/profile_id.h"

namespace medley::ops {

kube::Key KeyOf(const ProfileId& id) { return {id.ns, id.hash + "." + id.pool}; }

std::optional<ProfileId> ProfileIdOf(const kube::Key& key) {
  const size_t dot = key.name.find('.');
  if (dot == 0 || dot == std::string::npos || dot + 1 == key.name.size()) return std::nullopt;
  return ProfileId{key.ns, key.name.substr(0, dot), key.name.substr(dot + 1)};
}

}  // namespace medley::ops
