// The feeds over HTTP. Each asks by an HttpFetcher, parses, and reports what the source says as it
// stands.
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

// Prometheus' HTTP API: Karpenter's offering prices, OpenCost's node prices, or both; one without
// series is fine when the other has some, none at all is NotFound.
struct PrometheusOptions {
  std::string endpoint;  // "http://prometheus.monitoring:9090", perhaps with a path prefix
  bool karpenter = true;
  bool opencost = true;
  PromPlace place;
  Selection selection;
};
std::unique_ptr<Feed> MakePrometheusFeed(std::string name, PrometheusOptions options,
                                         std::unique_ptr<HttpFetcher> fetcher);

// Azure Retail Prices, region by region, each page by page to its end. A region that fails makes
// the answer partial; all of them, an error. The next page must be on the endpoint's own host; a
// page that comes twice and more than `max_pages` are errors.
struct AzureRetailOptions {
  std::string endpoint = "https://prices.azure.com/api/retail/prices";
  Selection selection;  // regions are required
  int max_pages = 100;  // of a region
};
std::unique_ptr<Feed> MakeAzureRetailFeed(std::string name, AzureRetailOptions options,
                                          std::unique_ptr<HttpFetcher> fetcher);

// AWS's public spot feed: one file, asked for with its ETag.
struct AwsSpotFeedOptions {
  std::string endpoint = "https://website.spot.ec2.aws.a2z.com/spot.json";
  Selection selection;
};
std::unique_ptr<Feed> MakeAwsSpotFeed(std::string name, AwsSpotFeedOptions options,
                                      std::unique_ptr<HttpFetcher> fetcher);

// EC2's DescribeSpotPriceHistory, region by region, each page by page to its end; or documents that
// the command line tool printed, from URLs. A region or document that fails, or is not whole, makes
// the answer partial; all of them, an error.
struct AwsSpotHistoryOptions {
  // "{region}" stands for the region. Empty: AWS's own.
  std::string endpoint;
  Selection selection;  // regions are required, unless there are documents
  std::vector<std::string> products = {"Linux/UNIX", "Linux/UNIX (Amazon VPC)"};
  int max_pages = 100;  // of a region
  AwsCredentialOptions credentials;
  std::vector<std::string> documents;  // URLs; then no regions, no credentials
};
std::unique_ptr<Feed> MakeAwsSpotHistoryFeed(std::string name, AwsSpotHistoryOptions options,
                                             std::unique_ptr<HttpFetcher> fetcher, Environment environment);

}  // namespace medley::sched
