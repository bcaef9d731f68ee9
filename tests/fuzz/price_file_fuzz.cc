// The fuzz target of price files, in every format. No input may crash it, and every price that is accepted is a
// positive number.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/status.h"
#include "scheduler-service/catalog/price_file.h"

namespace medley::sched {
namespace {

void FuzzPriceFile(std::string_view input) {
  for (const char* name : {"prices.yaml", "aws.csv"}) {
    const auto entries = ParsePriceFile(input, name, base::WallTime());
    if (!entries.ok()) continue;
    for (const CatalogEntry& entry : *entries) {
      const double price = entry.price_per_instance_hour + entry.price_per_unit_hour;
      MEDLEY_CHECK(std::isfinite(price) && price > 0, "an impossible price was accepted");
    }
  }
}

}  // namespace
}  // namespace medley::sched

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  medley::sched::FuzzPriceFile({reinterpret_cast<const char*>(data), size});
  return 0;
}
