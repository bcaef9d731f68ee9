#include "scheduler-service/catalog/price_file.h"

#include <cmath>
#include <filesystem>
#include <set>

#include "common/base/status.h"
#include "common/model/checks.h"
#include "common/model/text.h"
#include "scheduler-service/catalog/catalog_proto.h"
#include "scheduler-service/catalog/price_csv.h"

namespace medley::sched {
namespace {

bool Acceptable(double price) { return price == 0 || model::IsSourcePrice(price); }

absl::Status CheckEntry(const CatalogEntry& entry, const std::string& path) {
  if (!entry.offering && entry.resource_type.empty()) {
    return base::InvalidArgument("{}: must have an offering or a resourceType", path);
  }
  if (entry.offering && entry.offering->instance_type.empty()) {
    return base::InvalidArgument("{}.offering.instanceType: must not be empty", path);
  }
  if (!Acceptable(entry.price_per_instance_hour)) {
    return base::InvalidArgument("{}.pricePerInstanceHour: must be finite and greater than 0, at most 1e9, is {}", path,
                                 entry.price_per_instance_hour);
  }
  if (!Acceptable(entry.price_per_unit_hour) || !(entry.price_per_unit_hour + entry.price_per_instance_hour > 0)) {
    return base::InvalidArgument("{}.pricePerUnitHour: must be finite and greater than 0, at most 1e9, is {}", path,
                                 entry.price_per_unit_hour);
  }
  if (!entry.cls.empty() && entry.cls != "CPU" && entry.cls != "GPU") {
    return base::InvalidArgument("{}.class: must be CPU or GPU, is '{}'", path, entry.cls);
  }
  if (entry.limit < 0) return base::InvalidArgument("{}.limit: must not be negative", path);
  if (const absl::Status memory = model::CheckNotNegative(entry.memory_bytes, path + ".memoryBytes"); !memory.ok()) {
    return memory;
  }
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
    if (!keys.insert(key).second) return base::InvalidArgument("{}: {} appears twice", path, key);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<CatalogEntry>> ParsePriceFile(std::string_view text, const std::string& name,
                                                         base::WallTime now, std::vector<absl::Status>* left_out) {
  std::vector<absl::Status> ignored;
  MEDLEY_ASSIGN_OR_RETURN(std::vector<CatalogEntry> entries,
                          LooksLikePriceCsv(text) ? ParsePriceCsv(text, std::filesystem::path(name).stem().string(),
                                                                  left_out != nullptr ? *left_out : ignored)
                                                  : EntriesFromText(text));
  MEDLEY_RETURN_IF_ERROR(CheckEntries(entries));
  for (CatalogEntry& entry : entries) {
    if (entry.source.empty()) entry.source = "file:" + name;
    if (entry.observed_at == base::WallTime()) entry.observed_at = now;
    entry.quality = Quality::kStatic;
  }
  return entries;
}

}  // namespace medley::sched
