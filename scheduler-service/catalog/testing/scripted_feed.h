// A feed whose results come from a function of the test. Not thread-safe beyond the rules of Feed.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "scheduler-service/catalog/feed.h"

namespace medley::sched {

class ScriptedFeed final : public Feed {
 public:
  using Script = std::function<FetchResult(base::WallTime now, std::stop_token stop)>;
  ScriptedFeed(std::string name, FeedTraits traits, Script script)
      : name_(std::move(name)), traits_(traits), script_(std::move(script)) {}

  const std::string& name() const override { return name_; }
  FeedTraits traits() const override { return traits_; }
  FetchResult Fetch(base::WallTime now, std::stop_token stop) override { return script_(now, std::move(stop)); }

 private:
  const std::string name_;
  const FeedTraits traits_;
  const Script script_;
};

// An entry for the given offering at `price` USD per instance and hour.
inline CatalogEntry Offer(const std::string& provider, const std::string& region, const std::string& zone,
                          const std::string& type, const std::string& capacity, double price,
                          base::WallTime effective_at = {}) {
  CatalogEntry entry;
  entry.offering = model::Offering{provider, region, zone, type, capacity, 1};
  entry.price_per_instance_hour = price;
  entry.effective_at = effective_at;
  return entry;
}

}  // namespace medley::sched
