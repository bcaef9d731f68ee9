#include "operator/telemetry/metered_client.h"

#include <string>
#include <type_traits>
#include <utility>

#include "kube/errors.h"

namespace medley::ops {

MeteredClient::MeteredClient(kube::Client& client, base::Clock& clock, metrics::Registry& registry)
    : client_(client), clock_(clock), registry_(registry) {}

void MeteredClient::Counted(const char* method, const absl::Status& status, int code_of_success) {
  const int code = status.ok() ? code_of_success : kube::HttpCode(status);
  registry_
      .GetCounter("rest_client_requests_total", "Calls of the Kubernetes API by method and response code",
                  {{"code", code > 0 ? std::to_string(code) : "<error>"}, {"method", method}})
      .Increment();
}

template <typename Call>
auto MeteredClient::Count(const char* method, int code_of_success, Call call) {
  const base::SteadyTime began = clock_.Steady();
  auto result = call();
  registry_
      .GetHistogram("rest_client_request_duration_seconds", "Duration of calls of the Kubernetes API, with retries",
                    metrics::LatencyBounds(), {{"verb", method}})
      .Observe(base::ToSeconds(clock_.Steady() - began));
  if constexpr (std::is_same_v<decltype(result), absl::Status>) {
    Counted(method, result, code_of_success);
  } else {
    Counted(method, result.status(), code_of_success);
  }
  return result;
}

absl::StatusOr<kube::Object> MeteredClient::Get(const kube::Resource& resource, const kube::Key& key) {
  return Count("GET", 200, [&] { return client_.Get(resource, key); });
}

absl::StatusOr<kube::ObjectList> MeteredClient::List(const kube::Resource& resource, const kube::ListOptions& options) {
  return Count("GET", 200, [&] { return client_.List(resource, options); });
}

absl::StatusOr<kube::Object> MeteredClient::Create(const kube::Resource& resource, const kube::Object& object) {
  return Count("POST", 201, [&] { return client_.Create(resource, object); });
}

absl::StatusOr<kube::Object> MeteredClient::Update(const kube::Resource& resource, const kube::Object& object,
                                                   std::string_view subresource) {
  return Count("PUT", 200, [&] { return client_.Update(resource, object, subresource); });
}

absl::StatusOr<kube::Object> MeteredClient::Patch(const kube::Resource& resource, const kube::Key& key,
                                                  kube::PatchType type, const kube::Json& patch,
                                                  const kube::PatchOptions& options, std::string_view subresource) {
  return Count("PATCH", 200, [&] { return client_.Patch(resource, key, type, patch, options, subresource); });
}

absl::Status MeteredClient::Delete(const kube::Resource& resource, const kube::Key& key,
                                   const kube::DeleteOptions& options) {
  return Count("DELETE", 200, [&] { return client_.Delete(resource, key, options); });
}

absl::Status MeteredClient::Watch(const kube::Resource& resource, const kube::WatchOptions& options,
                                  std::stop_token stop, const std::function<bool(kube::WatchEvent)>& on_event) {
  absl::Status status = client_.Watch(resource, options, std::move(stop), on_event);
  Counted("GET", status, 200);  // no duration: a stream lasts as long as its reader wants
  return status;
}

absl::StatusOr<std::string> MeteredClient::GetRaw(std::string_view path_and_query) {
  return Count("GET", 200, [&] { return client_.GetRaw(path_and_query); });
}

absl::Status MeteredClient::StreamRaw(std::string_view path_and_query, std::stop_token stop,
                                      const std::function<bool(std::string_view)>& on_bytes) {
  absl::Status status = client_.StreamRaw(path_and_query, std::move(stop), on_bytes);
  Counted("GET", status, 200);
  return status;
}

}  // namespace medley::ops
