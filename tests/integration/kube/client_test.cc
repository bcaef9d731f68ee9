// HttpClient's verbs, errors, retries and watches over HTTP.
#include <thread>

#include "common/base/testing/status_matchers.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using base::StatusIs;

class ClientTest : public testing::TestWithParam<ServerKind> {
 protected:
  ClientTest() : server_(GetParam(), clock_), ns_(server_.ns()) {
    ClientConfig config = server_.config();
    config.request_timeout = std::chrono::seconds(60);
    client_ = std::make_unique<HttpClient>(std::move(config), clock_, 1);
  }
  Object Map(const std::string& name, const std::string& value) {
    Object map(maps_, {ns_, name});
    map.mutable_json()["data"] = {{"v", value}};
    return map;
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  TestServer server_;
  const std::string ns_;
  std::unique_ptr<HttpClient> client_;
};
INSTANTIATE_TEST_SUITE_P(On, ClientTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(ClientTest, VerbsAndTypedErrors) {
  const Key key{ns_, "a"};
  const auto created = client_->Create(maps_, Map("a", "1"));
  ASSERT_THAT(created, IsOk());
  EXPECT_FALSE(created->uid().empty());
  EXPECT_TRUE(IsAlreadyExists(client_->Create(maps_, Map("a", "1")).status()));

  Object change = *created;
  change.mutable_json()["data"]["v"] = "2";
  const auto updated = client_->Update(maps_, change);
  ASSERT_THAT(updated, IsOk());
  EXPECT_TRUE(IsConflict(client_->Update(maps_, change).status()));  // its resourceVersion is old

  const auto patched = client_->Patch(maps_, key, PatchType::kMerge, {{"data", {{"w", "3"}}}});
  ASSERT_THAT(patched, IsOk());
  EXPECT_EQ(patched->String("/data/v"), "2");
  EXPECT_EQ(patched->String("/data/w"), "3");
  EXPECT_EQ(client_->Get(maps_, key)->String("/data/w"), "3");

  const auto list = client_->List(maps_, {.ns = ns_, .field_selector = "metadata.name=a"});
  ASSERT_THAT(list, IsOk());
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0].kind(), "ConfigMap");
  EXPECT_EQ(list->items[0].api_version(), "v1");
  EXPECT_FALSE(list->resource_version.empty());

  EXPECT_TRUE(IsConflict(client_->Delete(maps_, key, {.uid = "another"})));
  EXPECT_THAT(client_->Delete(maps_, key, {.uid = created->uid()}), IsOk());
  EXPECT_TRUE(IsNotFound(client_->Delete(maps_, key)));
  EXPECT_TRUE(IsNotFound(client_->Get(maps_, key).status()));
  EXPECT_THAT(client_->GetRaw("/version"), IsOk());
}

TEST_P(ClientTest, NamesThatWouldChangeThePathAreRefused) {
  for (const char* name : {"", "..", "a/b", "a?b", "a%2fb"}) {
    EXPECT_THAT(client_->Get(maps_, {ns_, name}), StatusIs(absl::StatusCode::kInvalidArgument)) << name;
  }
  EXPECT_THAT(client_->Get(maps_, {"", "a"}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(client_->GetRaw("version"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_P(ClientTest, WatchDeliversEventsInOrderAndEndsOnRequest) {
  const auto list = client_->List(maps_, {.ns = ns_});
  ASSERT_THAT(list, IsOk());
  ASSERT_THAT(client_->Create(maps_, Map("a", "1")), IsOk());
  ASSERT_THAT(client_->Patch(maps_, {ns_, "a"}, PatchType::kMerge, {{"data", {{"v", "2"}}}}), IsOk());
  ASSERT_THAT(client_->Delete(maps_, {ns_, "a"}), IsOk());
  std::vector<WatchEvent::Type> types;
  EXPECT_THAT(client_->Watch(maps_, {.ns = ns_, .resource_version = list->resource_version}, {},
                             [&](WatchEvent event) {
                               types.push_back(event.type);
                               return types.size() < 3;
                             }),
              IsOk());
  using Type = WatchEvent::Type;
  EXPECT_EQ(types, (std::vector<Type>{Type::kAdded, Type::kModified, Type::kDeleted}));
}

TEST_P(ClientTest, AnIdleWatchIsInterruptedAtOnce) {
  std::stop_source stop;
  std::jthread watcher([&] {
    EXPECT_THAT(client_->Watch(maps_, {.ns = ns_, .send_initial_events = true}, stop.get_token(),
                               [&](WatchEvent event) {
                                 if (event.type == WatchEvent::Type::kBookmark) {
                                   std::jthread([&] { stop.request_stop(); }).join();
                                 }
                                 return true;
                               }),
                IsOk());  // the server would end it after some minutes
  });
}

}  // namespace
}  // namespace medley::kube
