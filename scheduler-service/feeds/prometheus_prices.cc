// Converts Prometheus vectors to prices. prometheus_parser.h lists what is skipped and what is an error.
#include <algorithm>
#include <cmath>
#include <optional>

#include "common/base/status.h"
#include "scheduler-service/feeds/prometheus_parser.h"

namespace medley::sched {

// Karpenter's AWS provider. Several pods and node classes export the same series; max by (...) reduces them to one.
const char kKarpenterPrice[] =
    "max by (instance_type,capacity_type,zone)(karpenter_cloudprovider_instance_type_offering_price_estimate)";
const char kKarpenterAvailable[] =
    "max by (instance_type,capacity_type,zone)(karpenter_cloudprovider_instance_type_offering_available)";
const char kKarpenterSampled[] =
    "max by (instance_type,capacity_type,zone)"
    "(timestamp(karpenter_cloudprovider_instance_type_offering_price_estimate))";
const char kOpenCostPrice[] = "max by (node,instance_type,region,provider_id)(node_total_hourly_cost)";
const char kOpenCostSampled[] = "max by (node)(timestamp(node_total_hourly_cost))";
const char kOpenCostGpus[] = "max by (node)(node_gpu_count)";
const char kOpenCostSpot[] = "max by (node)(kubecost_node_is_spot)";
// OpenCost's built-in prices, which it uses silently for nodes of unknown types.
const char kOpenCostDefaults[] =
    "max by (node)((node_cpu_hourly_cost == 0.031611) and on (node) (node_ram_hourly_cost == "
    "0.004237))";

namespace {

// How long "unavailable" is valid without a new report: longer than the feed's period; Karpenter itself uses 3 min.
constexpr base::seconds kUnavailableFor{600};

std::string Label(const PromSample& sample, const std::string& name) {
  const auto found = sample.labels.find(name);
  return found == sample.labels.end() ? "" : found->second;
}

std::string SeriesName(const PromSample& sample) {
  std::string text;
  for (const auto& [name, value] : sample.labels) text += (text.empty() ? "" : ",") + name + "=" + value;
  return "{" + Quoted(text) + "}";
}

// An index of samples by the values of the given labels, joined by a NUL byte.
class ByLabels {
 public:
  ByLabels(const PromVector& vector, std::vector<std::string> labels) : labels_(std::move(labels)) {
    for (const PromSample& sample : vector.samples) samples_[Key(sample)] = &sample;
  }
  const PromSample* Find(const PromSample& like) const {
    const auto found = samples_.find(Key(like));
    return found == samples_.end() ? nullptr : found->second;
  }

 private:
  std::string Key(const PromSample& sample) const {
    std::string key;
    for (const std::string& label : labels_) key += Label(sample, label) + '\0';
    return key;
  }
  const std::vector<std::string> labels_;
  std::map<std::string, const PromSample*> samples_;
};

// The time of the sample by our clock; `now` if Prometheus did not return its time.
base::WallTime ObservedAt(const PromSample* sampled, base::WallTime now) {
  if (sampled == nullptr || !std::isfinite(sampled->value)) return now;
  const double age = std::clamp(sampled->evaluated - sampled->value, 0.0, 1e8);
  return now - std::chrono::duration_cast<base::WallTime::duration>(base::FromSeconds(age));
}

void TakeWarnings(const PromVector& vector, const char* of, ParsedPrices& out) {
  for (const std::string& warning : vector.warnings) {
    out.warnings.push_back(base::Unavailable("prometheus: {}: {}", of, warning));
  }
}

// True if the sample has a price; false if its price is unknown. Errors: an infinite or negative value.
absl::StatusOr<bool> HasPrice(const PromSample& sample) {
  if (std::isnan(sample.value) || sample.value == 0) return false;
  if (absl::Status status = CheckPrice(sample.value); !status.ok()) {
    return base::Annotate(status, SeriesName(sample));
  }
  return true;
}

// "aws:///us-east-1a/i-0", "gce://project/us-central1-c/name", "azure:///subscriptions/...".
struct ProviderId {
  std::string provider, zone;
};

ProviderId ParseProviderId(const std::string& text) {
  const size_t scheme = text.find("://");
  if (scheme == std::string::npos) return {};
  const std::string name = text.substr(0, scheme);
  const std::string rest = text.substr(scheme + 3);
  const size_t first = rest.find('/');
  const size_t second = first == std::string::npos ? first : rest.find('/', first + 1);
  const std::string middle = second == std::string::npos ? "" : rest.substr(first + 1, second - first - 1);
  if (name == "aws") return {"aws", AwsRegionOfZone(middle).empty() ? "" : middle};
  if (name == "gce") return {"gcp", middle};
  return {name, ""};
}

}  // namespace

absl::StatusOr<ParsedPrices> KarpenterPrices(const KarpenterAnswers& answers, const PromPlace& place,
                                             base::WallTime now) {
  const std::vector<std::string> labels = {"instance_type", "capacity_type", "zone"};
  const ByLabels available(answers.available, labels), sampled(answers.sampled, labels);
  ParsedPrices out;
  TakeWarnings(answers.price, "price", out);
  TakeWarnings(answers.available, "available", out);
  for (const PromSample& sample : answers.price.samples) {
    const std::string capacity = Label(sample, "capacity_type");
    MEDLEY_ASSIGN_OR_RETURN(const bool has_price, HasPrice(sample));
    if (!has_price || capacity == "reserved") {
      ++out.skipped;
      continue;
    }
    const std::string zone = Label(sample, "zone"), type = Label(sample, "instance_type");
    if (type.empty() || capacity.empty() || zone.empty()) {
      return base::InvalidArgument("{}: must have the labels instance_type, capacity_type and zone",
                                   SeriesName(sample));
    }
    CatalogEntry entry;
    const std::string region = AwsRegionOfZone(zone);
    entry.offering = model::Offering{place.provider.empty() ? "aws" : place.provider,
                                     region.empty() ? place.region : region,
                                     zone,
                                     type,
                                     capacity,
                                     1};
    entry.price_per_instance_hour = sample.value;
    entry.observed_at = ObservedAt(sampled.Find(sample), now);
    if (const PromSample* offered = available.Find(sample); offered != nullptr && offered->value == 0) {
      entry.available = false;
      entry.unavailable_until = now + kUnavailableFor;
    }
    out.entries.push_back(std::move(entry));
  }
  return out;
}

absl::StatusOr<ParsedPrices> OpenCostPrices(const OpenCostAnswers& answers, const PromPlace& place,
                                            base::WallTime now) {
  const ByLabels sampled(answers.sampled, {"node"}), gpus(answers.gpus, {"node"}), spot(answers.spot, {"node"}),
      defaults(answers.defaults, {"node"});
  ParsedPrices out;
  TakeWarnings(answers.price, "node_total_hourly_cost", out);
  for (const PromSample& sample : answers.price.samples) {
    MEDLEY_ASSIGN_OR_RETURN(const bool has_price, HasPrice(sample));
    const std::string type = Label(sample, "instance_type");
    if (!has_price || type.empty()) {
      ++out.skipped;
      continue;
    }
    if (defaults.Find(sample) != nullptr) {
      ++out.skipped;
      out.warnings.push_back(base::NotFound("node '{}': skipped: it has OpenCost's default price instead of its own",
                                            Quoted(Label(sample, "node"))));
      continue;
    }
    const ProviderId id = ParseProviderId(Label(sample, "provider_id"));
    const PromSample* is_spot = spot.Find(sample);
    const PromSample* gpu_count = gpus.Find(sample);
    const std::string region = Label(sample, "region");
    CatalogEntry entry;
    entry.offering = model::Offering{id.provider.empty() ? place.provider : id.provider,
                                     region.empty() ? place.region : region,
                                     id.zone,
                                     type,
                                     is_spot != nullptr && is_spot->value > 0 ? kSpot : kOnDemand,
                                     1};
    if (gpu_count != nullptr && gpu_count->value >= 1 && gpu_count->value <= 1024) {
      entry.shape.gpus = std::floor(gpu_count->value);
      entry.offering->units_per_instance = entry.shape.gpus;
    }
    entry.price_per_instance_hour = sample.value;
    entry.observed_at = ObservedAt(sampled.Find(sample), now);
    out.entries.push_back(std::move(entry));
  }
  return out;
}

}  // namespace medley::sched
