#include "operator/builders/zone_pin.h"

#include "operator/api/pool_zones.h"

namespace medley::ops {

void PinToZone(const std::string& zone, kube::Json& pod_spec) {
  using kube::Json;
  if (zone.empty()) return;
  const auto selector = pod_spec.find("nodeSelector");
  if (selector != pod_spec.end() && selector->is_object() && selector->contains(kZoneLabel)) return;
  Json& terms = pod_spec[Json::json_pointer(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms")];
  if (!terms.is_array() || terms.empty()) terms = Json::array({Json::object()});
  for (Json& term : terms) {
    term["matchExpressions"].push_back({{"key", kZoneLabel}, {"operator", "In"}, {"values", Json::array({zone})}});
  }
}

}  // namespace medley::ops
