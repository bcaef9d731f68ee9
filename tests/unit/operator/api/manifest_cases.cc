#include "tests/unit/operator/api/manifest_cases.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/document/parse.h"
#include "operator/api/validate.h"

namespace medley::ops {
namespace {

using kube::Json;

std::string Root() {
  const char* source = std::getenv("MEDLEY_SOURCE_DIR");
  return source == nullptr ? "." : source;
}

std::vector<std::string> Names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(Root() + "/" + folder))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  MEDLEY_CHECK(!names.empty(), "no manifests in " + folder);
  return names;
}

void Collect(const Json& node, std::set<std::string>& sentences) {
  if (node.is_array()) {
    for (const Json& item : node) Collect(item, sentences);
  }
  if (!node.is_object()) return;
  for (const auto& [key, value] : node.items()) {
    if (key != "x-kubernetes-validations") {
      Collect(value, sentences);
      continue;
    }
    for (const Json& rule : value) sentences.insert(rule.at("message").get<std::string>());
  }
}

constexpr char kGood[] = "tests/data/manifests/good";
constexpr char kBad[] = "tests/data/manifests/bad";

}  // namespace

kube::Object ManifestCase::Updated() const {
  Json json = manifest.json();
  if (update.is_object()) kube::MergePatch(json, update);
  return kube::Object(json);
}

std::vector<std::string> ManifestCase::Validate() const {
  const kube::Object object = Updated();
  if (is_pool()) return ValidateResourcePool(object);
  std::vector<std::string> broken = ValidateTrainingJob(object);
  if (update.is_object()) {
    for (std::string& sentence : ValidateTrainingJobUpdate(manifest.At("/spec"), object.At("/spec")))
      broken.push_back(std::move(sentence));
  }
  return broken;
}

std::string CrdText(const std::string& file, const std::string& version) {
  const std::string folder = version.empty() ? "deploy/crds/" : "tests/data/crds/" + version + "/";
  const auto text = base::ReadFile(Root() + "/" + folder + file);
  MEDLEY_CHECK(text.ok(), base::ToString(text.status()));
  return *text;
}

Json LoadYaml(const std::string& path) {
  const auto text = base::ReadFile(Root() + "/" + path);
  MEDLEY_CHECK(text.ok(), base::ToString(text.status()));
  auto json = document::Parse(*text);
  MEDLEY_CHECK(json.ok(), path + ": " + base::ToString(json.status()));
  return *std::move(json);
}

std::vector<kube::Object> GoodManifests() {
  std::vector<kube::Object> manifests;
  for (const std::string& name : Names(kGood))
    manifests.emplace_back(LoadYaml(std::string(kGood) + "/" + name + ".yaml"));
  return manifests;
}

std::vector<ManifestCase> BadManifests() {
  std::vector<ManifestCase> cases;
  for (const std::string& name : Names(kBad)) {
    const Json json = LoadYaml(std::string(kBad) + "/" + name + ".yaml");
    Json manifest = LoadYaml(std::string(kGood) + "/" + json.at("base").get<std::string>());
    kube::MergePatch(manifest, json.value("change", Json::object()));
    ManifestCase made{.name = name,
                      .manifest = kube::Object(manifest),
                      .update = json.value("update", Json()),
                      .schema = json.value("schema", ""),
                      .rule = json.value("rule", ""),
                      .world = json.value("world", ""),
                      .condition = json.value("condition", Json())};
    const int answers =
        (made.schema.empty() ? 0 : 1) + (made.rule.empty() ? 0 : 1) + (made.condition.is_null() ? 0 : 1);
    MEDLEY_CHECK(answers == 1, name + ": needs one of schema, rule, condition");
    cases.push_back(std::move(made));
  }
  return cases;
}

std::set<std::string> RuleSentences(const std::string& crd_file) {
  std::set<std::string> sentences;
  Collect(LoadYaml("deploy/crds/" + crd_file), sentences);
  return sentences;
}

}  // namespace medley::ops
