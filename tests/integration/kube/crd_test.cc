// Custom kinds: schema, pruning, defaults, the status and scale subresources.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using testing::HasSubstr;

class CrdTest : public testing::TestWithParam<ServerKind> {
 protected:
  CrdTest() : server_(GetParam(), clock_, {.event_window = 20}), client_(server_.client()), ns_(server_.ns()) {
    server_.InstallCrd(kWidgetCrd);
  }
  absl::StatusOr<Object> Create(const std::string& name, const Json& spec) {
    Object widget(widgets_, {ns_, name});
    widget.mutable_json()["spec"] = spec;
    return client_.Create(widgets_, widget);
  }
  void ExpectRefused(const Json& spec, const std::string& sentence) {
    const auto made = Create("refused", spec);
    EXPECT_EQ(HttpCode(made.status()), 422) << spec.dump() << base::ToString(made.status());
    EXPECT_THAT(base::ToString(made.status()), HasSubstr(sentence));
  }

  const Resource widgets_{"test.example.com", "v1", "widgets", "Widget", true};
  base::SystemClock clock_;
  TestServer server_;
  HttpClient& client_;
  const std::string ns_;
};
INSTANTIATE_TEST_SUITE_P(On, CrdTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(CrdTest, DefaultsAreSetAndUnknownFieldsArePruned) {
  const auto made =
      Create("a", {{"size", 3}, {"sized", 4}, {"anything", {{"kept", Json{{"deep", 1}}}}}, {"share", "5%"}});
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(
      made->At("/spec"),
      (Json{
          {"size", 3}, {"replicas", 1}, {"colour", "red"}, {"share", "5%"}, {"anything", {{"kept", {{"deep", 1}}}}}}));
  EXPECT_EQ(made->generation(), 1);
}

TEST_P(CrdTest, SchemaErrorsAreWordedAsByARealServer) {
  ExpectRefused(Json::object(), "spec.size: Required value");
  ExpectRefused({{"size", 0}}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1");
  ExpectRefused({{"size", "x"}},
                "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: "
                "\"string\"");
  ExpectRefused({{"size", 1}, {"colour", "blue"}},
                "spec.colour: Unsupported value: \"blue\": supported values: \"red\", \"green\"");
  ExpectRefused({{"size", 1}, {"tags", Json::array({"a", "a"})}}, "spec.tags[1]: Duplicate value: \"a\"");
  ExpectRefused({{"size", 1}, {"parts", Json::array({{{"name", "p"}}, {{"name", "p"}}})}},
                "spec.parts[1]: Duplicate value: {\"name\":\"p\"}");
  ExpectRefused({{"size", 1}, {"parts", Json::array({{{"weight", 2}}})}}, "spec.parts[0].name: Required value");
  ExpectRefused({{"size", 1}, {"share", true}}, "spec.share: Invalid value: \"boolean\"");
  ExpectRefused({{"size", 1.5}}, "spec.size: Invalid value: \"number\"");
  Object bare(widgets_, {ns_, "bare"});
  EXPECT_THAT(base::ToString(client_.Create(widgets_, bare).status()), HasSubstr("spec: Required value"));
}

TEST_P(CrdTest, StatusAndSpecAreWrittenSeparately) {
  const auto made = Create("a", {{"size", 3}});
  ASSERT_THAT(made, IsOk());
  Object unversioned = *made;
  unversioned.mutable_json()["metadata"].erase("resourceVersion");
  for (const char* subresource : {"", "status"}) {
    const auto refused = client_.Update(widgets_, unversioned, subresource);
    EXPECT_THAT(base::ToString(refused.status()), HasSubstr("must be specified for an update"));
  }
  Object change = *made;
  change.mutable_json()["spec"]["size"] = 9;
  change.mutable_json()["status"] = {{"replicas", 2}};
  const auto status = client_.Update(widgets_, change, "status");
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->At("/spec/size"), 3);
  EXPECT_EQ(status->At("/status/replicas"), 2);
  EXPECT_EQ(status->generation(), 1);
  Object again = *status;
  again.mutable_json()["spec"]["size"] = 5;
  again.mutable_json()["status"] = {{"replicas", 7}};
  const auto spec = client_.Update(widgets_, again);
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->At("/spec/size"), 5);
  EXPECT_EQ(spec->At("/status/replicas"), 2);
  EXPECT_EQ(spec->generation(), 2);
  // A merge patch of the status, as the operator writes it.
  const auto patched = client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge,
                                     {{"status", {{"replicas", nullptr}, {"selector", "a=b"}}}}, {}, "status");
  ASSERT_THAT(patched, IsOk());
  EXPECT_EQ(patched->At("/status"), (Json{{"selector", "a=b"}}));
  const auto wrong =
      client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge, {{"status", {{"replicas", "x"}}}}, {}, "status");
  EXPECT_EQ(HttpCode(wrong.status()), 422);
}

TEST_P(CrdTest, ScaleIsAViewOfTheObject) {
  ASSERT_THAT(Create("a", {{"size", 3}, {"replicas", 2}}), IsOk());
  ASSERT_THAT(client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge,
                            {{"status", {{"replicas", 1}, {"selector", "w=a"}}}}, {}, "status"),
              IsOk());
  const auto text = client_.GetRaw(widgets_.Path(ns_, "a", "scale"));
  ASSERT_THAT(text, IsOk());
  const Object scale(Json::parse(*text));
  EXPECT_EQ(scale.kind(), "Scale");
  EXPECT_EQ(scale.api_version(), "autoscaling/v1");
  EXPECT_EQ(scale.At("/spec/replicas"), 2);
  EXPECT_EQ(scale.At("/status"), (Json{{"replicas", 1}, {"selector", "w=a"}}));
  const auto scaled =
      client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge, {{"spec", {{"replicas", 4}}}}, {}, "scale");
  ASSERT_THAT(scaled, IsOk());
  EXPECT_EQ(scaled->At("/spec/replicas"), 4);
  const auto now = client_.Get(widgets_, {ns_, "a"});
  ASSERT_THAT(now, IsOk());
  EXPECT_EQ(now->At("/spec/replicas"), 4);
  EXPECT_EQ(now->generation(), 2);
  const auto negative =
      client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge, {{"spec", {{"replicas", -1}}}}, {}, "scale");
  EXPECT_EQ(HttpCode(negative.status()), 422) << base::ToString(negative.status());
}

TEST_P(CrdTest, A2_AWatchFromAnExpiredVersionGetsAnErrorEvent) {
  ASSERT_THAT(Create("a", {{"size", 1}}), IsOk());
  for (int i = 2; i < 42; ++i) {
    ASSERT_THAT(client_.Patch(widgets_, {ns_, "a"}, PatchType::kMerge, {{"spec", {{"size", i}}}}), IsOk());
  }
  std::vector<WatchEvent> events;
  const absl::Status status = client_.Watch(widgets_, {.ns = ns_, .resource_version = "1"}, {}, [&](WatchEvent event) {
    events.push_back(std::move(event));
    return false;
  });
  EXPECT_THAT(status, IsOk());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, WatchEvent::Type::kError);
  EXPECT_EQ(events[0].object.At("/code"), 410);
  EXPECT_EQ(events[0].object.String("/reason"), "Expired");
}

TEST_P(CrdTest, ServerSideApplyMergesListsByTheirKeys) {
  const auto apply = [&](const std::string& who, const Json& spec) {
    Object widget(widgets_, {ns_, "a"});
    widget.mutable_json()["spec"] = spec;
    return client_.Patch(widgets_, {ns_, "a"}, PatchType::kApply, widget.json(), {.field_manager = who});
  };
  ASSERT_THAT(
      apply("one",
            {{"size", 3}, {"parts", Json::array({{{"name", "p"}, {"weight", 1}}})}, {"tags", Json::array({"x"})}}),
      IsOk());
  const auto both =
      apply("two", {{"parts", Json::array({{{"name", "q"}, {"weight", 2}}})}, {"tags", Json::array({"y"})}});
  ASSERT_THAT(both, IsOk());
  EXPECT_EQ(both->At("/spec/parts"), Json::array({{{"name", "p"}, {"weight", 1}}, {{"name", "q"}, {"weight", 2}}}));
  EXPECT_EQ(both->At("/spec/tags"), Json::array({"x", "y"}));
  const auto less = apply("two", {{"tags", Json::array({"y"})}});
  ASSERT_THAT(less, IsOk());
  EXPECT_EQ(less->At("/spec/parts").size(), 1u);
}

}  // namespace
}  // namespace medley::kube
