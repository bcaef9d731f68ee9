#include "scheduler-service/profile/hardware.h"

#include "common/base/status.h"
#include "scheduler-service/profile/builtin_hardware.h"

namespace medley::sched {

absl::StatusOr<HardwareCatalog> HardwareCatalog::Builtin() { return Parse(BuiltinHardwareText()); }

absl::StatusOr<HardwareCatalog> HardwareCatalog::Parse(std::string_view text) {
  MEDLEY_ASSIGN_OR_RETURN(std::vector<Hardware> hardware, model::ParseHardware(text));
  return Of(std::move(hardware));
}

absl::StatusOr<HardwareCatalog> HardwareCatalog::Of(std::vector<Hardware> hardware) {
  MEDLEY_RETURN_IF_ERROR(model::Validate(hardware));
  HardwareCatalog catalog;
  catalog.hardware_ = std::move(hardware);
  return catalog;
}

const Hardware* HardwareCatalog::Find(std::string_view name) const {
  for (const Hardware& hardware : hardware_) {
    if (hardware.name == name) return &hardware;
  }
  return nullptr;
}

std::string HardwareCatalog::Names() const {
  std::string names;
  for (const Hardware& hardware : hardware_) names += (names.empty() ? "" : ", ") + hardware.name;
  return names;
}

}  // namespace medley::sched
