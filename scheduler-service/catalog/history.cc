#include "scheduler-service/catalog/history.h"

#include <algorithm>
#include <set>

namespace medley::sched {

void PriceHistory::Record(const std::vector<CatalogEntry>& entries, int64_t revision, base::WallTime now) {
  for (const CatalogEntry& entry : entries) {
    std::deque<PricePoint>& series = points_[KeyOf(entry)];
    PricePoint point{now, entry.UnitPrice(), entry.price_per_instance_hour, revision, entry.quality};
    if (!series.empty()) {
      const PricePoint& last = series.back();
      if (last.price_per_unit_hour == point.price_per_unit_hour &&
          last.price_per_instance_hour == point.price_per_instance_hour && last.quality == point.quality) {
        continue;
      }
    }
    series.push_back(point);
    ++size_;
    if (series.size() > options_.max_points_per_key) {
      series.pop_front();
      --size_;
    }
  }
  Trim(now);
  if (points_.size() > entries.size()) ForgetUnpublished(entries, now);
}

void PriceHistory::ForgetUnpublished(const std::vector<CatalogEntry>& entries, base::WallTime now) {
  std::set<std::string> keys;
  for (const CatalogEntry& entry : entries) keys.insert(KeyOf(entry));
  const auto oldest = now - std::chrono::duration_cast<base::WallTime::duration>(options_.max_age);
  for (auto it = points_.begin(); it != points_.end();) {
    if (!keys.contains(it->first) && it->second.back().time < oldest) {
      size_ -= it->second.size();
      it = points_.erase(it);
    } else {
      ++it;
    }
  }
}

void PriceHistory::Trim(base::WallTime now) {
  base::WallTime oldest = now - std::chrono::duration_cast<base::WallTime::duration>(options_.max_age);
  if (size_ > options_.max_points) {  // remove a tenth more than needed, so that this happens rarely
    std::vector<base::WallTime> times;
    times.reserve(size_);
    for (const auto& [key, series] : points_) {
      for (const PricePoint& point : series) times.push_back(point.time);
    }
    const size_t nth = size_ - options_.max_points + options_.max_points / 10;
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(nth), times.end());
    oldest = std::max(oldest, times[nth]);
  }
  for (auto& [key, series] : points_) {
    while (series.size() > 1 && series.front().time < oldest) {
      series.pop_front();
      --size_;
    }
  }
}

PriceSeries PriceHistory::Series(const CatalogEntry& current, std::optional<base::WallTime> since) const {
  PriceSeries out;
  out.current = current;
  const auto found = points_.find(KeyOf(current));
  if (found == points_.end()) return out;
  const std::deque<PricePoint>& series = found->second;
  for (size_t i = series.size(); i-- > 1;) {
    const double before = series[i - 1].price_per_unit_hour;
    if (before == series[i].price_per_unit_hour) continue;  // only the quality changed
    out.relative_change = (series[i].price_per_unit_hour - before) / before;
    break;
  }
  if (since) {
    const auto first =
        std::find_if(series.begin(), series.end(), [&](const PricePoint& p) { return p.time >= *since; });
    out.points.assign(first, series.end());
  }
  return out;
}

}  // namespace medley::sched
