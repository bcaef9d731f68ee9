#include "scheduler-service/catalog/book.h"

#include <set>

namespace medley::sched {
namespace {

// The price to which hysteresis applies.
double Price(const CatalogEntry& entry) {
  return entry.price_per_instance_hour > 0 ? entry.price_per_instance_hour : entry.price_per_unit_hour;
}

}  // namespace

PriceBook::PriceBook(BookOptions options, std::vector<SourceOptions> sources)
    : options_(std::move(options)), sources_(std::move(sources)), accepted_(sources_.size()) {}

AcceptanceOptions PriceBook::AcceptanceOf(size_t source) const {
  AcceptanceOptions out = options_.acceptance;
  out.authoritative = sources_[source].authoritative;
  return out;
}

std::vector<SourcePrices> PriceBook::Views() const {
  std::vector<SourcePrices> out;
  for (size_t i = 0; i < sources_.size(); ++i) {
    out.push_back({&accepted_[i], sources_[i].priority, sources_[i].ttl, sources_[i].on_demand_ttl});
  }
  return out;
}

AcceptanceReport PriceBook::Take(size_t source, const Snapshot& snapshot, base::WallTime now) {
  const std::vector<SourcePrices> views = Views();
  const OnDemandPrice on_demand = [&](const model::Offering& offering) { return FindOnDemand(views, offering); };
  return Accept(AcceptanceOf(source), sources_[source].name, snapshot, on_demand, now, accepted_[source]);
}

void PriceBook::Unchanged(size_t source, base::WallTime now) { Confirm(now, accepted_[source]); }

void PriceBook::UpdatePublished(const std::string& key, CatalogEntry entry, base::WallTime now) {
  const auto found = published_.find(key);
  if (found == published_.end()) {
    published_.emplace(key, PublishedPrice{std::move(entry), now});
    return;
  }
  PublishedPrice& published = found->second;
  const bool moved = entry.quality == Quality::kStatic
                         ? Price(entry) != Price(published.entry) || entry.UnitPrice() != published.entry.UnitPrice()
                         : ShouldPublish(options_.hysteresis, Price(published.entry), published.at, Price(entry), now);
  if (moved) {
    published.at = now;
  } else {  // everything but the price
    entry.price_per_instance_hour = published.entry.price_per_instance_hour;
    entry.price_per_unit_hour = published.entry.price_per_unit_hour;
  }
  published.entry = std::move(entry);
}

std::vector<CatalogEntry> PriceBook::Publish(base::WallTime now) {
  for (size_t i = 0; i < sources_.size(); ++i) Forget(AcceptanceOf(i), now, accepted_[i]);
  MergedPrices merged = Merge(Views(), options_.machines, options_.staleness, now);
  std::erase_if(published_, [&](const auto& published) { return !merged.contains(published.first); });
  for (auto& [key, entry] : merged) {
    ApplyOverrides(options_.overrides, entry);
    UpdatePublished(key, std::move(entry), now);
  }
  std::vector<CatalogEntry> out;
  std::set<std::string> named;
  for (const auto& [key, published] : published_) {
    named.insert(published.entry.resource_type);
    out.push_back(published.entry);
  }
  for (CatalogEntry& type : DeriveResources(options_.resources, out)) {
    // A type that a source defines takes precedence over a derived one.
    if (!named.contains(type.resource_type)) out.push_back(std::move(type));
  }
  return out;
}

}  // namespace medley::sched
