#include "scheduler-service/catalog/price_file.h"

#include <cmath>
#include <set>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/catalog/price_csv.h"

namespace medley::sched {
namespace {

constexpr int64_t kMaxBytes = int64_t{16} << 20;

bool Acceptable(double price) { return std::isfinite(price) && price >= 0; }

absl::Status CheckEntry(const CatalogEntry& entry, const std::string& path) {
  if (!entry.offering && entry.resource_type.empty()) {
    return base::InvalidArgument("{}: needs an offering or a resourceType", path);
  }
  if (entry.offering && entry.offering->instance_type.empty()) {
    return base::InvalidArgument("{}.offering.instanceType: must not be empty", path);
  }
  if (!Acceptable(entry.price_per_instance_hour)) {
    return base::InvalidArgument("{}.pricePerInstanceHour: must be finite and greater than 0, is {}", path,
                                 entry.price_per_instance_hour);
  }
  if (!Acceptable(entry.price_per_unit_hour) || !(entry.price_per_unit_hour + entry.price_per_instance_hour > 0)) {
    return base::InvalidArgument("{}.pricePerUnitHour: must be finite and greater than 0, is {}", path,
                                 entry.price_per_unit_hour);
  }
  if (!entry.cls.empty() && entry.cls != "CPU" && entry.cls != "GPU") {
    return base::InvalidArgument("{}.class: must be CPU or GPU, is '{}'", path, entry.cls);
  }
  if (entry.limit < 0) return base::InvalidArgument("{}.limit: must not be negative", path);
  if (!Acceptable(entry.memory_bytes)) return base::InvalidArgument("{}.memoryBytes: must not be negative", path);
  return absl::OkStatus();
}

absl::Status CheckEntries(const std::vector<CatalogEntry>& entries) {
  if (entries.empty()) return base::InvalidArgument("entries: must not be empty");
  std::set<std::string> keys;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string path = fmt::format("entries[{}]", i);
    MEDLEY_RETURN_IF_ERROR(CheckEntry(entries[i], path));
    const std::string key =
        entries[i].resource_type + "|" + (entries[i].offering ? entries[i].offering->KeyString() : "");
    if (!keys.insert(key).second) return base::InvalidArgument("{}: {} is there twice", path, key);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CatalogEntry>> ParseEntries(std::string_view text) {
  scheduler::v1::Catalog message;
  MEDLEY_RETURN_IF_ERROR(model::ParseText(text, message));
  return EntriesFromProto(message);
}

}  // namespace

absl::StatusOr<std::vector<CatalogEntry>> ParsePriceFile(std::string_view text, const std::string& name,
                                                         base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<CatalogEntry> entries,
                          LooksLikePriceCsv(text) ? ParsePriceCsv(text, std::filesystem::path(name).stem().string())
                                                  : ParseEntries(text));
  MEDLEY_RETURN_IF_ERROR(CheckEntries(entries));
  for (CatalogEntry& entry : entries) {
    if (entry.source.empty()) entry.source = "file:" + name;
    if (entry.observed_at == base::WallTime()) entry.observed_at = now;
  }
  return entries;
}

PriceFileFeed::PriceFileFeed(std::filesystem::path path, CatalogStore& store, metrics::Registry& metrics,
                             base::Clock& clock)
    : path_(std::move(path)), store_(store), metrics_(metrics), clock_(clock) {}

absl::Status PriceFileFeed::Reject(const std::string& what, std::string_view reason, const absl::Status& status) {
  if (last_seen_ == what) return last_status_;
  last_seen_ = what;
  last_status_ = base::Annotate(status, fmt::format("price file {}", path_.string()));
  metrics_
      .GetCounter("medley_price_rejected_total", "Price files that were not taken",
                  {{"source", "file"}, {"reason", std::string(reason)}})
      .Increment();
  log::Warn("prices refused, the last good ones stay", {{"error", base::Message(last_status_)}});
  return last_status_;
}

absl::Status PriceFileFeed::Poll() {
  const auto text = base::ReadFile(path_, kMaxBytes);
  if (!text.ok()) return Reject("unreadable " + base::Message(text.status()), "unreadable", text.status());
  const std::string hash = base::HashHex(*text);
  if (last_seen_ == hash) return last_status_;
  auto entries = ParsePriceFile(*text, path_.filename().string(), clock_.Now());
  if (!entries.ok()) return Reject(hash, "malformed", entries.status());
  last_seen_ = hash;
  last_status_ = absl::OkStatus();
  if (store_.Publish(std::move(*entries), clock_.Now())) {
    metrics_.GetCounter("medley_price_publish_total", "Revisions of the price catalog published").Increment();
    ShowPrices();
  }
  return absl::OkStatus();
}

void PriceFileFeed::ShowPrices() {
  const CatalogSnapshot catalog = store_.Get();
  const std::string name = "medley_price_usd_per_hour";
  for (const metrics::Labels& labels : shown_) metrics_.RemoveGauge(name, labels);
  shown_.clear();
  for (const CatalogEntry& entry : catalog->entries) {
    shown_.push_back({{"resource_type", entry.resource_type},
                      {"offering", entry.offering ? entry.offering->KeyString() : ""}});
    metrics_.GetGauge(name, "Price of a unit", shown_.back())
        .Set(entry.UnitPrice());
  }
  metrics_.GetGauge("medley_catalog_revision", "Revision of the price catalog")
      .Set(static_cast<double>(catalog->revision));
  log::Info("prices published", {{"revision", std::to_string(catalog->revision)},
                                 {"entries", std::to_string(catalog->entries.size())}});
}

void PriceFileFeed::Run(base::nanoseconds interval, std::stop_token stop) {
  while (!stop.stop_requested()) {
    static_cast<void>(Poll());  // logged and counted there
    if (!clock_.SleepFor(interval, stop)) return;
  }
}

}  // namespace medley::sched
