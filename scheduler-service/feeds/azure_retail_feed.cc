#include <fmt/format.h>

#include <set>

#include "common/base/status.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/azure_retail_parser.h"
#include "scheduler-service/feeds/feeds.h"
#include "scheduler-service/feeds/fetching.h"

namespace medley::sched {
namespace {

class AzureRetailFeed final : public Feed {
 public:
  AzureRetailFeed(std::string name, AzureRetailOptions options, std::unique_ptr<HttpFetcher> fetcher)
      : name_(std::move(name)), options_(std::move(options)), fetcher_(std::move(fetcher)) {}

  const std::string& name() const override { return name_; }
  FeedTraits traits() const override { return {std::chrono::hours(6), std::chrono::hours(24)}; }

  FetchResult Fetch(base::WallTime now, std::stop_token stop) override {
    Parts parts;
    for (const std::string& region : options_.selection.regions) {
      ParsedPrices prices;
      if (std::optional<FetchFailure> failure = FetchRegion(region, now, stop, prices)) {
        failure->status = base::Annotate(failure->status, region);
        parts.Fail(*std::move(failure));
        if (parts.GiveUp()) break;
      } else {
        parts.Add(std::move(prices));
      }
    }
    return std::move(parts).Finish();
  }

 private:
  std::string FirstPage(const std::string& region) const {
    const std::string filter = fmt::format(
        "priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' and "
        "serviceName eq 'Virtual Machines' and armRegionName eq '{}'",
        region);
    return options_.endpoint + (options_.endpoint.find('?') == std::string::npos ? "?" : "&") +
           base::QueryEncode(
               {{"api-version", "2023-01-01-preview"}, {"meterRegion", "'primary'"}, {"$filter", filter}});
  }

  std::optional<FetchFailure> FetchRegion(const std::string& region, base::WallTime now, const std::stop_token& stop,
                                          ParsedPrices& out) {
    const std::string origin = Origin(options_.endpoint);
    std::set<std::string> seen;
    std::string url = FirstPage(region);
    for (int number = 1; !url.empty(); ++number) {
      const std::string what = fmt::format("page {}", number);
      if (number > options_.max_pages) {
        return FetchFailure{base::ResourceExhausted("more than {} pages", options_.max_pages), {}};
      }
      if (Origin(url) != origin) {
        return FetchFailure{base::PermissionDenied("{}: the link to this page points to another host: {}", what,
                                                   Quoted(WithoutQuery(url))),
                            {}};
      }
      if (!seen.insert(url).second) {
        return FetchFailure{
            base::InvalidArgument("{}: the link to this page is one that was already read before", what), {}};
      }
      const absl::StatusOr<FetchReply> reply = fetcher_->Fetch({.url = url}, stop);
      if (!reply.ok()) return FetchFailure{base::Annotate(reply.status(), what), {}};
      if (absl::Status status = StatusOfReply(*reply, what); !status.ok()) {
        return FetchFailure{std::move(status), reply->retry_after};
      }
      absl::StatusOr<AzurePage> page = ParseAzurePage(reply->body, options_.selection, now);
      if (!page.ok()) return FetchFailure{base::Annotate(page.status(), what), {}};
      for (CatalogEntry& entry : page->prices.entries) out.entries.push_back(std::move(entry));
      out.skipped += page->prices.skipped;
      url = std::move(page->next);
    }
    return std::nullopt;
  }

  const std::string name_;
  const AzureRetailOptions options_;
  const std::unique_ptr<HttpFetcher> fetcher_;
};

}  // namespace

std::unique_ptr<Feed> MakeAzureRetailFeed(std::string name, AzureRetailOptions options,
                                          std::unique_ptr<HttpFetcher> fetcher) {
  return std::make_unique<AzureRetailFeed>(std::move(name), std::move(options), std::move(fetcher));
}

}  // namespace medley::sched
