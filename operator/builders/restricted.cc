#include "operator/builders/restricted.h"

namespace medley::ops {

using kube::Json;

void FillRestricted(Json& pod_spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!pod_spec.contains(list) || !pod_spec[list].is_array()) continue;
    for (Json& container : pod_spec[list]) {
      if (!container.is_object()) continue;
      Json& context = container["securityContext"];
      if (context.is_null()) context = Json::object();
      if (!context.is_object()) continue;  // invalid: the API server will refuse the pod
      if (!context.contains("allowPrivilegeEscalation")) context["allowPrivilegeEscalation"] = false;
      if (!context.contains("capabilities")) context["capabilities"] = {{"drop", {"ALL"}}};
    }
  }
}

}  // namespace medley::ops
