// The catalog on the wire.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "scheduler-service/catalog/catalog.h"

namespace medley::scheduler::v1 {
class Catalog;
}

namespace medley::sched {

void CatalogToProto(const Catalog& catalog, scheduler::v1::Catalog& out);
// `available` is true where it is absent. Pure; checks nothing (ParsePriceFile does).
std::vector<CatalogEntry> EntriesFromProto(const scheduler::v1::Catalog& in);

}  // namespace medley::sched
