#include <fmt/format.h>

#include <set>

#include "common/base/status.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/aws_error.h"
#include "scheduler-service/feeds/feeds.h"
#include "scheduler-service/feeds/fetching.h"
#include "scheduler-service/feeds/spot_history_parser.h"

namespace medley::sched {
namespace {

std::string Replace(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

class AwsSpotHistoryFeed final : public Feed {
 public:
  AwsSpotHistoryFeed(std::string name, AwsSpotHistoryOptions options, std::unique_ptr<HttpFetcher> fetcher,
                     Environment environment)
      : name_(std::move(name)),
        options_(std::move(options)),
        fetcher_(std::move(fetcher)),
        credentials_(MakeAwsCredentials(options_.credentials, *fetcher_, std::move(environment))) {}

  const std::string& name() const override { return name_; }
  FeedTraits traits() const override { return {std::chrono::minutes(15), std::chrono::hours(2)}; }

  FetchResult Fetch(base::WallTime now, std::stop_token stop) override {
    return options_.documents.empty() ? FetchRegions(now, stop) : FetchDocuments(stop);
  }

 private:
  FetchResult FetchRegions(base::WallTime now, const std::stop_token& stop) {
    const absl::StatusOr<aws::Keys> keys = credentials_->Get(now, stop);
    if (!keys.ok()) return {keys.status(), {}};
    Parts parts;
    for (const std::string& region : options_.selection.regions) {
      std::vector<SpotRecord> records;
      std::optional<FetchFailure> failure = FetchRegion(region, *keys, now, stop, records);
      if (!failure) {
        if (absl::StatusOr<ParsedPrices> prices = Newest(records); prices.ok()) {
          parts.Add(*std::move(prices));
          continue;
        } else {
          failure = FetchFailure{prices.status(), {}};
        }
      }
      if (failure->status.code() == absl::StatusCode::kUnauthenticated) credentials_->Forget();
      failure->status = base::Annotate(failure->status, region);
      parts.Fail(*std::move(failure));
      if (parts.GiveUp()) break;
    }
    return std::move(parts).Finish();
  }

  FetchResult FetchDocuments(const std::stop_token& stop) {
    Parts parts;
    for (const std::string& url : options_.documents) {
      const std::string what = WithoutQuery(url);
      const absl::StatusOr<FetchReply> reply = fetcher_->Fetch({.url = url}, stop);
      FetchFailure failure{reply.ok() ? StatusOfReply(*reply, what) : reply.status(), {}};
      if (reply.ok()) failure.retry_after = reply->retry_after;
      if (failure.status.ok()) failure.status = TakeDocument(what, reply->body, parts);
      if (failure.status.ok()) continue;
      parts.Fail(std::move(failure));
      if (parts.GiveUp()) break;
    }
    return std::move(parts).Finish();
  }

  absl::Status TakeDocument(const std::string& what, const std::string& body, Parts& parts) {
    absl::StatusOr<SpotPage> page = ParseSpotHistoryJson(body);
    if (!page.ok()) return base::Annotate(page.status(), what);
    absl::StatusOr<ParsedPrices> prices = Newest(page->records);
    if (!prices.ok()) return base::Annotate(prices.status(), what);
    parts.Add(*std::move(prices));
    if (!page->next_token.empty()) {
      parts.Incomplete(base::OutOfRange(
          "{}: incomplete: it ends with a NextToken after {} records; write the document with all pages", what,
          page->records.size()));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ParsedPrices> Newest(const std::vector<SpotRecord>& records) const {
    return NewestSpotPrices(records, options_.selection, options_.products);
  }

  std::string Endpoint(const std::string& region) const {
    if (!options_.endpoint.empty()) return Replace(options_.endpoint, "{region}", region);
    return fmt::format("https://ec2.{}.amazonaws.com{}/", region, region.starts_with("cn-") ? ".cn" : "");
  }

  std::string Form(base::WallTime now, const std::string& token) const {
    std::vector<std::pair<std::string, std::string>> fields = {{"Action", "DescribeSpotPriceHistory"},
                                                               {"Version", "2016-11-15"},
                                                               {"StartTime", base::FormatTime(now)},
                                                               {"MaxResults", "1000"}};
    for (size_t i = 0; i < options_.products.size(); ++i) {
      fields.emplace_back(fmt::format("ProductDescription.{}", i + 1), options_.products[i]);
    }
    // Send instance types as a filter, because a filter may contain '*'.
    for (size_t i = 0; i < options_.selection.instance_types.size(); ++i) {
      if (i == 0) fields.emplace_back("Filter.1.Name", "instance-type");
      fields.emplace_back(fmt::format("Filter.1.Value.{}", i + 1), options_.selection.instance_types[i]);
    }
    if (!token.empty()) fields.emplace_back("NextToken", token);
    return base::QueryEncode(fields);
  }

  // Fetches all pages of a region. AWS also returns the current prices, which took effect before StartTime.
  std::optional<FetchFailure> FetchRegion(const std::string& region, const aws::Keys& keys, base::WallTime now,
                                          const std::stop_token& stop, std::vector<SpotRecord>& records) {
    std::set<std::string> seen;
    std::string token;
    for (int number = 1;; ++number) {
      const std::string what = fmt::format("page {}", number);
      if (number > options_.max_pages) {
        return FetchFailure{base::ResourceExhausted("more than {} pages", options_.max_pages), {}};
      }
      const absl::StatusOr<FetchReply> reply = fetcher_->Fetch(Sign(region, keys, now, token), stop);
      if (!reply.ok()) return FetchFailure{base::Annotate(reply.status(), what), {}};
      if (absl::Status status = StatusOfAwsReply(*reply, what); !status.ok()) {
        return FetchFailure{std::move(status), reply->retry_after};
      }
      absl::StatusOr<SpotPage> page = ParseSpotHistoryXml(reply->body);
      if (!page.ok()) return FetchFailure{base::Annotate(page.status(), what), {}};
      records.insert(records.end(), page->records.begin(), page->records.end());
      token = std::move(page->next_token);
      if (token.empty()) return std::nullopt;
      if (!seen.insert(token).second) {
        return FetchFailure{
            base::InvalidArgument("{}: its link to the next page is one that was already read before", what), {}};
      }
    }
  }

  FetchRequest Sign(const std::string& region, const aws::Keys& keys, base::WallTime now,
                    const std::string& token) const {
    FetchRequest request;
    request.url = Endpoint(region);
    request.form = Form(now, token);
    aws::SignableRequest signable;
    signable.method = "POST";
    const size_t host = request.url.find("://") + 3;
    const size_t path = request.url.find('/', host);
    signable.host = request.url.substr(host, path == std::string::npos ? path : path - host);
    if (path != std::string::npos) signable.path = request.url.substr(path);
    signable.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
    signable.body = *request.form;
    request.headers = signable.headers;
    aws::SigV4 signature = aws::SignV4(signable, keys, region, "ec2", now);
    for (auto& header : signature.headers) request.headers.push_back(std::move(header));
    return request;
  }

  const std::string name_;
  const AwsSpotHistoryOptions options_;
  const std::unique_ptr<HttpFetcher> fetcher_;
  const std::unique_ptr<AwsCredentials> credentials_;
};

}  // namespace

std::unique_ptr<Feed> MakeAwsSpotHistoryFeed(std::string name, AwsSpotHistoryOptions options,
                                             std::unique_ptr<HttpFetcher> fetcher, Environment environment) {
  return std::make_unique<AwsSpotHistoryFeed>(std::move(name), std::move(options), std::move(fetcher),
                                              std::move(environment));
}

}  // namespace medley::sched
