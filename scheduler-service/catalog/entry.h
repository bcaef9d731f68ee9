// One price: of a cloud provider's offering, or of a named resource type. A value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/model/resource.h"

namespace medley::sched {

// The reliability of a price, best first. staleness.h has the rules.
enum class Quality {
  kStatic,    // written by a person; never stale
  kLive,      // confirmed by its source within the time to live (TTL)
  kCached,    // last confirmed more than one TTL ago; spot prices: at most three
  kFallback,  // spot price last confirmed more than three TTLs ago: min(on-demand, last x 1.25)
  kDefault,   // spot price unknown: the on-demand price of the same machine
};
std::string_view ToString(Quality quality);  // "static", "live", ...
// The quality with that name; nullopt for any other text.
std::optional<Quality> ParseQuality(std::string_view text);

// The resources of an instance; 0 or empty if the source does not report them.
struct Shape {
  double vcpus = 0;
  double memory_bytes = 0;  // of the instance
  std::string gpu_model;    // as in the datasheets, lower case: t4, v100, a10, l4, a100, h100, mi300x
  double gpus = 0;          // GPU devices visible to the instance
  double gpu_fraction = 1;  // share of a physical GPU per device, in (0, 1]: MIG slices/7, 1/replicas, memory share
  bool operator==(const Shape&) const = default;
};

// A feed sets `offering` or `resource_type`, a price, and whatever else it knows. It may leave both prices 0 only to
// report `available` (the known price stays). Unknown times are WallTime().
struct CatalogEntry {
  std::optional<model::Offering> offering;
  std::string resource_type;
  double price_per_instance_hour = 0;  // USD
  double price_per_unit_hour = 0;      // USD; 0 means price_per_instance_hour / units_per_instance
  std::string currency = "USD";        // entries in other currencies are rejected
  std::string source;                  // empty means the feed's name
  // When the source last confirmed the price, by our clock; empty means the end of the fetch. If the source reports the
  // age of its sample, the feed sets (`now` of Fetch) - age. It never uses the source's clock.
  base::WallTime observed_at;
  // When the price took effect, by the source's clock. Compared only within one source and key: an entry older than the
  // known one is ignored, and the latest of a snapshot wins.
  base::WallTime effective_at;
  Quality quality = Quality::kLive;
  bool available = true;
  base::WallTime unavailable_until;  // if !available: valid until then (our clock); empty: until the next report
  Shape shape;
  // A feed may define a complete resource type, for requests without resources of their own.
  std::string cls;  // CPU, GPU or empty
  int limit = 0;
  double memory_bytes = 0;  // of a unit
  std::string hardware;     // name of the datasheet

  // USD per unit and hour if an instance has `units_per_instance` units.
  double UnitPrice(double units_per_instance) const {
    return price_per_unit_hour > 0 ? price_per_unit_hour : price_per_instance_hour / units_per_instance;
  }
  // The same, with the offering's units_per_instance.
  double UnitPrice() const { return UnitPrice(offering ? offering->units_per_instance : 1); }
  bool operator==(const CatalogEntry&) const = default;
};

// Identifies what an entry prices: the offering's key, the resource type's name, or "name@key" if it has both.
std::string KeyOf(const CatalogEntry& entry);

}  // namespace medley::sched
