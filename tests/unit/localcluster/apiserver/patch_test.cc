// Patches, field sets, Tables.
#include "localcluster/apiserver/patch.h"
#include "localcluster/apiserver/builtin_schemas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/testing/status_matchers.h"
#include "localcluster/apiserver/api_error.h"
#include "localcluster/apiserver/apply.h"
#include "localcluster/apiserver/fieldset.h"
#include "localcluster/apiserver/table.h"

namespace medley::localcluster::apiserver {
namespace {

using base::IsOk;

class PatchTest : public testing::Test {
 protected:
  kube::Json Strategic(const char* document, const char* patch) {
    const auto out = StrategicMergePatch(kube::Json::parse(document), kube::Json::parse(patch),
                                         definitions_.Find("io.k8s.api.core.v1.Pod"));
    EXPECT_THAT(out, IsOk());
    return out.value_or(kube::Json());
  }
  kube::Definitions definitions_ = BuiltinDefinitions();
};

TEST_F(PatchTest, StrategicMergesListsByKey) {
  EXPECT_EQ(Strategic(R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}})",
                      R"({"spec":{"containers":[{"name":"a","image":"2"},{"name":"c"}]}})"),
            kube::Json::parse(R"({"spec":{"containers":[{"name":"a","image":"2"},{"name":"b"},{"name":"c"}]}})"));
  EXPECT_EQ(Strategic(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})",
                      R"({"spec":{"containers":[{"name":"a","$patch":"delete"}]}})"),
            kube::Json::parse(R"({"spec":{"containers":[{"name":"b"}]}})"));
  EXPECT_EQ(Strategic(R"({"spec":{"containers":[{"name":"a"}]}})",
                      R"({"spec":{"containers":[{"$patch":"replace"},{"name":"z"}]}})"),
            kube::Json::parse(R"({"spec":{"containers":[{"name":"z"}]}})"));
  EXPECT_EQ(Strategic(R"({"metadata":{"finalizers":["a","b"]}})",
                      R"({"metadata":{"$deleteFromPrimitiveList/finalizers":["a"],"finalizers":["c"]}})"),
            kube::Json::parse(R"({"metadata":{"finalizers":["b","c"]}})"));
  EXPECT_EQ(Strategic(R"({"spec":{"containers":[{"name":"a","command":["x","y"]}]}})",
                      R"({"spec":{"containers":[{"name":"a","command":["z"]}]}})"),
            kube::Json::parse(R"({"spec":{"containers":[{"name":"a","command":["z"]}]}})"));
}

TEST_F(PatchTest, StrategicRefusesItemsWithoutKey) {
  const auto out = StrategicMergePatch(kube::Json::object(), kube::Json::parse(R"({"spec":{"containers":[{}]}})"),
                                       definitions_.Find("io.k8s.api.core.v1.Pod"));
  EXPECT_EQ(HttpCodeOf(out.status()), 400);
}

TEST_F(PatchTest, JsonPatchTestsAndFails) {
  const kube::Json document = {{"a", 1}};
  EXPECT_THAT(JsonPatch(document, kube::Json::parse(R"([{"op":"test","path":"/a","value":1},
      {"op":"add","path":"/b","value":2}])")),
              base::IsOkAndHolds(kube::Json::parse(R"({"a":1,"b":2})")));
  EXPECT_EQ(HttpCodeOf(JsonPatch(document, kube::Json::parse(R"([{"op":"test","path":"/a","value":2}])")).status()),
            422);
  EXPECT_EQ(HttpCodeOf(JsonPatch(document, kube::Json::parse(R"([{"op":"fly"}])")).status()), 400);
}

TEST_F(PatchTest, FieldsV1RoundTrips) {
  const kube::Json pod = kube::Json::parse(R"({"spec":{"containers":[{"name":"a","image":"i","args":["x"]}],
      "nodeSelector":{"k":"v"}},"metadata":{"labels":{}}})");
  const kube::Schema schema = definitions_.Find("io.k8s.api.core.v1.Pod");
  const FieldSet set = ToFieldSet(pod, schema);
  EXPECT_EQ(FromFieldsV1(ToFieldsV1(set)), set);
  EXPECT_TRUE(set.contains({"f:spec", "f:containers", "k:{\"name\":\"a\"}"}));
  EXPECT_TRUE(set.contains({"f:metadata", "f:labels"}));
  EXPECT_EQ(PathText({"f:spec", "f:containers", "k:{\"name\":\"a\"}", "f:image"}),
            ".spec.containers[name=\"a\"].image");
}

TEST_F(PatchTest, ApplyOwnsConflictsAndAbandons) {
  ResourceInfo info;
  info.resource = kube::resources::ConfigMaps();
  info.schema = definitions_.Find("io.k8s.api.core.v1.ConfigMap");
  WriteOptions one;
  one.manager = "one";
  WriteOptions two;
  two.manager = "two";
  const kube::Json empty = {{"metadata", kube::Json::object()}};
  const auto config = [](const char* data) {
    return kube::Json{{"metadata", {{"name", "c"}}}, {"data", kube::Json::parse(data)}};
  };
  kube::Json live = *MergeApply(info, empty, config(R"({"a":"1","b":"1"})"), one, "t1");
  const auto conflict = MergeApply(info, live, config(R"({"a":"2"})"), two, "t2");
  ASSERT_EQ(HttpCodeOf(conflict.status()), 409);
  const kube::Json cause = StatusObject(conflict.status())["details"]["causes"][0];
  EXPECT_EQ(cause["reason"], "FieldManagerConflict");
  EXPECT_EQ(cause["field"], ".data.a");
  // Two managers share the same value; it stays when one of them stops applying it.
  live = *MergeApply(info, live, config(R"({"a":"1"})"), two, "t2");
  live = *MergeApply(info, live, config(R"({"b":"1"})"), one, "t3");
  EXPECT_EQ(live["data"], kube::Json::parse(R"({"a":"1","b":"1"})"));
  live = *MergeApply(info, live, config("{}"), two, "t4");
  EXPECT_EQ(live["data"], kube::Json::parse(R"({"b":"1"})"));
  // Another writer takes over a field; applying it again is a conflict.
  kube::Json written = live;
  written["data"]["b"] = "9";
  TrackUpdate(info, &live, &written, "editor", "", "t5");
  EXPECT_FALSE(MergeApply(info, written, config(R"({"b":"1"})"), one, "t6").ok());
  one.force = true;
  const auto forced = MergeApply(info, written, config(R"({"b":"1"})"), one, "t6");
  ASSERT_THAT(forced, IsOk());
  EXPECT_EQ((*forced)["data"]["b"], "1");
  EXPECT_EQ((*forced)["metadata"]["managedFields"].dump().find("editor"), std::string::npos);
}

TEST(TableTest, JsonPathsAndAges) {
  const kube::Json object = kube::Json::parse(R"({"spec":{"a.b":1,"l":[{"t":"x","v":7},{"t":"y","v":8}]}})");
  EXPECT_EQ(JsonPath(object, ".spec.l[0].v"), 7);
  EXPECT_EQ(JsonPath(object, ".spec.l[-1].v"), 8);
  EXPECT_EQ(JsonPath(object, ".spec['a.b']"), 1);
  EXPECT_EQ(JsonPath(object, ".spec.a\\.b"), 1);
  EXPECT_EQ(JsonPath(object, ".spec.l[?(@.t==\"y\")].v"), 8);
  EXPECT_EQ(JsonPath(object, "{.spec.l[*].v}"), kube::Json::parse("[7,8]"));
  EXPECT_TRUE(JsonPath(object, ".spec.none[0].x").is_null());
  EXPECT_EQ(HumanDuration(base::seconds(5)), "5s");
  EXPECT_EQ(HumanDuration(base::seconds(200)), "3m20s");
  EXPECT_EQ(HumanDuration(base::seconds(3600 * 5)), "5h");
  EXPECT_EQ(HumanDuration(base::seconds(3600 * 51)), "2d3h");
}

}  // namespace
}  // namespace medley::localcluster::apiserver
