// A Client that refuses writes while `guard` returns an error. It protects against a former leader that does not yet
// know that it lost the Lease, for example after a pause. Reads are passed on. Thread-safe if the client and the guard
// are.
//
// It cannot recall a request that it has already sent: receivers must compare leader terms or resourceVersions.
#pragma once

#include <functional>

#include "kube/client.h"

namespace medley::kube {

class FencedClient final : public Client {
 public:
  // `client` is borrowed. A refused write returns the error of `guard`.
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
