// The current CRDs accept every object that an older version accepted. Compares the schemas, without a server.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "tests/unit/operator/api/manifest_cases.h"

namespace medley::ops {
namespace {

using kube::Json;
using testing::IsEmpty;

// Bounds that were narrowed on purpose. The operator refused these values as InvalidModel already, so no job ran with
// them, and API servers keep stored objects whose invalid values do not change (validation ratcheting, Kubernetes
// v1.30).
const std::set<std::string>& Narrowed() {
  static const std::set<std::string> paths = {
      "spec.data.train.format: enum no longer holds \"libsvm\"",
      "spec.data.test.format: enum no longer holds \"libsvm\"",
      "spec.model.parameters.embeddingRows: maximum",
      "spec.data.schema.numericBuckets: maximum",
      // No value beyond these bounds could work: sums overflowed, or the object was too large to store. Integers above
      // 2^53 are rounded by JSON readers.
      "spec.checkpoint.volume: maxProperties",
      "spec.checkpoint.volume.configMap: maxProperties",
      "spec.checkpoint.volume.downwardAPI: maxProperties",
      "spec.checkpoint.volume.emptyDir: maxProperties",
      "spec.checkpoint.volume.ephemeral: maxProperties",
      "spec.checkpoint.volume.gitRepo: maxProperties",
      "spec.checkpoint.volume.image: maxProperties",
      "spec.checkpoint.volume.projected: maxProperties",
      "spec.checkpoint.volume.secret: maxProperties",
      "spec.data.volume: maxProperties",
      "spec.objective.minThroughput: maximum",
      "spec.objective.minThroughput: minimum",
      "spec.price.offering.unitsPerInstance: maximum",
      "spec.price.offering.unitsPerInstance: minimum",
      "spec.template.spec: maxProperties",
      "spec.tolerations[].tolerationSeconds: maximum",
      "spec.tolerations[].tolerationSeconds: minimum",
      "spec.training.optimizer.learningRate: maximum",
      "spec.training.optimizer.learningRate: minimum",
      "spec.training.seed: maximum",
  };
  return paths;
}

class Comparison {
 public:
  std::vector<std::string> problems;

  void Compare(const std::string& path, const Json& before, const Json& after) {
    const std::string type = before.value("type", "");
    const bool widened = after.value("x-kubernetes-int-or-string", false) && (type == "integer" || type == "string");
    if (type != after.value("type", "") && !widened) Add(path, "another type");
    for (const char* flag : {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}) {
      if (before.value(flag, false) && !after.value(flag, false)) Add(path, std::string("no ") + flag);
    }
    Enum(path, before, after);
    // Bounds of strings are none for what was an integer, and the other way round.
    const auto concerns = [&](const std::string& bound) {
      if (!widened) return true;
      return bound.ends_with("Length") == (type == "string");
    };
    for (const char* bound : {"maximum", "maxLength", "maxItems", "maxProperties"})
      if (concerns(bound)) Bound(path, bound, before, after, +1);
    for (const char* bound : {"minimum", "minLength", "minItems", "minProperties"})
      if (concerns(bound)) Bound(path, bound, before, after, -1);
    if (before.value("pattern", "") != after.value("pattern", "")) Add(path, "another pattern");
    if (before.value("default", Json()) != after.value("default", Json()) && before.contains("default")) {
      Add(path, "another default");
    }
    for (const Json& name : after.value("required", Json::array())) {
      const Json old = before.value("required", Json::array());
      if (std::find(old.begin(), old.end(), name) == old.end()) Add(path, name.get<std::string>() + " is required now");
    }
    if (before.contains("items")) Compare(path + "[]", before["items"], after.at("items"));
    const Json fields = before.value("properties", Json::object());
    for (const auto& [name, field] : fields.items()) {
      const std::string below = path.empty() ? name : path + "." + name;
      if (!after["properties"].contains(name)) {
        Add(below, "was removed");
      } else {
        Compare(below, field, after["properties"][name]);
      }
    }
  }

 private:
  void Add(const std::string& path, const std::string& what) {
    if (!Narrowed().contains(path + ": " + what)) problems.push_back(path + ": " + what);
  }
  void Enum(const std::string& path, const Json& before, const Json& after) {
    if (!before.contains("enum") && after.contains("enum")) Add(path, "a new enum");
    if (!before.contains("enum") || !after.contains("enum")) return;
    for (const Json& value : before["enum"]) {
      if (std::find(after["enum"].begin(), after["enum"].end(), value) == after["enum"].end())
        Add(path, "enum no longer holds " + value.dump());
    }
  }
  void Bound(const std::string& path, const char* bound, const Json& before, const Json& after, int direction) {
    if (!after.contains(bound)) return;
    if (!before.contains(bound) || direction * (after[bound].get<double>() - before[bound].get<double>()) < 0) {
      Add(path, bound);
    }
  }
};

TEST(CrdUpgradeTest, ObjectsOfOlderSchemasAreStillValid) {
  for (const char* file : {"trainingjobs.yaml", "resourcepools.yaml"}) {
    const Json before = LoadYaml(std::string("tests/data/crds/0.1/") + file);
    const Json after = LoadYaml(std::string("deploy/crds/") + file);
    for (const char* part : {"group", "scope", "names"}) EXPECT_EQ(before["spec"][part], after["spec"][part]) << file;
    const Json& old = before["spec"]["versions"][0];
    const Json& now = after["spec"]["versions"][0];
    EXPECT_EQ(old["name"], now["name"]);
    EXPECT_EQ(old["subresources"], now["subresources"]);
    Comparison comparison;
    comparison.Compare("", old["schema"]["openAPIV3Schema"], now["schema"]["openAPIV3Schema"]);
    EXPECT_THAT(comparison.problems, IsEmpty()) << file;
  }
}

TEST(CrdUpgradeTest, TheComparisonFindsNarrowedFields) {
  const Json before = Json::parse(
      R"({"type": "object", "properties": {"a": {"type": "integer", "maximum": 9}, "b": {"type": "string"},
          "c": {"type": "string", "enum": ["x", "y"]}}})");
  const Json after = Json::parse(
      R"({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "maximum": 8},
          "c": {"type": "string", "enum": ["x"]}}})");
  Comparison comparison;
  comparison.Compare("", before, after);
  EXPECT_THAT(comparison.problems, testing::UnorderedElementsAre(": a is required now", "a: maximum", "b: was removed",
                                                                 "c: enum no longer holds \"y\""));
}

}  // namespace
}  // namespace medley::ops
