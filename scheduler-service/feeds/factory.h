// Creates the feeds of types "prometheus", "azure-retail", "aws-spot-feed" and "aws-spot-history" from the
// configuration. docs/operate/prices-feeds.md lists their fields.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "scheduler-service/catalog/feed_factory.h"
#include "scheduler-service/feeds/aws_credentials.h"
#include "scheduler-service/feeds/http_fetcher.h"

namespace medley::sched {

// Creates a feed's fetcher; tests pass a fake one.
using FetcherMaker = std::function<std::unique_ptr<HttpFetcher>(HttpOptions options)>;

// For the program: uses CurlFetcher and the environment of the process. Borrows the clock.
FeedFactories HttpFeedFactories(base::Clock& clock);
FeedFactories HttpFeedFactories(FetcherMaker make_fetcher, Environment environment);

}  // namespace medley::sched
