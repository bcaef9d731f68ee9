// One price: of an offering of a cloud, or of a resource type by name. A value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/model/planning.h"

namespace medley::sched {

// How far a price can be relied upon, best first.
enum class Quality {
  kStatic,    // a person wrote it: does not go stale
  kLive,      // confirmed by its source within the time to live
  kCached,    // older than that, up to three times
  kFallback,  // older still: min(on-demand, last x 1.25)
  kDefault,   // no price of its own is known: the on-demand price of the same machine
};
std::string_view ToString(Quality quality);  // "static", "live", ...
// The quality of that name; nothing for any other text.
std::optional<Quality> ParseQuality(std::string_view text);

// What an instance is made of; 0 or empty where the source does not tell.
struct Shape {
  double vcpus = 0;
  double memory_bytes = 0;  // of the instance; sources that speak of GB or GiB are converted by their parser
  std::string gpu_model;    // as datasheets spell it, lower case: t4, v100, a10, l4, a100, h100, mi300x
  double gpus = 0;          // devices that the instance sees
  double gpu_fraction = 1;  // of a whole GPU that such a device is, in (0, 1]: MIG slices/7, 1/replicas, memory share
  bool operator==(const Shape&) const = default;
};

// A feed fills `offering` or `resource_type`, a price and what else it knows. It may leave both prices 0 only to say
// something of `available` (the price known before stays). Times that are not known are WallTime().
struct CatalogEntry {
  std::optional<model::Offering> offering;
  std::string resource_type;
  double price_per_instance_hour = 0;  // USD
  double price_per_unit_hour = 0;      // USD; 0: price_per_instance_hour / units_per_instance
  std::string currency = "USD";        // an entry in any other one is refused
  std::string source;                  // the feed's name when left empty
  // When our side last had the price confirmed, by our clock. Empty: when the fetch ended. A feed whose source says how
  // old its sample is sets (now of Fetch) - (that age), never the source's clock.
  base::WallTime observed_at;
  // When the price took effect, by the source's clock. Only compared with other times of the same source and key: an
  // older one than the last is ignored, the latest of a snapshot wins.
  base::WallTime effective_at;
  Quality quality = Quality::kLive;
  bool available = true;
  base::WallTime unavailable_until;  // with !available: believed until then (our clock); empty: until told otherwise
  Shape shape;
  // A feed may define a resource type whole, for requests that bring no resources.
  std::string cls;  // CPU, GPU or empty
  int limit = 0;
  double memory_bytes = 0;  // of a unit
  std::string hardware;     // datasheet

  // USD per unit and hour where an instance has `units_per_instance` units.
  double UnitPrice(double units_per_instance) const {
    return price_per_unit_hour > 0 ? price_per_unit_hour : price_per_instance_hour / units_per_instance;
  }
  // With the entry's own units.
  double UnitPrice() const { return UnitPrice(offering ? offering->units_per_instance : 1); }
  bool operator==(const CatalogEntry&) const = default;
};

// What makes two entries speak of the same thing: the offering's key, or the resource type's name, or "name@key".
std::string KeyOf(const CatalogEntry& entry);

}  // namespace medley::sched
