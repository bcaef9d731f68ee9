#include "worker/collective/mesh_group.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "worker/collective/mesh.h"
#include "worker/collective/mesh_group_class.h"

namespace medley::worker {

absl::Status MeshGroup::Start() {
  try {
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (peers_[i].stream == nullptr) continue;
      threads_.emplace_back([this, i] { Read(i); });
      threads_.emplace_back([this, i] { Write(i); });
    }
  } catch (const std::system_error& error) {
    CloseFor(error.what());
    return base::ResourceExhausted("starting two threads for each of {} peers: {}", peers_.size() - 1, error.what());
  }
  return absl::OkStatus();
}

absl::Status MeshGroup::Ended(const std::string& what, absl::Status status) {
  if (status.ok()) return status;
  bool first = false;
  {
    base::MutexLock lock(mutex_);
    first = !closed_ || (!lost_.empty() && !reported_);
    reported_ = true;
  }
  if (first) {
    CloseFor(fmt::format("{} failed: {}", what, base::Message(status)));
    return base::Unavailable("{} in group {}: {}", what, options().name, base::Message(status));
  }
  base::MutexLock lock(mutex_);
  return base::Aborted("{}: group {} is closed: {}", what, options().name, why_);
}

void MeshGroup::Leave() {
  std::vector<PeerStream*> in_order;
  {
    base::MutexLock lock(mutex_);
    if (closed_) return;
    closed_ = true;
    why_ = "the group is destroyed";
    for (MeshPeer& peer : peers_) {
      if (peer.stream == nullptr) continue;
      if (peer.sending || !peer.queue.empty()) {
        peer.stream->Shutdown();  // it would miss messages
      } else {
        in_order.push_back(peer.stream.get());
      }
    }
    WakeAll();
  }
  const base::SteadyTime deadline = base::SystemClock().Steady() + base::seconds(1);
  const MessageHeader farewell{kFarewellTag, 0};
  for (PeerStream* stream : in_order) stream->Leave(std::as_bytes(std::span(&farewell, 1)), deadline);
}

void MeshGroup::CloseFor(std::string_view why) {
  base::MutexLock lock(mutex_);
  if (closed_) return;
  closed_ = true;
  why_ = why;
  for (MeshPeer& peer : peers_) {
    if (peer.stream != nullptr) peer.stream->Shutdown();
  }
  WakeAll();
}

// The group is closed, or a peer has left.
void MeshGroup::WakeAll() {
  written_.NotifyAll();
  for (MeshPeer& peer : peers_) {
    peer.to_read.NotifyAll();
    peer.to_write.NotifyAll();
    for (const auto& [tag, receivers] : peer.receivers) {
      for (MessageReceiver* receiver : receivers) receiver->changed.NotifyAll();
    }
  }
}

absl::StatusOr<std::unique_ptr<Group>> ConnectMeshGroup(const GroupOptions& options, KeyValueStore& store,
                                                        std::stop_token stop) {
  if (options.members.size() == 1)
    return std::make_unique<MeshGroup>(options, std::vector<std::unique_ptr<PeerStream>>(1));
  auto streams = ConnectMesh(options, store, stop);
  if (!streams.ok()) return base::Annotate(streams.status(), fmt::format("connecting group {}", options.name));
  auto group = std::make_unique<MeshGroup>(options, *std::move(streams));
  MEDLEY_RETURN_IF_ERROR(group->Start());
  return group;
}

}  // namespace medley::worker
