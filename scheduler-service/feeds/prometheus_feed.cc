#include <algorithm>
#include <cmath>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/base/url.h"
#include "scheduler-service/feeds/feeds.h"
#include "scheduler-service/feeds/fetching.h"

namespace medley::sched {
namespace {

// Warn if the two clocks differ by more seconds than this. Ages are correct nevertheless.
constexpr double kClockDifference = 60;

class PrometheusFeed final : public Feed {
 public:
  PrometheusFeed(std::string name, PrometheusOptions options, std::unique_ptr<HttpFetcher> fetcher)
      : name_(std::move(name)), options_(std::move(options)), fetcher_(std::move(fetcher)) {}

  const std::string& name() const override { return name_; }
  FeedTraits traits() const override { return {std::chrono::minutes(1), std::chrono::minutes(10)}; }

  FetchResult Fetch(base::WallTime now, std::stop_token stop) override {
    Snapshot snapshot;
    if (options_.karpenter) {
      KarpenterAnswers answers;
      if (auto failure = Ask(kKarpenterPrice, stop, answers.price)) return ToResult(*failure);
      if (!answers.price.samples.empty()) {
        if (auto failure = Ask(kKarpenterAvailable, stop, answers.available)) return ToResult(*failure);
        if (auto failure = Ask(kKarpenterSampled, stop, answers.sampled)) return ToResult(*failure);
      }
      CheckClock(answers.price, now, snapshot);
      if (absl::Status s = Take(KarpenterPrices(answers, options_.place, now), snapshot); !s.ok()) return {s, {}};
    }
    if (options_.opencost) {
      OpenCostAnswers answers;
      if (auto failure = Ask(kOpenCostPrice, stop, answers.price)) return ToResult(*failure);
      if (!answers.price.samples.empty()) {
        if (auto failure = Ask(kOpenCostSampled, stop, answers.sampled)) return ToResult(*failure);
        if (auto failure = Ask(kOpenCostGpus, stop, answers.gpus)) return ToResult(*failure);
        if (auto failure = Ask(kOpenCostSpot, stop, answers.spot)) return ToResult(*failure);
        if (auto failure = Ask(kOpenCostDefaults, stop, answers.defaults)) return ToResult(*failure);
      }
      CheckClock(answers.price, now, snapshot);
      if (absl::Status s = Take(OpenCostPrices(answers, options_.place, now), snapshot); !s.ok()) return {s, {}};
    }
    if (snapshot.entries.empty()) {
      return {base::NotFound("{}: no series with a price: check that Prometheus scrapes the exporter",
                             WithoutQuery(options_.endpoint)),
              {}};
    }
    return {std::move(snapshot), {}};
  }

 private:
  // Runs an instant query. Prometheus describes its errors in the body, for every HTTP code.
  std::optional<FetchFailure> Ask(const char* query, const std::stop_token& stop, PromVector& out) {
    FetchRequest request;
    request.url = options_.endpoint;
    while (request.url.ends_with('/')) request.url.pop_back();
    request.url += "/api/v1/query?" + base::QueryEncode({{"query", query}});
    const absl::StatusOr<FetchReply> reply = fetcher_->Fetch(request, stop);
    if (!reply.ok()) return FetchFailure{reply.status(), {}};
    const std::string what = WithoutQuery(request.url);
    absl::StatusOr<PromVector> vector = ParsePromVector(reply->body);
    const absl::Status status = StatusOfReply(*reply, what);
    if (!status.ok()) {
      // If a proxy wrote the response, the body is not Prometheus', and `status` has the details.
      const bool explained = !vector.ok() && base::Message(vector.status()).starts_with("prometheus: ");
      return FetchFailure{explained ? base::Annotate(vector.status(), what) : status, reply->retry_after};
    }
    if (!vector.ok()) return FetchFailure{base::Annotate(vector.status(), what), {}};
    out = *std::move(vector);
    return std::nullopt;
  }

  static void CheckClock(const PromVector& vector, base::WallTime now, Snapshot& snapshot) {
    if (vector.samples.empty()) return;
    const double ours = std::chrono::duration<double>(now.time_since_epoch()).count();
    const double difference = vector.samples.front().evaluated - ours;
    if (std::abs(difference) > kClockDifference && snapshot.warnings.empty()) {
      snapshot.warnings.push_back(
          base::FailedPrecondition("prometheus' clock is {:.0f} s {} ours; price ages use its clock",
                                   std::abs(difference), difference > 0 ? "ahead of" : "behind"));
    }
  }

  absl::Status Take(absl::StatusOr<ParsedPrices> prices, Snapshot& snapshot) const {
    if (!prices.ok()) return base::Annotate(prices.status(), "prometheus");
    if (prices->skipped > 0) {
      base::log::Debug("skipped series without a price",
                       {{"source", name_}, {"skipped", std::to_string(prices->skipped)}});
    }
    for (CatalogEntry& entry : prices->entries) {
      if (!options_.selection.Wants(entry.offering->region, entry.offering->instance_type)) continue;
      snapshot.entries.push_back(std::move(entry));
    }
    for (absl::Status& warning : prices->warnings) snapshot.warnings.push_back(std::move(warning));
    return absl::OkStatus();
  }

  const std::string name_;
  const PrometheusOptions options_;
  const std::unique_ptr<HttpFetcher> fetcher_;
};

}  // namespace

std::unique_ptr<Feed> MakePrometheusFeed(std::string name, PrometheusOptions options,
                                         std::unique_ptr<HttpFetcher> fetcher) {
  return std::make_unique<PrometheusFeed>(std::move(name), std::move(options), std::move(fetcher));
}

}  // namespace medley::sched
