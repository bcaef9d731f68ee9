// Maps a changed object to the keys to reconcile. The returned functions are pure and thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "kube/cache/informer.h"

namespace medley::ops {

using KeyMapper = std::function<std::vector<kube::Key>(const kube::Object&)>;

// Maps an object to its own key.
KeyMapper MapSelf();
// Maps an object to its controller (owner reference with controller: true) when that has the group and kind of
// `owners`' resource. Returns no key when the cache holds an owner with the same name and another UID.
KeyMapper MapController(const kube::Informer& owners);

// True for updates that enqueue keys. Null: all updates.
using UpdateFilter = std::function<bool(const kube::Object& before, const kube::Object& now)>;
// True when metadata.generation changed (the spec, not the status), when the object became terminating, or when it is
// another object (UID).
UpdateFilter GenerationChanged();

}  // namespace medley::ops
