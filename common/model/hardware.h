// A datasheet: the peak figures of one unit of a machine (the proto is medley.scheduler.v1.Hardware). Immutable value.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/resource.h"

namespace medley::model {

struct Hardware {
  std::string name;
  ResourceClass cls = ResourceClass::kCpu;
  std::string description;
  std::map<std::string, double> flops;  // peak FLOP/s by precision: fp64, fp32, tf32, fp16, bf16, fp8, int8
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;
  double network_bytes_per_second = 0;
  double launch_seconds = 0;                   // overhead of one kernel
  std::map<std::string, std::string> sources;  // where each figure comes from, by field name
  bool operator==(const Hardware&) const = default;
};

// Checks that names are unique and not empty, fp32 is given, figures are finite and positive, and each figure has a
// source. Errors: InvalidArgument naming the field's path ("hardware[2].flops.fp32").
absl::Status Validate(const std::vector<Hardware>& hardware);

// Reads and validates a datasheet file: JSON or YAML of medley.scheduler.v1.ListHardwareResponse.
absl::StatusOr<std::vector<Hardware>> ParseHardware(std::string_view text);

}  // namespace medley::model
