#include "worker/coordinator/core/cut_sync.h"

#include <utility>

namespace medley::worker {

void CutSync(const NewIds& ids, plan::v1::Sync& sync) {
  const auto root = ids.find(sync.root());
  sync.set_root(root == ids.end() ? "" : root->second);
  google::protobuf::RepeatedPtrField<plan::v1::HierarchyLevel> levels;
  for (const plan::v1::HierarchyLevel& level : sync.hierarchy()) {
    plan::v1::HierarchyLevel kept;
    kept.set_algorithm(level.algorithm());
    for (const plan::v1::DeviceGroup& group : level.groups()) {
      plan::v1::DeviceGroup devices;
      for (const std::string& device : group.devices()) {
        const auto id = ids.find(device);
        if (id != ids.end()) devices.add_devices(id->second);
      }
      if (devices.devices_size() > 0) *kept.add_groups() = std::move(devices);
    }
    if (kept.groups_size() > 0) *levels.Add() = std::move(kept);
  }
  sync.mutable_hierarchy()->Swap(&levels);
}

}  // namespace medley::worker
