#include "worker/app/trained_settings.h"

#include <nlohmann/json.hpp>

namespace medley::worker {
namespace {

using Fields = nlohmann::json;

// No part of the fingerprint: another value does not make another model (fingerprint.h).
constexpr const char* kOtherTraining[] = {"epochs", "microBatches", "evaluation", "earlyStopping", "tensorBoard"};

Fields Without(Fields object, std::initializer_list<const char*> names) {
  for (const char* name : names) object.erase(name);
  return object;
}

void SetPath(Fields& object, const char* field, const std::string& path) {
  if (object.is_object() && object.contains(field)) object[field] = path;
}

}  // namespace

std::string TrainedSettings(std::string_view spec_json, const model::JobSpec& spec) {
  const Fields all = Fields::parse(spec_json, nullptr, false);
  if (!all.is_object()) return "";
  Fields kept;
  for (const char* part : {"model", "data", "training"}) {
    if (all.contains(part) && all[part].is_object()) kept[part] = all[part];
  }
  if (kept.contains("model")) {
    Fields& model = kept["model"];
    if (model.contains("exported")) SetPath(model["exported"], "uri", spec.model.exported_uri);
    if (model.contains("torchScript")) SetPath(model["torchScript"], "uri", spec.model.torchscript_uri);
  }
  if (kept.contains("data")) {
    Fields& data = kept["data"] = Without(kept["data"], {"test", "maxBadRows", "volume"});
    if (data.contains("train")) SetPath(data["train"], "uri", spec.data.train.uri);
    if (!spec.data.validation || spec.data.validation->fraction <= 0) data.erase("validation");
  }
  if (kept.contains("training")) {
    for (const char* name : kOtherTraining) kept["training"].erase(name);
  }
  return kept.dump(-1, ' ', false, Fields::error_handler_t::replace);
}

}  // namespace medley::worker
