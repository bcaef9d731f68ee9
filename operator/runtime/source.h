// From a change of an object to the keys to reconcile. All functions returned are pure and thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "kube/cache/informer.h"

namespace medley::ops {

using KeyMapper = std::function<std::vector<kube::Key>(const kube::Object&)>;

// The object itself.
KeyMapper MapSelf();
// Its controller owner, when that has the group and kind of `owners`' resource, and unless the owner that
// the cache holds under the name has another UID.
KeyMapper MapController(const kube::Informer& owners);

// Which updates count. Null: all.
using UpdateFilter = std::function<bool(const kube::Object& before, const kube::Object& now)>;
// metadata.generation changed (the spec, not the status), or deletion began, or it is another object (UID).
UpdateFilter GenerationChanged();

}  // namespace medley::ops
