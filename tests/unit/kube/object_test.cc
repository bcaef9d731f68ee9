#include "kube/object.h"

#include "common/base/testing/status_matchers.h"
#include "kube/resource_version.h"

namespace medley::kube {
namespace {

using base::IsOk;
using base::StatusIs;

TEST(ResourceTest, PathsOfCoreAndGroups) {
  EXPECT_EQ(resources::Pods().Path("a", "p", "status"), "/api/v1/namespaces/a/pods/p/status");
  EXPECT_EQ(resources::Pods().Path(""), "/api/v1/pods");
  EXPECT_EQ(resources::Nodes().Path("ignored", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(resources::Leases().Path("a"), "/apis/coordination.k8s.io/v1/namespaces/a/leases");
  EXPECT_EQ(resources::Leases().ApiVersion(), "coordination.k8s.io/v1");
}

TEST(ObjectTest, PointerAccess) {
  const Object object(Json::parse(R"({"a":{"b/c":[{"d":"x"}]},"n":3})"));
  EXPECT_EQ(object.String("/a/b~1c/0/d"), "x");
  EXPECT_EQ(object.String("/n"), "");
  EXPECT_TRUE(object.At("/a/b~1c/1").is_null());
  EXPECT_TRUE(object.At("/a/b~1c/x").is_null());
  EXPECT_TRUE(object.At("a").is_null());
  EXPECT_TRUE(object.At("/n/deeper").is_null());
  EXPECT_EQ(object.At("").size(), 2u);
}

TEST(ObjectTest, MetadataAndLabels) {
  Object pod(resources::Pods(), {"ns", "p"});
  EXPECT_EQ(pod.api_version(), "v1");
  EXPECT_EQ(pod.kind(), "Pod");
  EXPECT_EQ(pod.key(), (Key{"ns", "p"}));
  pod.SetLabel("l", "1");
  pod.SetAnnotation("a/b", "2");
  EXPECT_EQ(pod.label("l"), "1");
  EXPECT_EQ(pod.label("m"), "");
  EXPECT_EQ(pod.annotation("a/b"), "2");
  EXPECT_FALSE(pod.deleting());
  EXPECT_EQ(Object(Json::parse(R"({"metadata":{"generation":7}})")).generation(), 7);
  const Object odd(Json::parse(R"({"metadata":{"labels":3,"ownerReferences":[1]}})"));
  EXPECT_EQ(odd.label("x"), "");
  EXPECT_TRUE(odd.owners().empty());
}

TEST(ObjectTest, OnlyOneController) {  // E2
  Object job(Resource{"medley.dev", "v1", "trainingjobs", "TrainingJob"}, {"ns", "j"});
  job.mutable_json()["metadata"]["uid"] = "u1";
  Object other = job;
  other.mutable_json()["metadata"]["uid"] = "u2";
  Object pod(resources::Pods(), {"ns", "p"});
  EXPECT_THAT(pod.SetController(job), IsOk());
  EXPECT_THAT(pod.SetController(job), IsOk());
  ASSERT_EQ(pod.owners().size(), 1u);
  EXPECT_EQ(pod.controller()->kind, "TrainingJob");
  EXPECT_EQ(pod.controller()->api_version, "medley.dev/v1");
  EXPECT_THAT(pod.SetController(other), StatusIs(absl::StatusCode::kAlreadyExists));
}

TEST(LabelSelectorTest, Matches) {
  Object pod(resources::Pods(), {"ns", "p"});
  pod.SetLabel("a", "b");
  pod.SetLabel("e", "y");
  pod.SetLabel("x.io/f", "");
  const auto matches = [&](std::string_view text) {
    const auto selector = LabelSelector::Parse(text);
    EXPECT_THAT(selector, IsOk()) << text;
    return selector.ok() && selector->Matches(pod);
  };
  EXPECT_TRUE(matches(""));
  EXPECT_TRUE(matches("a=b"));
  EXPECT_TRUE(matches("a==b,c!=d, e in (x, y),x.io/f,!g"));
  EXPECT_TRUE(matches("g notin (1)"));
  EXPECT_TRUE(matches("x.io/f="));
  EXPECT_FALSE(matches("a=c"));
  EXPECT_FALSE(matches("a!=b"));
  EXPECT_FALSE(matches("!a"));
  EXPECT_FALSE(matches("g"));
  EXPECT_FALSE(matches("e notin (y)"));
  EXPECT_FALSE(matches("g in (x)"));
}

TEST(LabelSelectorTest, Refuses) {
  for (const char* bad : {"a=b,", "=b", "a in x", "a in (x", "a of (x)", "a=b c", "-a", "a>1", "(a)"}) {
    EXPECT_THAT(LabelSelector::Parse(bad), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(MergePatchTest, Rfc7386Examples) {
  const auto apply = [](const char* target, const char* patch) {
    Json json = Json::parse(target);
    MergePatch(json, Json::parse(patch));
    return json.dump();
  };
  EXPECT_EQ(apply(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(apply(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(apply(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"), R"({"a":{"b":"d"}})");
  EXPECT_EQ(apply(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(apply(R"([1,2])", R"({"a":"b","c":null})"), R"({"a":"b"})");
  EXPECT_EQ(apply(R"({})", R"({"a":{"bb":{"ccc":null}}})"), R"({"a":{"bb":{}}})");
}

TEST(ResourceVersionTest, OrderOnlyForWellFormedDecimals) {  // B8
  EXPECT_EQ(CompareResourceVersion("9", "10"), std::strong_ordering::less);
  EXPECT_EQ(CompareResourceVersion("21", "12"), std::strong_ordering::greater);
  EXPECT_EQ(CompareResourceVersion("12", "12"), std::strong_ordering::equal);
  EXPECT_EQ(CompareResourceVersion("99999999999999999999999", "100000000000000000000000"), std::strong_ordering::less);
  for (const char* bad : {"", "0", "01", "-1", "1a", "abc"}) {
    EXPECT_FALSE(CompareResourceVersion(bad, "1")) << bad;
    EXPECT_FALSE(CompareResourceVersion("1", bad)) << bad;
  }
}

}  // namespace
}  // namespace medley::kube
