// Converts the catalog to and from protobuf.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <vector>

#include "scheduler-service/catalog/catalog.h"

namespace medley::scheduler::v1 {
class Catalog;
class ListPricesResponse;
}  // namespace medley::scheduler::v1

namespace medley::sched {

void CatalogToProto(const Catalog& catalog, scheduler::v1::Catalog& out);
// The response to ListPrices from CatalogStore::History. Ages are computed at `now`.
void PricesToProto(const std::vector<PriceSeries>& series, int64_t revision, base::WallTime now,
                   scheduler::v1::ListPricesResponse& out);
// A missing `available` means true. Pure. Does not validate; ParsePriceFile does.
std::vector<CatalogEntry> EntriesFromProto(const scheduler::v1::Catalog& in);
// The same of a catalog as JSON or YAML. Errors: those of model::ParseText.
absl::StatusOr<std::vector<CatalogEntry>> EntriesFromText(std::string_view text);

}  // namespace medley::sched
