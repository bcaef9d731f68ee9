#include "operator/api/bounds.h"

#include "common/base/status.h"
#include "common/document/parse.h"
#include "common/model/job_bounds.h"
#include "common/model/schema_bounds.h"
#include "operator/api/crds.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr size_t kValueBytes = 8;  // counted for a value beside its text

model::SchemaBounds BoundsOfPool() {
  for (const auto& [name, text] : BundledCrds()) {
    if (name != "resourcepools.yaml") continue;
    const auto crd = document::Parse(text);
    MEDLEY_CHECK(crd.ok(), base::ToString(crd.status()));
    return model::SchemaBounds(
        crd->at(nlohmann::json::json_pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec")));
  }
  MEDLEY_CHECK(false, "no such CRD is bundled");
}

// Adds what `value` takes to `bytes`; stops where a limit is passed.
absl::Status Measure(const Json& value, int depth, size_t& bytes) {
  if (depth > kMaxSpecDepth) {
    return base::InvalidArgument("spec: objects and lists are nested more than {} deep", kMaxSpecDepth);
  }
  bytes += kValueBytes + (value.is_string() ? value.get_ref<const std::string&>().size() : 0);
  if (bytes > kMaxSpecBytes) return base::InvalidArgument("spec: is larger than {} KiB", kMaxSpecBytes >> 10);
  if (value.is_object()) {
    for (const auto& [name, field] : value.items()) {
      bytes += name.size();
      MEDLEY_RETURN_IF_ERROR(Measure(field, depth + 1, bytes));
    }
  } else if (value.is_array()) {
    for (const Json& item : value) MEDLEY_RETURN_IF_ERROR(Measure(item, depth + 1, bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSize(const Json& spec) {
  size_t bytes = 0;
  return Measure(spec, 0, bytes);
}

absl::Status CheckJobBounds(const Json& spec) { return model::CheckPresentJobFields(spec); }

absl::Status CheckPoolBounds(const Json& spec) {
  static const model::SchemaBounds bounds = BoundsOfPool();
  return bounds.Of(spec, "spec", model::SchemaBounds::Check::kPresentFields);
}

}  // namespace medley::ops
