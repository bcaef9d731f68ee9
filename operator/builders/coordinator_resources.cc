#include "operator/builders/coordinator_resources.h"

#include <string>

#include "common/base/quantity.h"

namespace medley::ops {
namespace {

using kube::Json;

// From a quantity as a manifest writes it; 0 for an invalid one, which the API server refuses.
double AmountOf(const Json& quantity) {
  if (quantity.is_number()) return quantity.get<double>();
  const auto parsed = quantity.is_string() ? base::ParseQuantity(quantity.get<std::string>()) : 0;
  return parsed.ok() ? *parsed : 0;
}

void Fill(Json& resources, const char* name, const char* request, const char* limit) {
  const bool has_request = resources["requests"].contains(name);
  const bool has_limit = resources["limits"].contains(name);
  if (!has_request) {
    const bool above = has_limit && AmountOf(resources["limits"][name]) < AmountOf(request);
    resources["requests"][name] = above ? resources["limits"][name] : Json(request);
  }
  if (!has_limit) {
    const bool below = AmountOf(resources["requests"][name]) > AmountOf(limit);
    resources["limits"][name] = below ? resources["requests"][name] : Json(limit);
  }
}

}  // namespace

void FillCoordinatorResources(Json& container) {
  Json& resources = container["resources"];
  for (const char* list : {"requests", "limits"}) {
    if (resources.is_null() || !resources.contains(list) || resources[list].is_null()) resources[list] = Json::object();
    if (!resources[list].is_object()) return;  // invalid: the API server will refuse the pod
  }
  Fill(resources, "cpu", kCoordinatorCpu, kCoordinatorCpuLimit);
  Fill(resources, "memory", kCoordinatorMemory, kCoordinatorMemoryLimit);
}

}  // namespace medley::ops
