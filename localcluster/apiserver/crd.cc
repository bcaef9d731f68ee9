// The rules and the status of CustomResourceDefinitions.
#include <fmt/format.h>

#include "common/base/status.h"
#include "kube/schema/rules.h"
#include "localcluster/apiserver/builtin.h"

namespace medley::localcluster::apiserver {
namespace {

void ValidateVersions(const kube::Json& spec, kube::FieldErrors* errors) {
  const kube::Json versions = spec.value("versions", kube::Json::array());
  if (!versions.is_array() || versions.empty()) {
    errors->push_back(kube::RequiredValue("spec.versions"));
    return;
  }
  int stored = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    const kube::Json& version = versions[i];
    const std::string path = fmt::format("spec.versions[{}]", i);
    if (!version.is_object()) continue;
    stored += version.value("storage", false);
    const auto schema = version.find("schema");
    if (schema == version.end() || !schema->is_object() || !schema->contains("openAPIV3Schema")) {
      errors->push_back(kube::RequiredValue(path + ".schema.openAPIV3Schema", "schemas are required"));
    } else if ((*schema)["openAPIV3Schema"].value("type", "") != "object") {
      errors->push_back(kube::InvalidValue(path + ".schema.openAPIV3Schema.type",
                                           (*schema)["openAPIV3Schema"].value("type", ""),
                                           "must be object at the root"));
    } else if (const auto rules = kube::Rules::Compile((*schema)["openAPIV3Schema"]); !rules.ok()) {
      errors->push_back(
          kube::InvalidValue(path + ".schema", "object", "compilation failed: " + base::Message(rules.status())));
    }
  }
  if (stored != 1) {
    errors->push_back(kube::InvalidValue("spec.versions", versions.size(),
                                         "must have exactly one version marked as storage version"));
  }
}

}  // namespace

void ValidateCrd(const kube::Json& crd, kube::FieldErrors* errors) {
  const kube::Json spec = crd.value("spec", kube::Json::object());
  const kube::Json names = spec.is_object() ? spec.value("names", kube::Json::object()) : kube::Json();
  if (!spec.is_object() || !names.is_object()) return;  // schema validation has already reported it
  const std::string group = spec.value("group", "");
  const std::string plural = names.value("plural", "");
  if (!IsDnsSubdomain(group) || group.find('.') == std::string::npos) {
    errors->push_back(kube::InvalidValue("spec.group", group, "should be a domain with at least one dot"));
  }
  if (crd.at("metadata").value("name", "") != plural + "." + group) {
    errors->push_back(kube::InvalidValue("metadata.name", crd.at("metadata").value("name", ""),
                                         "must be spec.names.plural+\".\"+spec.group"));
  }
  const std::string scope = spec.value("scope", "");
  if (scope != "Namespaced" && scope != "Cluster") {
    errors->push_back({"FieldValueNotSupported", "spec.scope",
                       fmt::format("Unsupported value: \"{}\": supported values: \"Cluster\", "
                                   "\"Namespaced\"",
                                   scope)});
  }
  if (!IsDnsLabel(plural)) {
    errors->push_back(kube::InvalidValue("spec.names.plural", plural, "a lowercase RFC 1123 label is needed"));
  }
  ValidateVersions(spec, errors);
}

void SetCrdStatus(kube::Json* crd, const std::string& now) {
  kube::Json& names = (*crd)["spec"]["names"];
  if (names.value("singular", "").empty()) {
    std::string singular = names.value("kind", "");
    for (char& c : singular) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    names["singular"] = singular;
  }
  if (names.value("listKind", "").empty()) names["listKind"] = names.value("kind", "") + "List";
  if (!(*crd)["spec"].contains("conversion")) (*crd)["spec"]["conversion"] = {{"strategy", "None"}};
  kube::Json stored = kube::Json::array();
  for (const kube::Json& version : (*crd)["spec"]["versions"]) {
    if (version.value("storage", false)) stored.push_back(version.value("name", ""));
  }
  std::string since = now;
  if (const kube::Json& old = (*crd)["status"];
      old.is_object() && old.contains("conditions") && old["conditions"].is_array() && !old["conditions"].empty()) {
    since = old["conditions"][0].value("lastTransitionTime", now);
  }
  (*crd)["status"] = {{"acceptedNames", names},
                      {"conditions", kube::Json::array({{{"type", "NamesAccepted"},
                                                         {"status", "True"},
                                                         {"reason", "NoConflicts"},
                                                         {"message", "no conflicts found"},
                                                         {"lastTransitionTime", since}},
                                                        {{"type", "Established"},
                                                         {"status", "True"},
                                                         {"reason", "InitialNamesAccepted"},
                                                         {"message", "the initial names have been accepted"},
                                                         {"lastTransitionTime", since}}})},
                      {"storedVersions", std::move(stored)}};
}

}  // namespace medley::localcluster::apiserver
