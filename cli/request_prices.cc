#include "cli/request_prices.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/planning.h"
#include "scheduler-service/catalog/catalog.h"
#include "scheduler-service/catalog/price_file.h"
#include "scheduler-service/prepare/prepare.h"

namespace medley::cli {
namespace {

constexpr size_t kMaxBytes = 16 << 20;

}  // namespace

absl::Status PriceRequest(const std::filesystem::path& file, const sched::HardwareCatalog& hardware,
                          const base::Clock& clock, model::PlanRequest& request, sched::PriceOrigin& origin) {
  sched::CatalogStore store;
  if (!file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, kMaxBytes));
    std::vector<absl::Status> left_out;
    auto entries = sched::ParsePriceFile(text, file.filename().string(), clock.Now(), &left_out);
    for (const absl::Status& status : left_out) base::log::Warn("left a price out", {{"error", base::Message(status)}});
    if (!entries.ok()) return base::Annotate(entries.status(), file.string());
    store.Publish(std::move(*entries), clock.Now());
  }
  const sched::CatalogSnapshot catalog = store.Get();
  if (catalog->revision > 0) origin = {catalog->revision, catalog->price_time};
  return sched::PrepareRequest(*catalog, hardware, request);
}

}  // namespace medley::cli
