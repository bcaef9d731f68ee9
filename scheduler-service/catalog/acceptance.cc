#include "scheduler-service/catalog/acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/model/checks.h"
#include "scheduler-service/catalog/staleness.h"

namespace medley::sched {
namespace {

constexpr size_t kMaxNotes = 8;

void Note(AcceptanceReport& report, const std::string& reason, std::string text) {
  ++report.reasons[reason];
  if (report.notes.size() < kMaxNotes) report.notes.push_back(std::move(text));
}

// The price by which steps and duplicates are compared.
double PriceOf(const CatalogEntry& entry) {
  return entry.price_per_instance_hour > 0 ? entry.price_per_instance_hour : entry.price_per_unit_hour;
}

bool SaysAvailabilityOnly(const CatalogEntry& entry) {
  return entry.price_per_instance_hour == 0 && entry.price_per_unit_hour == 0 && !entry.available;
}

bool IsPrice(double price) { return price >= 0 && price <= model::kMaxPricePerHour; }  // false for NaN

// The reason for rejecting an entry, or empty.
std::string Unusable(const CatalogEntry& entry) {
  if (KeyOf(entry).empty() || (entry.offering && entry.offering->instance_type.empty())) return "key";
  if (entry.currency != "USD") return "currency";
  if (SaysAvailabilityOnly(entry)) return "";
  const bool finite = IsPrice(entry.price_per_instance_hour) && IsPrice(entry.price_per_unit_hour);
  return finite && model::IsSourcePrice(PriceOf(entry)) ? "" : "price";
}

// Merges two entries of one key of which one reports only that the offering is unavailable: the result is the price of
// the other one, marked unavailable.
void JoinAvailability(const CatalogEntry& entry, CatalogEntry& other) {
  const CatalogEntry& unavailable = SaysAvailabilityOnly(entry) ? entry : other;
  const base::WallTime until = unavailable.unavailable_until;
  if (SaysAvailabilityOnly(other)) other = entry;
  other.available = false;
  other.unavailable_until = until;
}

// Reduces the snapshot to one entry per key: the one with the latest effective_at; among equals the most expensive.
std::map<std::string, CatalogEntry> Reduce(const Snapshot& snapshot, AcceptanceReport& report) {
  std::map<std::string, CatalogEntry> out;
  for (const CatalogEntry& entry : snapshot.entries) {
    const std::string key = KeyOf(entry);
    if (const std::string reason = Unusable(entry); !reason.empty()) {
      Note(report, reason, fmt::format("{}: rejected the price {} {}", key, PriceOf(entry), entry.currency));
      continue;
    }
    const auto [found, is_new] = out.try_emplace(key, entry);
    if (is_new) continue;
    CatalogEntry& other = found->second;
    if (SaysAvailabilityOnly(entry) || SaysAvailabilityOnly(other)) {
      JoinAvailability(entry, other);
    } else if (entry.effective_at == other.effective_at && PriceOf(entry) != PriceOf(other)) {
      Note(report, "duplicate", fmt::format("{}: has two prices, {} and {}", key, PriceOf(other), PriceOf(entry)));
      if (PriceOf(entry) > PriceOf(other)) other = entry;
    } else if (entry.effective_at > other.effective_at) {
      other = entry;
    }
  }
  return out;
}

bool Shrunk(const AcceptanceOptions& options, const AcceptedPrices& prices, size_t size, base::WallTime now) {
  if (options.authoritative || now - prices.complete_at > options.forget_after) return false;
  return static_cast<double>(size) < options.min_share_of_last * static_cast<double>(prices.complete_size);
}

bool TooFar(const AcceptanceOptions& options, double from, double to) {
  return to > from * options.max_step || to * options.max_step < from;
}

class Acceptor {
 public:
  Acceptor(const AcceptanceOptions& options, const OnDemandPrice& on_demand, base::WallTime now, AcceptedPrices& prices,
           AcceptanceReport& report)
      : options_(options), on_demand_(on_demand), now_(now), prices_(prices), report_(report) {}

  void Take(const std::string& key, CatalogEntry entry) {
    const auto known = prices_.known.find(key);
    if (SaysAvailabilityOnly(entry)) {
      if (known == prices_.known.end()) return;
      known->second.available = false;
      known->second.unavailable_until = entry.unavailable_until;
      return;
    }
    if (known != prices_.known.end() && entry.effective_at < known->second.effective_at) {
      ++report_.reasons["out_of_order"];
      return;
    }
    prices_.answered.insert(key);
    if (!options_.authoritative) Clamp(key, entry);
    if (known != prices_.known.end() && NeedsConfirmation(key, entry, PriceOf(known->second))) return;
    prices_.unconfirmed.erase(key);
    prices_.known[key] = std::move(entry);
  }

 private:
  void Clamp(const std::string& key, CatalogEntry& entry) {
    if (!IsSpot(entry) || entry.price_per_instance_hour <= 0) return;
    const std::optional<double> on_demand = OnDemandOf(*entry.offering);
    if (!on_demand) return;
    const double limit = *on_demand * options_.max_spot_of_on_demand;
    if (entry.price_per_instance_hour <= limit) return;
    Note(report_, "clamped",
         fmt::format("{}: the spot price {} is above the on-demand price {}, reduced to {}", key,
                     entry.price_per_instance_hour, *on_demand, limit));
    entry.price_per_unit_hour *= limit / entry.price_per_instance_hour;
    entry.price_per_instance_hour = limit;
  }

  std::optional<double> OnDemandOf(model::Offering offering) const {
    offering.capacity_type = "on-demand";
    for (const std::string& zone : {offering.zone, std::string()}) {
      offering.zone = zone;
      const auto found = prices_.known.find(offering.KeyString());
      if (found != prices_.known.end()) return found->second.price_per_instance_hour;
    }
    return on_demand_ ? on_demand_(offering) : std::nullopt;
  }

  // True if the price moved too far and no second answer has confirmed it yet.
  bool NeedsConfirmation(const std::string& key, const CatalogEntry& entry, double before) {
    if (options_.authoritative || !TooFar(options_, before, PriceOf(entry))) return false;
    const auto seen = prices_.unconfirmed.find(key);
    if (seen != prices_.unconfirmed.end() && !TooFar(options_, PriceOf(seen->second), PriceOf(entry))) return false;
    Note(report_, "step",
         fmt::format("{}: the change from {} to {} waits for confirmation by a second answer", key, before,
                     PriceOf(entry)));
    prices_.unconfirmed[key] = entry;
    return true;
  }

  const AcceptanceOptions& options_;
  const OnDemandPrice& on_demand_;
  const base::WallTime now_;
  AcceptedPrices& prices_;
  AcceptanceReport& report_;
};

}  // namespace

AcceptanceReport Accept(const AcceptanceOptions& options, const std::string& source, const Snapshot& snapshot,
                        const OnDemandPrice& on_demand, base::WallTime now, AcceptedPrices& prices) {
  AcceptanceReport report;
  std::map<std::string, CatalogEntry> entries = Reduce(snapshot, report);
  if (snapshot.complete && Shrunk(options, prices, entries.size(), now)) {
    report.taken = false;
    Note(report, "shrunk",
         fmt::format("the answer has {} prices, the last good one had {}", entries.size(), prices.complete_size));
    prices.answered.clear();
    return report;
  }
  prices.answered.clear();
  if (snapshot.complete) {
    prices.complete_size = entries.size();
    prices.complete_at = now;
    if (options.authoritative) {
      std::erase_if(prices.known, [&](const auto& known) { return !entries.contains(known.first); });
    }
  }
  Acceptor acceptor(options, on_demand, now, prices, report);
  for (const bool spot : {false, true}) {  // on-demand prices first: spot prices are compared with them
    for (auto& [key, entry] : entries) {
      if (IsSpot(entry) != spot) continue;
      if (entry.source.empty()) entry.source = source;
      if (!options.authoritative && entry.quality == Quality::kStatic) entry.quality = Quality::kLive;
      if (entry.observed_at == base::WallTime() || entry.observed_at > now) entry.observed_at = now;
      acceptor.Take(key, std::move(entry));
    }
  }
  Forget(options, now, prices);
  return report;
}

void Confirm(base::WallTime now, AcceptedPrices& prices) {
  for (const std::string& key : prices.answered) {
    if (const auto unconfirmed = prices.unconfirmed.find(key); unconfirmed != prices.unconfirmed.end()) {
      prices.known[key] = unconfirmed->second;
      prices.unconfirmed.erase(unconfirmed);
    }
    if (const auto known = prices.known.find(key); known != prices.known.end()) known->second.observed_at = now;
  }
}

int Forget(const AcceptanceOptions& options, base::WallTime now, AcceptedPrices& prices) {
  if (options.authoritative) return 0;
  return static_cast<int>(std::erase_if(
      prices.known, [&](const auto& known) { return now - known.second.observed_at > options.forget_after; }));
}

}  // namespace medley::sched
