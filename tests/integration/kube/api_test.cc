// What every client of an API server relies on: patches, field ownership, preconditions, deletion, garbage collection,
// pagination and watches. The tests use built-in kinds; crd_test.cc tests custom ones.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "kube/errors.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

class ApiTest : public testing::TestWithParam<ServerKind> {
 protected:
  ApiTest() : server_(GetParam(), clock_), client_(server_.client()), ns_(server_.ns()) {}

  Object Make(const std::string& name, const Json& metadata = Json::object()) {
    Object map(maps_, {ns_, name});
    map.mutable_json()["metadata"].update(metadata);
    map.mutable_json()["data"] = {{"v", "1"}};
    const auto made = client_.Create(maps_, map);
    EXPECT_THAT(made, IsOk());
    return made.ok() ? *made : map;
  }
  static Json OwnedBy(const Object& owner) {
    return {{"ownerReferences", Json::array({{{"apiVersion", "v1"},
                                              {"kind", "ConfigMap"},
                                              {"name", owner.key().name},
                                              {"uid", owner.uid()},
                                              {"blockOwnerDeletion", true}}})}};
  }
  bool Exists(const std::string& name) { return client_.Get(maps_, {ns_, name}).ok(); }
  absl::StatusOr<Object> Patch(const std::string& name, PatchType type, const Json& patch,
                               const PatchOptions& options = {}) {
    return client_.Patch(maps_, {ns_, name}, type, patch, options);
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  TestServer server_;
  HttpClient& client_;
  const std::string ns_;
};
INSTANTIATE_TEST_SUITE_P(On, ApiTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(ApiTest, PatchesOfEachKind) {
  Make("a");
  const auto merged = Patch("a", PatchType::kMerge, {{"data", {{"v", nullptr}, {"w", "2"}}}});
  ASSERT_THAT(merged, IsOk());
  EXPECT_EQ(merged->At("/data"), (Json{{"w", "2"}}));
  const auto json = Patch("a", PatchType::kJson,
                          Json::array({{{"op", "test"}, {"path", "/data/w"}, {"value", "2"}},
                                       {{"op", "add"}, {"path", "/data/x"}, {"value", "3"}}}));
  ASSERT_THAT(json, IsOk());
  EXPECT_EQ(json->String("/data/x"), "3");
  const auto refused =
      Patch("a", PatchType::kJson, Json::array({{{"op", "test"}, {"path", "/data/w"}, {"value", "9"}}}));
  EXPECT_EQ(HttpCode(refused.status()), 422) << base::ToString(refused.status());
  const auto strategic = Patch("a", PatchType::kStrategicMerge, {{"data", {{"y", "4"}}}});
  ASSERT_THAT(strategic, IsOk());
  EXPECT_EQ(strategic->At("/data").size(), 3u);
  EXPECT_TRUE(IsNotFound(Patch("absent", PatchType::kMerge, Json::object()).status()));
}

TEST_P(ApiTest, AStrategicMergePatchMergesListsByTheirKey) {
  Object pod(resources::Pods(), {ns_, "p"});
  pod.mutable_json()["spec"] = {
      {"containers", Json::array({{{"name", "a"}, {"image", "i:1"}}, {{"name", "b"}, {"image", "i:1"}}})}};
  ASSERT_THAT(client_.Create(resources::Pods(), pod), IsOk());
  const auto patched = client_.Patch(resources::Pods(), {ns_, "p"}, PatchType::kStrategicMerge,
                                     {{"spec", {{"containers", Json::array({{{"name", "b"}, {"image", "i:2"}}})}}}});
  ASSERT_THAT(patched, IsOk());
  ASSERT_EQ(patched->At("/spec/containers").size(), 2u);
  EXPECT_EQ(patched->String("/spec/containers/0/image"), "i:1");
  EXPECT_EQ(patched->String("/spec/containers/1/image"), "i:2");
  EXPECT_EQ(patched->String("/spec/restartPolicy"), "Always");
  EXPECT_EQ(patched->String("/spec/containers/0/imagePullPolicy"), "IfNotPresent");
  EXPECT_EQ(patched->String("/status/phase"), "Pending");
  // Fields that may not change in a running pod.
  const auto refused =
      client_.Patch(resources::Pods(), {ns_, "p"}, PatchType::kMerge, {{"spec", {{"nodeName", "elsewhere"}}}});
  EXPECT_EQ(HttpCode(refused.status()), 422) << base::ToString(refused.status());
}

TEST_P(ApiTest, ServerSideApplyTracksFieldOwners) {
  const auto apply = [&](const std::string& who, const Json& data, bool force = false) {
    Object map(maps_, {ns_, "a"});
    map.mutable_json()["data"] = data;
    return Patch("a", PatchType::kApply, map.json(), {.field_manager = who, .force = force});
  };
  ASSERT_THAT(apply("one", {{"x", "1"}, {"y", "1"}}), IsOk());
  const auto conflict = apply("two", {{"x", "2"}});
  EXPECT_TRUE(IsConflict(conflict.status()));
  EXPECT_THAT(base::ToString(conflict.status()),
              HasSubstr("Apply failed with 1 conflict: conflict with \"one\": .data.x"));
  ASSERT_THAT(apply("two", {{"x", "2"}, {"z", "2"}}, true), IsOk());
  // A field that no manager applies any more is removed; a field of another manager stays.
  const auto less = apply("one", Json::object());
  ASSERT_THAT(less, IsOk());
  EXPECT_EQ(less->At("/data"), (Json{{"x", "2"}, {"z", "2"}}));
  const auto again = apply("two", {{"x", "2"}, {"z", "2"}});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->resource_version(), less->resource_version()) << "nothing changed";
}

TEST_P(ApiTest, VersionsArePreconditions) {
  const Object made = Make("a");
  EXPECT_THAT(Patch("a", PatchType::kMerge, {{"data", {{"v", "2"}}}}), IsOk());
  EXPECT_TRUE(IsConflict(client_.Update(maps_, made).status()));
  const auto stale = Patch("a", PatchType::kMerge,
                           {{"metadata", {{"resourceVersion", made.resource_version()}}}, {"data", {{"v", "3"}}}});
  EXPECT_TRUE(IsConflict(stale.status())) << base::ToString(stale.status());
  EXPECT_TRUE(IsConflict(client_.Delete(maps_, {ns_, "a"}, {.resource_version = made.resource_version()})));
  Object unchanged = *client_.Get(maps_, {ns_, "a"});
  const auto same = client_.Update(maps_, unchanged);
  ASSERT_THAT(same, IsOk());
  EXPECT_EQ(same->resource_version(), unchanged.resource_version());
  Object other = unchanged;
  other.mutable_json()["metadata"]["uid"] = "11111111-2222-3333-4444-555555555555";
  EXPECT_TRUE(IsConflict(client_.Update(maps_, other).status()));
}

TEST_P(ApiTest, InvalidNamesAndBodiesAreRefused) {
  Object map(maps_, {ns_, "Bad_Name"});
  const auto name = client_.Create(maps_, map);
  EXPECT_EQ(HttpCode(name.status()), 422);
  EXPECT_THAT(base::ToString(name.status()), HasSubstr("a lowercase RFC 1123 subdomain must consist of"));
  Object elsewhere(maps_, {"nowhere-at-all", "a"});
  const auto nowhere = client_.Create(maps_, elsewhere);
  EXPECT_TRUE(IsNotFound(nowhere.status()));
  EXPECT_THAT(base::ToString(nowhere.status()), HasSubstr("namespaces \"nowhere-at-all\" not found"));
  Object label(maps_, {ns_, "b"});
  label.SetLabel("bad label", "x");
  EXPECT_EQ(HttpCode(client_.Create(maps_, label).status()), 422);
  Object both(maps_, {ns_, "both"});
  both.mutable_json()["data"] = {{"k", "1"}};
  both.mutable_json()["binaryData"] = {{"k", "MQ=="}};
  EXPECT_EQ(HttpCode(client_.Create(maps_, both).status()), 422);
  Object number(maps_, {ns_, "number"});
  number.mutable_json()["data"] = {{"k", 1}};
  EXPECT_EQ(HttpCode(client_.Create(maps_, number).status()), 400);
}

TEST_P(ApiTest, GeneratedNamesPagesAndSelectors) {
  for (int i = 0; i < 5; ++i) {
    Object map(maps_, {ns_, ""});
    map.mutable_json()["metadata"].erase("name");
    map.mutable_json()["metadata"]["generateName"] = "gen-";
    map.SetLabel("n", std::to_string(i % 2));
    const auto made = client_.Create(maps_, map);
    ASSERT_THAT(made, IsOk());
    EXPECT_TRUE(made->key().name.starts_with("gen-")) << made->key().name;
    EXPECT_EQ(made->key().name.size(), 9u);
  }
  const std::string label = "n in (0,1)";
  std::vector<std::string> names;
  ListOptions options{.ns = ns_, .label_selector = label, .limit = 2};
  int pages = 0;
  do {
    const auto page = client_.List(maps_, options);
    ASSERT_THAT(page, IsOk());
    EXPECT_LE(page->items.size(), 2u);
    for (const Object& object : page->items) names.push_back(object.key().name);
    options.continue_token = page->continue_token;
    ++pages;
  } while (!options.continue_token.empty());
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(names.size(), 5u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(client_.List(maps_, {.ns = ns_, .label_selector = "n=1"})->items.size(), 2u);
  EXPECT_EQ(client_.List(maps_, {.ns = ns_, .label_selector = "n,n!=1"})->items.size(), 3u);
  EXPECT_EQ(HttpCode(client_.List(maps_, {.ns = ns_, .label_selector = "n=("}).status()), 400);
  EXPECT_EQ(HttpCode(client_.List(maps_, {.ns = ns_, .field_selector = "data.v=1"}).status()), 400);
}

TEST_P(ApiTest, FinalizersHoldAnObject) {
  const Object made = Make("a", {{"finalizers", Json::array({"test.example.com/hold"})}});
  ASSERT_THAT(client_.Delete(maps_, {ns_, "a"}), IsOk());
  const auto going = client_.Get(maps_, {ns_, "a"});
  ASSERT_THAT(going, IsOk());
  EXPECT_TRUE(going->deleting());
  const auto more =
      Patch("a", PatchType::kMerge,
            {{"metadata", {{"finalizers", Json::array({"test.example.com/hold", "test.example.com/more"})}}}});
  EXPECT_EQ(HttpCode(more.status()), 422) << "none may be added now: " << base::ToString(more.status());
  ASSERT_THAT(Patch("a", PatchType::kMerge, {{"metadata", {{"finalizers", nullptr}}}}), IsOk());
  EXPECT_FALSE(Exists("a"));
}

TEST_P(ApiTest, DependentsAreDeletedWithTheirOwner) {
  const Object owner = Make("owner");
  Make("child", OwnedBy(owner));
  ASSERT_THAT(client_.Delete(maps_, {ns_, "owner"}, {.propagation_policy = "Background"}), IsOk());
  EXPECT_FALSE(Exists("owner"));
  EXPECT_TRUE(server_.Eventually([&] { return !Exists("child"); }));
}

TEST_P(ApiTest, AnOwnerWaitsForDependentsThatBlockIt) {
  const Object owner = Make("owner");
  Json metadata = OwnedBy(owner);
  metadata["finalizers"] = Json::array({"test.example.com/hold"});
  Make("child", metadata);
  ASSERT_THAT(client_.Delete(maps_, {ns_, "owner"}, {.propagation_policy = "Foreground"}), IsOk());
  EXPECT_TRUE(server_.Eventually([&] {
    const auto child = client_.Get(maps_, {ns_, "child"});
    return child.ok() && child->deleting();
  }));
  const auto waiting = client_.Get(maps_, {ns_, "owner"});
  ASSERT_THAT(waiting, IsOk());
  EXPECT_THAT(waiting->At("/metadata/finalizers"), ElementsAre("foregroundDeletion"));
  ASSERT_THAT(Patch("child", PatchType::kMerge, {{"metadata", {{"finalizers", nullptr}}}}), IsOk());
  EXPECT_TRUE(server_.Eventually([&] { return !Exists("owner") && !Exists("child"); }));
}

TEST_P(ApiTest, OrphansStayAndLoseTheReference) {
  const Object owner = Make("owner");
  Make("child", OwnedBy(owner));
  ASSERT_THAT(client_.Delete(maps_, {ns_, "owner"}, {.propagation_policy = "Orphan"}), IsOk());
  EXPECT_TRUE(server_.Eventually([&] { return !Exists("owner"); }));
  const auto child = client_.Get(maps_, {ns_, "child"});
  ASSERT_THAT(child, IsOk());
  EXPECT_TRUE(child->At("/metadata/ownerReferences").is_null());
}

// An object whose owner never existed is garbage too.
TEST_P(ApiTest, AnObjectWithoutItsOwnerIsGarbage) {
  const Object owner = Make("owner");
  ASSERT_THAT(client_.Delete(maps_, {ns_, "owner"}), IsOk());
  Make("child", OwnedBy(owner));
  EXPECT_TRUE(server_.Eventually([&] { return !Exists("child"); }));
}

TEST_P(ApiTest, AWatchListSendsABookmarkAfterTheInitialEvents) {
  Make("a");
  Make("b");
  std::vector<std::string> seen;
  EXPECT_THAT(
      client_.Watch(maps_,
                    {.ns = ns_, .field_selector = "metadata.name!=kube-root-ca.crt", .send_initial_events = true}, {},
                    [&](WatchEvent event) {
                      if (event.type == WatchEvent::Type::kAdded) seen.push_back(event.object.key().name);
                      if (event.type != WatchEvent::Type::kBookmark) return true;
                      EXPECT_EQ(event.object.annotation("k8s.io/initial-events-end"), "true");
                      seen.push_back("bookmark");
                      return false;
                    }),
      IsOk());
  EXPECT_THAT(seen, ElementsAre("a", "b", "bookmark"));
}

// When a change takes an object out of the selection, its watchers see a deletion.
TEST_P(ApiTest, AWatchWithASelectorSeesObjectsComeAndGo) {
  Make("a", {{"labels", {{"in", "no"}}}});
  const auto list = client_.List(maps_, {.ns = ns_, .label_selector = "in=yes"});
  ASSERT_THAT(list, IsOk());
  EXPECT_TRUE(list->items.empty());
  for (const char* value : {"yes", "no", "yes"}) {
    ASSERT_THAT(Patch("a", PatchType::kMerge, {{"metadata", {{"labels", {{"in", value}}}}}}), IsOk());
  }
  ASSERT_THAT(Patch("a", PatchType::kMerge, {{"data", {{"v", "2"}}}}), IsOk());
  using Type = WatchEvent::Type;
  std::vector<Type> types;
  EXPECT_THAT(
      client_.Watch(maps_, {.ns = ns_, .label_selector = "in=yes", .resource_version = list->resource_version}, {},
                    [&](WatchEvent event) {
                      if (event.type != Type::kBookmark) types.push_back(event.type);
                      return types.size() < 4;
                    }),
      IsOk());
  EXPECT_THAT(types, ElementsAre(Type::kAdded, Type::kDeleted, Type::kAdded, Type::kModified));
}

}  // namespace
}  // namespace medley::kube
