// The feeds over HTTP. Each one fetches with an HttpFetcher, parses, and reports the source's prices unchanged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler-service/catalog/feed.h"
#include "scheduler-service/feeds/aws_credentials.h"
#include "scheduler-service/feeds/http_fetcher.h"
#include "scheduler-service/feeds/parsed_prices.h"
#include "scheduler-service/feeds/prometheus_parser.h"

namespace medley::sched {

// Reads Karpenter's offering prices, OpenCost's node prices, or both from Prometheus' HTTP API. One of them may have no
// series; if both have none, the error is NotFound.
struct PrometheusOptions {
  std::string endpoint;  // "http://prometheus.monitoring:9090", perhaps with a path prefix
  bool karpenter = true;
  bool opencost = true;
  PromPlace place;
  Selection selection;
};
std::unique_ptr<Feed> MakePrometheusFeed(std::string name, PrometheusOptions options,
                                         std::unique_ptr<HttpFetcher> fetcher);

// Reads all pages of Azure Retail Prices, region by region. If some regions fail, the result is partial; if all fail,
// it is an error. The next page must be on the endpoint's host; a repeated page and more than `max_pages` are errors.
struct AzureRetailOptions {
  std::string endpoint = "https://prices.azure.com/api/retail/prices";
  Selection selection;  // regions are required
  int max_pages = 100;  // per region
};
std::unique_ptr<Feed> MakeAzureRetailFeed(std::string name, AzureRetailOptions options,
                                          std::unique_ptr<HttpFetcher> fetcher);

// Reads AWS's public spot feed: one file, requested with its ETag.
struct AwsSpotFeedOptions {
  std::string endpoint = "https://website.spot.ec2.aws.a2z.com/spot.json";
  Selection selection;
};
std::unique_ptr<Feed> MakeAwsSpotFeed(std::string name, AwsSpotFeedOptions options,
                                      std::unique_ptr<HttpFetcher> fetcher);

// Reads all pages of EC2's DescribeSpotPriceHistory, region by region; or reads documents with the output of the AWS
// command line tool from URLs. If some regions or documents fail or are incomplete, the result is partial; if all fail,
// it is an error.
struct AwsSpotHistoryOptions {
  // "{region}" is replaced by the region. Empty: AWS's endpoint.
  std::string endpoint;
  Selection selection;  // regions are required, unless `documents` is set
  std::vector<std::string> products = {"Linux/UNIX", "Linux/UNIX (Amazon VPC)"};
  int max_pages = 100;  // per region
  AwsCredentialOptions credentials;
  std::vector<std::string> documents;  // URLs, read instead of the API; regions and credentials are not needed then
};
std::unique_ptr<Feed> MakeAwsSpotHistoryFeed(std::string name, AwsSpotHistoryOptions options,
                                             std::unique_ptr<HttpFetcher> fetcher, Environment environment);

}  // namespace medley::sched
