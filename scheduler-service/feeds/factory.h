// Feeds out of the configuration, by type: "prometheus", "azure-retail", "aws-spot-feed",
// "aws-spot-history". docs/prices.md lists their fields.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "scheduler-service/catalog/feed_factory.h"
#include "scheduler-service/feeds/aws_credentials.h"
#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// How a feed's fetcher is made; tests give another than CurlFetcher.
using FetcherMaker = std::function<std::unique_ptr<HttpFetcher>(HttpOptions options)>;

// For main: CurlFetcher and the process' environment. Borrows the clock.
FeedFactories HttpFeedFactories(base::Clock& clock);
FeedFactories HttpFeedFactories(FetcherMaker make_fetcher, Environment environment);

}  // namespace medley::sched
