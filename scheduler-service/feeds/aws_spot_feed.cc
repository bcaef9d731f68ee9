#include "common/base/status.h"
#include "scheduler-service/feeds/aws_spot_feed_parser.h"
#include "scheduler-service/feeds/feeds.h"
#include "scheduler-service/feeds/fetching.h"

namespace medley::sched {
namespace {

class AwsSpotFeed final : public Feed {
 public:
  AwsSpotFeed(std::string name, AwsSpotFeedOptions options, std::unique_ptr<HttpFetcher> fetcher)
      : name_(std::move(name)), options_(std::move(options)), fetcher_(std::move(fetcher)) {}

  const std::string& name() const override { return name_; }
  FeedTraits traits() const override { return {std::chrono::minutes(15), std::chrono::hours(24)}; }

  FetchResult Fetch(base::WallTime, std::stop_token stop) override {
    const FetchRequest request{.url = options_.endpoint, .etag = etag_, .last_modified = last_modified_};
    const std::string what = WithoutQuery(request.url);
    const absl::StatusOr<FetchReply> reply = fetcher_->Fetch(request, stop);
    if (!reply.ok()) return {reply.status(), {}};
    if (absl::Status status = StatusOfReply(*reply, what); !status.ok()) return {std::move(status), reply->retry_after};
    if (reply->code == 304) {
      if (etag_.empty() && last_modified_.empty()) {
        return {base::InvalidArgument("{}: HTTP 304 in response to an unconditional request", what), {}};
      }
      return {Unchanged(), {}};
    }
    absl::StatusOr<ParsedPrices> prices = ParseAwsSpotFeed(reply->body, options_.selection);
    if (!prices.ok()) {
      etag_.clear();
      last_modified_.clear();
      return {base::Annotate(prices.status(), what), {}};
    }
    etag_ = reply->etag;
    last_modified_ = reply->last_modified;
    return {Snapshot{std::move(prices->entries), true, std::move(prices->warnings)}, {}};
  }

 private:
  const std::string name_;
  const AwsSpotFeedOptions options_;
  const std::unique_ptr<HttpFetcher> fetcher_;
  std::string etag_, last_modified_;  // of the last response that parsed
};

}  // namespace

std::unique_ptr<Feed> MakeAwsSpotFeed(std::string name, AwsSpotFeedOptions options,
                                      std::unique_ptr<HttpFetcher> fetcher) {
  return std::make_unique<AwsSpotFeed>(std::move(name), std::move(options), std::move(fetcher));
}

}  // namespace medley::sched
