// The verbs list and watch.
#include <fmt/format.h>

#include <charconv>

#include "common/base/status.h"
#include "localcluster/apiserver/api.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/table.h"
#include "localcluster/apiserver/watch_stream.h"

namespace medley::localcluster::apiserver {
namespace {

// Parses a decimal; nullopt for any other text.
std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

absl::StatusOr<Selector> ReadSelector(const Route& route, const HttpRequest& request) {
  std::string fields = request.Query("fieldSelector");
  if (!route.name.empty()) fields = "metadata.name=" + route.name;
  return Selector::Parse(*route.info, route.ns, request.Query("labelSelector"), fields);
}

// The start of the next page: "VERSION NAMESPACE NAME".
struct Continue {
  uint64_t version = 0;
  kube::Key after;
};

std::string Encode(const Continue& token) {
  return fmt::format("{} {} {}", token.version, token.after.ns, token.after.name);
}

std::optional<Continue> DecodeContinue(const std::string& text) {
  const size_t a = text.find(' ');
  const size_t b = a == std::string::npos ? a : text.find(' ', a + 1);
  if (b == std::string::npos) return std::nullopt;
  const auto version = Number(std::string_view(text).substr(0, a));
  if (!version.has_value()) return std::nullopt;
  return Continue{*version, {text.substr(a + 1, b - a - 1), text.substr(b + 1)}};
}

}  // namespace

absl::StatusOr<HttpResponse> Api::List(const Route& route, const HttpRequest& request) {
  MEDLEY_ASSIGN_OR_RETURN(const Selector selector, ReadSelector(route, request));
  const std::string asked = request.Query("resourceVersion");
  const auto minimum = Number(asked.empty() ? "0" : asked);
  if (!minimum.has_value()) return BadRequest(fmt::format("invalid resourceVersion: {}", asked));
  const size_t limit = Number(request.Query("limit")).value_or(0);
  const Store::Snapshot all = rest_.store().List(route.info->bucket(), route.ns);
  if (*minimum > all.version) return TooLargeVersion(*minimum, all.version);
  if (request.Query("resourceVersionMatch") == "Exact" && *minimum != all.version) {
    return ExpiredError("The provided resource version is no longer available");
  }
  std::optional<Continue> from;
  if (const std::string token = request.Query("continue"); !token.empty()) {
    from = DecodeContinue(token);
    if (!from.has_value()) return BadRequest("continue key is not valid");
    if (from->version < rest_.store().oldest(route.info->bucket())) {
      return ExpiredError(
          "The provided continue parameter is too old to display a consistent list "
          "result. You can start a new list without the continue parameter.");
    }
  }
  const uint64_t version = from.has_value() ? from->version : all.version;
  std::vector<kube::ObjectPtr> chosen;
  size_t more = 0;
  for (const kube::ObjectPtr& object : all.objects) {
    if (from.has_value() && !(from->after < object->key())) continue;
    if (!selector.Matches(*object)) continue;
    if (limit != 0 && chosen.size() >= limit) {
      ++more;
    } else {
      chosen.push_back(object);
    }
  }
  kube::Json metadata = {{"resourceVersion", std::to_string(version)}};
  if (more != 0) {
    metadata["continue"] = Encode({version, chosen.back()->key()});
    metadata["remainingItemCount"] = more;
  }
  std::vector<kube::Json> shown;
  for (const kube::ObjectPtr& object : chosen) shown.push_back(InVersion(*route.info, object->json()));
  if (WantsTable(request)) {
    std::vector<const kube::Json*> rows;
    for (const kube::Json& object : shown) rows.push_back(&object);
    kube::Json table = MakeTable(*route.info, rows, rest_.clock().Now(), request.Query("includeObject"));
    table["metadata"] = std::move(metadata);
    return JsonResponse(table);
  }
  HttpResponse response;
  response.body = fmt::format("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{},\"items\":[",
                              route.info->list_kind, route.info->resource.ApiVersion(), kube::Dump(metadata));
  for (size_t i = 0; i < shown.size(); ++i) {
    if (i != 0) response.body += ',';
    response.body += kube::Dump(shown[i]);
  }
  response.body += "]}\n";
  return response;
}

absl::StatusOr<HttpResponse> Api::Watch(const Route& route, const HttpRequest& request, std::optional<Fault> fault) {
  MEDLEY_ASSIGN_OR_RETURN(Selector selector, ReadSelector(route, request));
  auto spec = std::make_shared<WatchSpec>(WatchSpec{.info = route.info, .selector = selector});
  spec->bookmarks = request.Is("allowWatchBookmarks");
  spec->fault = std::move(fault);
  spec->bookmark_interval = options_.bookmark_interval;
  const std::string asked = request.Query("resourceVersion");
  if (!asked.empty() && asked != "0") {
    spec->since = Number(asked);
    if (!spec->since.has_value()) {
      return BadRequest(fmt::format("invalid resourceVersion: {}", asked));
    }
  }
  const std::string initial = request.Query("sendInitialEvents");
  if (!initial.empty()) {
    if (request.Query("resourceVersionMatch") != "NotOlderThan") {
      kube::FieldErrors errors = {kube::Forbidden("resourceVersionMatch",
                                                  "sendInitialEvents requires setting resourceVersionMatch to "
                                                  "NotOlderThan")};
      return InvalidError({"meta.k8s.io", "v1", "listoptions", "ListOptions"}, "", errors);
    }
    const uint64_t now = rest_.store().version();
    if (spec->since.has_value() && *spec->since > now) return TooLargeVersion(*spec->since, now);
    spec->initial_end = request.Is("sendInitialEvents");
    spec->since = spec->initial_end ? std::nullopt : std::optional<uint64_t>(spec->since.value_or(now));
  }
  if (const auto seconds = Number(request.Query("timeoutSeconds")); seconds.value_or(0) > 0) {
    spec->timeout = base::seconds(std::min<uint64_t>(*seconds, 86400));
  }
  const bool table = WantsTable(request);
  const std::string include = request.Query("includeObject");
  spec->present = [this, info = route.info, table, include](const kube::Json& object) {
    kube::Json shown = InVersion(*info, object);
    if (!table) return shown;
    return MakeTable(*info, {&shown}, rest_.clock().Now(), include);
  };
  HttpResponse response;
  response.stream = [this, spec](BodySink& sink, std::stop_token stop) {
    StreamWatch(rest_.store(), *spec, sink, std::move(stop));
  };
  return response;
}

}  // namespace medley::localcluster::apiserver
