// A client of the Kubernetes API that counts its calls in metrics with client-go's names:
// rest_client_requests_total{code, method} and rest_client_request_duration_seconds{verb}. Thread-safe.
//
// Counts the operator's calls; retries by the wrapped client are not counted, but are part of the duration. A call
// without a response has the code "<error>", as in client-go. A watch and a stream are counted when they end.
#pragma once

#include "common/base/clock.h"
#include "common/metrics/metrics.h"
#include "kube/client.h"

namespace medley::ops {

class MeteredClient final : public kube::Client {
 public:
  // Borrows all arguments.
  MeteredClient(kube::Client& client, base::Clock& clock, metrics::Registry& registry);

  absl::StatusOr<kube::Object> Get(const kube::Resource& resource, const kube::Key& key) override;
  absl::StatusOr<kube::ObjectList> List(const kube::Resource& resource, const kube::ListOptions& options) override;
  absl::StatusOr<kube::Object> Create(const kube::Resource& resource, const kube::Object& object) override;
  absl::StatusOr<kube::Object> Update(const kube::Resource& resource, const kube::Object& object,
                                      std::string_view subresource = "") override;
  absl::StatusOr<kube::Object> Patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                     const kube::Json& patch, const kube::PatchOptions& options = {},
                                     std::string_view subresource = "") override;
  absl::Status Delete(const kube::Resource& resource, const kube::Key& key,
                      const kube::DeleteOptions& options = {}) override;
  absl::Status Watch(const kube::Resource& resource, const kube::WatchOptions& options, std::stop_token stop,
                     const std::function<bool(kube::WatchEvent)>& on_event) override;
  absl::StatusOr<std::string> GetRaw(std::string_view path_and_query) override;
  absl::Status StreamRaw(std::string_view path_and_query, std::stop_token stop,
                         const std::function<bool(std::string_view)>& on_bytes) override;

 private:
  template <typename Call>
  auto Count(const char* method, int code_of_success, Call call);
  void Counted(const char* method, const absl::Status& status, int code_of_success);

  kube::Client& client_;
  base::Clock& clock_;
  metrics::Registry& registry_;
};

}  // namespace medley::ops
