#include "scheduler-service/feeds/factory.h"

#include <cstdlib>

#include "common/base/status.h"
#include "scheduler-service/feeds/feeds.h"

namespace medley::sched {
namespace {

using document::Reader;

constexpr int kMaxTimeoutSeconds = 600;

void CheckUrl(const Reader& node, const std::string& field, const std::string& url) {
  if (!url.empty() && Origin(url).empty()) node.Fail(field, "must be an absolute http or https URL, is '" + url + "'");
}

std::string Endpoint(const Reader& node, const std::string& otherwise) {
  std::string url = otherwise.empty() ? node.RequiredString("endpoint") : node.String("endpoint", otherwise);
  CheckUrl(node, "endpoint", url);
  return url;
}

std::chrono::milliseconds Timeout(const Reader& node, const std::string& field, std::chrono::milliseconds otherwise) {
  const auto value = std::chrono::duration_cast<std::chrono::milliseconds>(node.Duration(field, otherwise));
  if (value.count() < 1 || value > std::chrono::seconds(kMaxTimeoutSeconds)) {
    node.Fail(field, "must be between 1ms and 10m");
    return otherwise;
  }
  return value;
}

HttpOptions ReadHttp(const Reader& node) {
  HttpOptions options;
  options.total_timeout = Timeout(node, "timeout", options.total_timeout);
  options.connect_timeout = Timeout(node, "connectTimeout", options.connect_timeout);
  const int64_t max_megabytes = node.Int("maxMegabytes", 64);
  if (max_megabytes < 1 || max_megabytes > 64) {
    node.Fail("maxMegabytes", "must be between 1 and 64");
  } else {
    options.max_body_bytes = static_cast<size_t>(max_megabytes) << 20;
  }
  options.ca_file = node.String("caFile", "");
  options.bearer_token_file = node.String("tokenFile", "");
  options.proxy = node.String("proxy", "");
  options.proxy_from_environment = node.Bool("proxyFromEnvironment", false);
  if (!options.proxy.empty() && options.proxy_from_environment) {
    node.Fail("proxy", "must not be set together with proxyFromEnvironment");
  }
  return options;
}

Selection ReadSelection(const Reader& node, bool regions_required) {
  Selection selection{node.Strings("regions", {}), node.Strings("instanceTypes", {})};
  if (regions_required && selection.regions.empty()) node.Fail("regions", "is required: list at least one region");
  for (const std::string& region : selection.regions) {
    // Regions become parts of host names and filters, so allow only safe characters.
    if (region.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != std::string::npos) {
      node.Fail("regions", "'" + region + "' is not a region: it may contain only a-z, 0-9 and '-'");
    }
  }
  return selection;
}

int ReadMaxPages(const Reader& node) {
  int pages = 100;
  node.Read("maxPages", pages);
  if (pages < 1 || pages > 10'000) node.Fail("maxPages", "must be between 1 and 10000");
  return pages;
}

absl::StatusOr<std::unique_ptr<Feed>> Prometheus(const std::string& name, Reader node,
                                                 const FetcherMaker& make_fetcher) {
  PrometheusOptions options;
  options.endpoint = Endpoint(node, "");
  options.karpenter = node.Bool("karpenter", true);
  options.opencost = node.Bool("opencost", true);
  if (!options.karpenter && !options.opencost) node.Fail("karpenter", "must be true if opencost is false");
  options.place = {node.String("provider", ""), node.String("region", "")};
  options.selection = ReadSelection(node, false);
  const HttpOptions http = ReadHttp(node);
  MEDLEY_RETURN_IF_ERROR(node.Finish());
  return MakePrometheusFeed(name, std::move(options), make_fetcher(http));
}

absl::StatusOr<std::unique_ptr<Feed>> AzureRetail(const std::string& name, Reader node,
                                                  const FetcherMaker& make_fetcher) {
  AzureRetailOptions options;
  options.endpoint = Endpoint(node, options.endpoint);
  options.selection = ReadSelection(node, true);
  options.max_pages = ReadMaxPages(node);
  const HttpOptions http = ReadHttp(node);
  MEDLEY_RETURN_IF_ERROR(node.Finish());
  return MakeAzureRetailFeed(name, std::move(options), make_fetcher(http));
}

absl::StatusOr<std::unique_ptr<Feed>> MakeAwsSpot(const std::string& name, Reader node,
                                                  const FetcherMaker& make_fetcher) {
  AwsSpotFeedOptions options;
  options.endpoint = Endpoint(node, options.endpoint);
  options.selection = ReadSelection(node, false);
  const HttpOptions http = ReadHttp(node);
  MEDLEY_RETURN_IF_ERROR(node.Finish());
  return MakeAwsSpotFeed(name, std::move(options), make_fetcher(http));
}

AwsCredentialOptions ReadCredentials(const Reader& node, const Environment& environment, const std::string& region) {
  AwsCredentialOptions options;
  options.kind = node.String("credentials", "auto");
  if (options.kind != "auto" && options.kind != "environment" && options.kind != "file" &&
      options.kind != "web-identity") {
    node.Fail("credentials", "must be auto, environment, file or web-identity, is '" + options.kind + "'");
  }
  options.file = node.String("credentialsFile", "");
  options.profile = node.String("profile", "");
  options.role_arn = node.String("roleArn", "");
  options.token_file = node.String("webIdentityTokenFile", "");
  options.session_name = node.String("roleSessionName", "");
  // Use the regional STS endpoint, as AWS recommends. In a cluster the environment has the region.
  std::string home = environment("AWS_REGION");
  if (home.empty()) home = region;
  options.sts_endpoint =
      node.String("stsEndpoint", "https://sts." + home + ".amazonaws.com" + (home.starts_with("cn-") ? ".cn" : ""));
  CheckUrl(node, "stsEndpoint", options.sts_endpoint);
  return options;
}

absl::StatusOr<std::unique_ptr<Feed>> AwsSpotHistory(const std::string& name, Reader node,
                                                     const FetcherMaker& make_fetcher, const Environment& environment) {
  AwsSpotHistoryOptions options;
  options.documents = node.Strings("documents", {});
  for (const std::string& url : options.documents) CheckUrl(node, "documents", url);
  options.selection = ReadSelection(node, options.documents.empty());
  options.endpoint = node.String("endpoint", "");
  CheckUrl(node, "endpoint", options.endpoint);
  if (options.endpoint.find_first_of("?#") != std::string::npos)
    node.Fail("endpoint", "must not have a query or fragment");
  options.products = node.Strings("products", options.products);
  options.max_pages = ReadMaxPages(node);
  options.credentials = ReadCredentials(
      node, environment, options.selection.regions.empty() ? "us-east-1" : options.selection.regions.front());
  const HttpOptions http = ReadHttp(node);
  if (!http.bearer_token_file.empty()) node.Fail("tokenFile", "must not be set: requests to AWS are signed instead");
  MEDLEY_RETURN_IF_ERROR(node.Finish());
  return MakeAwsSpotHistoryFeed(name, std::move(options), make_fetcher(http), environment);
}

}  // namespace

FeedFactories HttpFeedFactories(FetcherMaker make_fetcher, Environment environment) {
  return {{"prometheus", [=](const std::string& name,
                             document::Reader node) { return Prometheus(name, std::move(node), make_fetcher); }},
          {"azure-retail", [=](const std::string& name,
                               document::Reader node) { return AzureRetail(name, std::move(node), make_fetcher); }},
          {"aws-spot-feed", [=](const std::string& name,
                                document::Reader node) { return MakeAwsSpot(name, std::move(node), make_fetcher); }},
          {"aws-spot-history", [=](const std::string& name, document::Reader node) {
             return AwsSpotHistory(name, std::move(node), make_fetcher, environment);
           }}};
}

FeedFactories HttpFeedFactories(base::Clock& clock) {
  return HttpFeedFactories(
      [&clock](HttpOptions options) { return std::make_unique<CurlFetcher>(std::move(options), clock); },
      [](const std::string& name) {
        const char* value = std::getenv(name.c_str());
        return std::string(value == nullptr ? "" : value);
      });
}

}  // namespace medley::sched
