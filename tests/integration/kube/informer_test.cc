// Informers over HTTP, against a server with scripted faults.
#include "common/base/testing/status_matchers.h"
#include "kube/cache/informer_factory.h"
#include "kube/client/http_client.h"
#include "localcluster/apiserver/faults.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using localcluster::apiserver::Fault;

class InformerOverHttpTest : public testing::TestWithParam<ServerKind> {
 protected:
  InformerOverHttpTest() : server_(GetParam(), clock_), ns_(server_.ns()) {
    client_ = std::make_unique<HttpClient>(server_.config(), clock_, 1);
    factory_ = std::make_unique<InformerFactory>(*client_, clock_, 1);
  }
  void TearDown() override { factory_->Stop(); }
  void Put(const std::string& name, const std::string& value) {
    Object map(maps_, {ns_, name});
    map.mutable_json()["data"] = {{"v", value}};
    ASSERT_THAT(client_->Create(maps_, map), IsOk());
  }
  // Waits at most a minute until the store has exactly `name` with `value`.
  bool WaitForValue(const Store& store, const std::string& name, const std::string& value) {
    return WaitFor([&] {
      const ObjectPtr object = store.Get({ns_, name});
      return object != nullptr && object->String("/data/v") == value;
    });
  }
  bool WaitFor(const std::function<bool()>& condition) {
    const auto deadline = clock_.Steady() + base::seconds(60);
    while (!condition()) {
      if (clock_.Steady() > deadline) return false;
      clock_.SleepFor(base::milliseconds(2), {});
    }
    return true;
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  TestServer server_;
  const std::string ns_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<InformerFactory> factory_;
};
INSTANTIATE_TEST_SUITE_P(On, InformerOverHttpTest, testing::ValuesIn(ServersUnderTest()), ServerName);

// The server has scripted faults.
class InformerWithFaultsTest : public InformerOverHttpTest {
 protected:
  localcluster::apiserver::FaultScript& faults() { return server_.embedded()->faults(); }
};
INSTANTIATE_TEST_SUITE_P(On, InformerWithFaultsTest, testing::Values(ServerKind::kEmbedded), ServerName);

TEST_P(InformerOverHttpTest, A5_WatchListThenEvents) {
  Put("a", "1");
  Informer& informer = factory_->For(maps_, ns_);
  factory_->Start();
  ASSERT_THAT(factory_->WaitForSync(base::seconds(60), {}), IsOk());
  EXPECT_TRUE(WaitForValue(informer.store(), "a", "1"));
  Put("b", "2");
  EXPECT_TRUE(WaitForValue(informer.store(), "b", "2"));
  ASSERT_THAT(client_->Delete(maps_, {ns_, "a"}), IsOk());
  EXPECT_TRUE(WaitFor([&] { return informer.store().Get({ns_, "a"}) == nullptr; }));
}

TEST_P(InformerWithFaultsTest, TheInformerRecoversFromEveryFaultOfAWatch) {
  Informer& informer = factory_->For(maps_, ns_);
  for (const Fault::Kind kind : {Fault::Kind::kWatchCut, Fault::Kind::kHalfLine, Fault::Kind::kWatchClose,
                                 Fault::Kind::kWatchExpired, Fault::Kind::kDrop, Fault::Kind::kBookmark}) {
    faults().Add({.kind = kind, .verb = "watch", .plural = "configmaps", .events = 1});
  }
  factory_->Start();
  for (int i = 0; i < 8; ++i) {
    Put("m" + std::to_string(i), "x");
    ASSERT_TRUE(WaitForValue(informer.store(), "m" + std::to_string(i), "x")) << i;
  }
}

TEST_P(InformerWithFaultsTest, A2_After410TheInformerListsAgain) {
  faults().Add({.kind = Fault::Kind::kWatchExpired, .verb = "watch", .times = 2});
  faults().Add({.kind = Fault::Kind::kStatus, .verb = "list", .code = 410});
  Put("a", "1");
  Informer& informer = factory_->For(maps_, ns_);
  factory_->Start();
  EXPECT_TRUE(WaitForValue(informer.store(), "a", "1"));
}

}  // namespace
}  // namespace medley::kube
