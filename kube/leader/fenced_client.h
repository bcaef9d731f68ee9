// A Client whose writes are refused while `guard` says so: for a leader that may have been deposed (it was paused, and
// wakes in the middle of its work). Reads go through. Thread-safe, as the client and the guard are.
//
// What has left already cannot be called back: receivers that must not take it compare terms or resourceVersions.
#pragma once

#include <functional>

#include "kube/client.h"

namespace medley::kube {

class FencedClient final : public Client {
 public:
  // `client` is borrowed. `guard`'s error is what a refused write returns.
  FencedClient(Client& client, std::function<absl::Status()> guard) : client_(client), guard_(std::move(guard)) {}

  absl::StatusOr<Object> Get(const Resource& resource, const Key& key) override;
  absl::StatusOr<ObjectList> List(const Resource& resource, const ListOptions& options) override;
  absl::StatusOr<Object> Create(const Resource& resource, const Object& object) override;
  absl::StatusOr<Object> Update(const Resource& resource, const Object& object, std::string_view subresource) override;
  absl::StatusOr<Object> Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                               const PatchOptions& options, std::string_view subresource) override;
  absl::Status Delete(const Resource& resource, const Key& key, const DeleteOptions& options) override;
  absl::Status Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                     const std::function<bool(WatchEvent)>& on_event) override;
  absl::StatusOr<std::string> GetRaw(std::string_view path_and_query) override;
  absl::Status StreamRaw(std::string_view path_and_query, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override;

 private:
  Client& client_;
  const std::function<absl::Status()> guard_;
};

}  // namespace medley::kube
