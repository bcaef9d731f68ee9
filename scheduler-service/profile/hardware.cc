#include "scheduler-service/profile/hardware.h"

#include <cmath>

#include "common/base/rng.h"
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

std::vector<Hardware> PerturbHardware(const HardwareCatalog& catalog, int count, uint64_t seed) {
  base::Rng rng(seed);
  const auto perturbed = [&rng](double value) { return value * std::exp2(rng.Uniform(-1, 1)); };
  std::vector<Hardware> made;
  for (int i = 0; i < count; ++i) {
    const Hardware& like = catalog.all()[static_cast<size_t>(i) % catalog.all().size()];
    Hardware hardware = like;
    hardware.name = fmt::format("{}-{}", like.name, i);
    hardware.description = fmt::format("fictitious: {} perturbed with seed {}", like.name, seed);
    const double flops = perturbed(1);  // the same factor for all precisions
    for (auto& [precision, value] : hardware.flops) value *= flops;
    hardware.memory_bytes = perturbed(like.memory_bytes);
    hardware.memory_bytes_per_second = perturbed(like.memory_bytes_per_second);
    hardware.network_bytes_per_second = perturbed(like.network_bytes_per_second);
    hardware.launch_seconds = perturbed(like.launch_seconds);
    for (auto& [field, source] : hardware.sources) source = hardware.description;
    made.push_back(std::move(hardware));
  }
  return made;
}

}  // namespace medley::sched
