#include "operator/api/resource_pool.h"

#include <algorithm>

#include "common/base/quantity.h"
#include "common/base/status.h"
#include "common/document/reader.h"
#include "operator/api/bounds.h"

namespace medley::ops {

bool ResourcePool::Allows(std::string_view ns) const {
  return namespaces.empty() || std::find(namespaces.begin(), namespaces.end(), ns) != namespaces.end();
}

absl::StatusOr<ResourcePool> ResourcePool::FromObject(const kube::Object& object) {
  MEDLEY_RETURN_IF_ERROR(CheckSize(object.At("/spec")));
  ResourcePool pool;
  pool.object = object;
  pool.name = object.key().name;
  const document::Reader spec(object.At("/spec"), "spec");
  pool.cls = spec.String("class") == "GPU" ? model::ResourceClass::kGpu : model::ResourceClass::kCpu;
  const document::Reader unit = spec.Child("unit");
  pool.unit_resources = unit.StringMap("resources");
  for (const auto& [name, text] : pool.unit_resources) {
    const auto parsed = base::ParseQuantity(text);
    if (!parsed.ok()) return base::Annotate(parsed.status(), "spec.unit.resources[" + name + "]");
  }
  for (const document::Reader& variable : unit.List("env")) {
    pool.unit_env.emplace_back(variable.String("name"), variable.String("value"));
  }
  pool.memory_bytes = spec.Quantity("memory", 0);
  pool.node_selector = spec.StringMap("nodeSelector");
  if (spec.Has("tolerations")) pool.tolerations = spec.Raw("tolerations");
  pool.pod_template = ReadPodTemplate(spec.Child("template"));
  pool.limit = static_cast<int>(spec.Int("limit", 0));
  pool.scaling = spec.String("scaling", "Nodes") == "Autoscaled" ? PoolScaling::kAutoscaled : PoolScaling::kNodes;
  pool.provision_timeout_seconds = spec.Seconds("provisionTimeout", 900);
  pool.namespaces = spec.Strings("namespaces");
  const document::Reader price = spec.Child("price");
  pool.usd_per_unit_hour = price.Quantity("usdPerUnitHour", 0);
  if (price.Has("offering")) {
    const document::Reader offering = price.Child("offering");
    pool.offering = model::Offering{offering.String("provider"),     offering.String("region"),
                                    offering.String("zone"),         offering.String("instanceType"),
                                    offering.String("capacityType"), offering.Number("unitsPerInstance", 1)};
  }
  if (pool.provision_timeout_seconds > kLongestSeconds) {
    spec.Fail("provisionTimeout", "must be at least 1s and at most 24h");
  }
  MEDLEY_RETURN_IF_ERROR(spec.status());
  MEDLEY_RETURN_IF_ERROR(CheckPoolBounds(object.At("/spec")));
  return pool;
}

}  // namespace medley::ops
