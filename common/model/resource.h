// A type of unit that a plan may buy, and the offering that has its price. Immutable values.
#pragma once

#include <optional>
#include <string>

namespace medley::model {

enum class ResourceClass { kCpu, kGpu };

// What a provider sells; prices are looked up by it.
struct Offering {
  std::string provider;
  std::string region;
  std::string zone;
  std::string instance_type;
  std::string capacity_type;
  double units_per_instance = 1;
  // "provider/region/zone/instance_type/capacity_type"
  std::string KeyString() const;
  bool operator==(const Offering&) const = default;
};

struct Resource {
  std::string name;
  ResourceClass cls = ResourceClass::kCpu;
  double price_per_unit_hour = 0;  // 0 with an offering: filled in from the catalog
  int limit = 0;                   // units
  double memory_bytes = 0;         // of a unit; 0: unlimited
  std::optional<Offering> offering;
  std::string hardware;  // datasheet that estimates layers without a profile on this type, or empty
  // Processor time of a unit for each message that it sends or receives (Link). 0: unknown.
  double processor_seconds_per_message = 0;
  double processor_seconds_per_byte = 0;
  double processor_seconds_per_message_in_a_row = 0;  // of messages without computation in between; 0: unknown
  double computed_bytes_per_message = 0;  // with which a unit computes per message for the seconds above; 0: unknown
  double cores = 0;                       // CPU limit of a unit; 0: unknown
  double cpu_period_seconds = 0;          // in which that limit holds; 0: unknown
  double device_memory_bytes = 0;         // of a unit's GPU that a trainer may use; 0: unknown
  bool operator==(const Resource&) const = default;
};

}  // namespace medley::model
