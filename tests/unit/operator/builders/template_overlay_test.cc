#include "operator/builders/template_overlay.h"

#include <gtest/gtest.h>

namespace medley::ops {
namespace {

using kube::Json;

Json Overlay(const char* base, const char* overlay) {
  return OverlayPodSpec(Json::parse(base), Json::parse(overlay));
}

TEST(TemplateOverlayTest, ObjectsMergeAndNullRemoves) {
  EXPECT_EQ(Overlay(R"({"a": {"b": 1, "c": 2}, "d": 3})", R"({"a": {"b": 9}, "d": null})"),
            Json::parse(R"({"a": {"b": 9, "c": 2}})"));
}

TEST(TemplateOverlayTest, ContainersMergeByNameAndAnUnnamedOneIsTheWorker) {
  const Json merged = Overlay(
      R"({"containers": [{"name": "worker", "image": "a", "env": [{"name": "X", "value": "1"}]}]})",
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

TEST(TemplateOverlayTest, JunkChangesNothing) {
  EXPECT_EQ(Overlay(R"({"a": 1})", "[]"), Json::parse(R"({"a": 1})"));
}

}  // namespace
}  // namespace medley::ops
