// The datasheets: peak performance of one unit of each machine type.
//
//   const auto catalog = HardwareCatalog::Builtin();      // data/hardware.yaml, built in
//   const model::Hardware* v100 = catalog->Find("v100");
//
// Immutable value, thread-safe. A pointer from Find lives as long as its catalog.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/hardware.h"

namespace medley::sched {

using model::Hardware;

class HardwareCatalog {
 public:
  // Parses data/hardware.yaml. An error means that the build is broken.
  static absl::StatusOr<HardwareCatalog> Builtin();
  // Parses a text in the same format. Errors: InvalidArgument naming the field's path.
  static absl::StatusOr<HardwareCatalog> Parse(std::string_view text);
  // Validates `hardware`. Errors: as Parse.
  static absl::StatusOr<HardwareCatalog> Of(std::vector<Hardware> hardware);

  const Hardware* Find(std::string_view name) const;  // null for an unknown name
  const std::vector<Hardware>& all() const { return hardware_; }
  std::string Names() const;  // "cpu, t4, v100", for messages

 private:
  std::vector<Hardware> hardware_;  // in the file's order
};

}  // namespace medley::sched
