// A client over HTTP(S) with libcurl and OpenSSL. Uses bearer tokens and client certificates, reads both again when
// they are rotated, and retries 429, and 5xx with Retry-After.
//
// Thread-safe: calls run in parallel, each on a kept-alive connection from a pool. An attempt takes at most
// request_timeout. A call makes at most max_retries further attempts, after the waits that the server asks for. A stop
// token ends its Watch, List or StreamRaw at once. Destroy it only after all calls have returned. Owner: main, or a
// test. Example:
//   MEDLEY_ASSIGN_OR_RETURN(kube::ClientConfig config, kube::LoadKubeconfig(path));
//   kube::HttpClient client(std::move(config), clock, base::SystemSeed());
//   MEDLEY_ASSIGN_OR_RETURN(kube::Object pod, client.Get(kube::resources::Pods(), {"default", "p"}));
#pragma once

#include <memory>

#include "common/base/clock.h"
#include "kube/client.h"
#include "kube/client/config.h"

namespace medley::kube {

class HttpClient final : public Client {
 public:
  HttpClient(ClientConfig config, base::Clock& clock, uint64_t seed);
  ~HttpClient() override;

  const ClientConfig& config() const;
  // Makes calls that wait to retry return, so that the program can end.
  void Shutdown();

  absl::StatusOr<Object> Get(const Resource& resource, const Key& key) override;
  absl::StatusOr<ObjectList> List(const Resource& resource, const ListOptions& options) override;
  absl::StatusOr<Object> Create(const Resource& resource, const Object& object) override;
  absl::StatusOr<Object> Update(const Resource& resource, const Object& object,
                                std::string_view subresource = "") override;
  absl::StatusOr<Object> Patch(const Resource& resource, const Key& key, PatchType type, const Json& patch,
                               const PatchOptions& options = {}, std::string_view subresource = "") override;
  absl::Status Delete(const Resource& resource, const Key& key, const DeleteOptions& options = {}) override;
  absl::Status Watch(const Resource& resource, const WatchOptions& options, std::stop_token stop,
                     const std::function<bool(WatchEvent)>& on_event) override;
  absl::StatusOr<std::string> GetRaw(std::string_view path_and_query) override;
  absl::Status StreamRaw(std::string_view path_and_query, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override;

 private:
  class Transport;
  absl::StatusOr<Json> Call(std::string_view method, const std::string& path, const std::string& body,
                            std::string_view content_type, const std::string& what, const std::stop_token& stop = {});
  std::unique_ptr<Transport> transport_;
};

}  // namespace medley::kube
