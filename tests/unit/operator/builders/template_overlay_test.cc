#include "operator/builders/template_overlay.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;

Json Overlay(const char* base, const char* overlay) { return OverlayPodSpec(Json::parse(base), Json::parse(overlay)); }

TEST(TemplateOverlayTest, ObjectsMergeAndNullRemoves) {
  EXPECT_EQ(Overlay(R"({"a": {"b": 1, "c": 2}, "d": 3})", R"({"a": {"b": 9}, "d": null})"),
            Json::parse(R"({"a": {"b": 9, "c": 2}})"));
}

TEST(TemplateOverlayTest, ContainersMergeByNameAndAnUnnamedOneIsTheWorker) {
  const Json merged =
      Overlay(R"({"containers": [{"name": "worker", "image": "a", "env": [{"name": "X", "value": "1"}]}]})",
              R"({"containers": [{"env": [{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}]},
                                                 {"name": "sidecar", "image": "s"}]})");
  ASSERT_EQ(merged["containers"].size(), 2u);
  EXPECT_EQ(merged["containers"][0]["image"], "a");
  EXPECT_EQ(merged["containers"][0]["env"],
            Json::parse(R"([{"name": "X", "value": "2"}, {"name": "Y", "value": "3"}])"));
}

TEST(TemplateOverlayTest, TolerationsAppendAndOtherListsReplace) {
  const Json merged = Overlay(R"({"tolerations": [{"key": "a"}], "args": ["x"]})",
                              R"({"tolerations": [{"key": "b"}], "args": ["y", "z"]})");
  EXPECT_EQ(merged["tolerations"].size(), 2u);
  EXPECT_EQ(merged["args"], Json::parse(R"(["y", "z"])"));
}

// Every list of a PodSpec that merges in Kubernetes v1.34, by its patchMergeKey.
TEST(TemplateOverlayTest, ListsMergeByTheKeysOfKubernetes) {
  const std::pair<const char*, const char*> keys[] = {
      {"containers", "name"},
      {"initContainers", "name"},
      {"ephemeralContainers", "name"},
      {"env", "name"},
      {"imagePullSecrets", "name"},
      {"schedulingGates", "name"},
      {"volumeMounts", "mountPath"},
      {"ports", "containerPort"},
      {"volumeDevices", "devicePath"},
      {"hostAliases", "ip"},
      {"topologySpreadConstraints", "topologyKey"},
  };
  for (const auto& [list, key] : keys) {
    const Json base = {{list, {{{key, "a"}, {"x", 1}, {"y", 1}}}}};
    const Json overlay = {{list, {{{key, "a"}, {"x", 2}}, {{key, "b"}}}}};
    const Json want = {{list, {{{key, "a"}, {"x", 2}, {"y", 1}}, {{key, "b"}}}}};
    EXPECT_EQ(OverlayPodSpec(base, overlay)[list], want[list]) << list;
  }
}

TEST(TemplateOverlayTest, AVolumeKeepsOnlyTheSourceOfTheTemplate) {
  EXPECT_EQ(Overlay(R"({"volumes": [{"name": "tmp", "emptyDir": {}}]})",
                    R"({"volumes": [{"name": "tmp", "persistentVolumeClaim": {"claimName": "c"}}]})"),
            Json::parse(R"({"volumes": [{"name": "tmp", "persistentVolumeClaim": {"claimName": "c"}}]})"));
}

TEST(TemplateOverlayTest, DirectivesDeleteReplaceAndRetain) {
  EXPECT_EQ(Overlay(R"({"env": [{"name": "A"}, {"name": "B"}]})",
                    R"({"env": [{"name": "A", "$patch": "delete"}, {"name": "Z", "$patch": "delete"}]})"),
            Json::parse(R"({"env": [{"name": "B"}]})"));
  EXPECT_EQ(Overlay(R"({"env": [{"name": "A"}]})", R"({"env": [{"$patch": "replace"}, {"name": "C"}]})"),
            Json::parse(R"({"env": [{"name": "C"}]})"));
  EXPECT_EQ(Overlay(R"({"env": [{"name": "A", "value": "1"}]})",
                    R"({"env": [{"name": "A", "valueFrom": {}, "$patch": "replace"}]})"),
            Json::parse(R"({"env": [{"name": "A", "valueFrom": {}}]})"));
  EXPECT_EQ(Overlay(R"({"securityContext": {"a": 1}, "affinity": {"b": 1}})",
                    R"({"securityContext": {"c": 2, "$patch": "replace"}, "affinity": {"$patch": "delete"}})"),
            Json::parse(R"({"securityContext": {"c": 2}})"));
  EXPECT_EQ(Overlay(R"({"strategy": {"a": 1, "b": 2}})", R"({"strategy": {"$retainKeys": ["b", "c"], "c": 3}})"),
            Json::parse(R"({"strategy": {"b": 2, "c": 3}})"));
}

TEST(TemplateOverlayTest, NoDirectiveReachesAPod) {
  const Json merged = Overlay(R"({})",
                              R"({"affinity": {"$retainKeys": ["x"], "x": {"$patch": "delete"}},
          "containers": [{"name": "s", "env": [{"$patch": "replace"}, {"name": "A", "$patch": "delete"}, {"name": "B"}]}],
          "$setElementOrder/containers": [{"name": "s"}]})");
  EXPECT_EQ(merged, Json::parse(R"({"affinity": {}, "containers": [{"name": "s", "env": [{"name": "B"}]}]})"));
}

TEST(TemplateOverlayTest, TheTemplateCannotRemoveTheWorker) {
  const char* base = R"({"containers": [{"name": "worker", "image": "a"}]})";
  for (const char* overlay :
       {R"({"containers": [{"name": "worker", "$patch": "delete"}]})", R"({"containers": [{"$patch": "delete"}]})",
        R"({"containers": [{"$patch": "replace"}, {"name": "s"}]})", R"({"containers": null})",
        R"({"containers": "none"})"}) {
    const Json merged = Overlay(base, overlay);
    ASSERT_TRUE(merged["containers"].is_array()) << overlay;
    EXPECT_EQ(merged["containers"][0]["image"], "a") << overlay;
  }
}

TEST(TemplateOverlayTest, AnOverlayOfAWrongTypeChangesNothing) {
  EXPECT_EQ(Overlay(R"({"a": 1})", "[]"), Json::parse(R"({"a": 1})"));
}

}  // namespace
}  // namespace medley::ops
