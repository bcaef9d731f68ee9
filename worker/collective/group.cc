#include "worker/collective/group.h"

#include <utility>

#include "common/base/status.h"
#include "worker/collective/mesh_group.h"
#include "worker/collective/shared_memory_group.h"

namespace medley::worker {

absl::StatusOr<std::unique_ptr<Group>> Group::Connect(const GroupOptions& options, KeyValueStore& store,
                                                      std::stop_token stop) {
  const int size = static_cast<int>(options.members.size());
  if (size == 0 || options.rank < 0 || options.rank >= size) {
    return base::InvalidArgument("group {}: rank {} does not exist among {} members", options.name, options.rank, size);
  }
  auto group = ConnectMeshGroup(options, store, stop);
  if (!group.ok() || size == 1 || !options.share_memory) return group;
  return ShareMemory(*std::move(group), options, std::move(stop));
}

}  // namespace medley::worker
