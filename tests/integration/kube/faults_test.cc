// Section H of docs/design/kube-client.md: every fault that can be scripted, as a client sees it. A
// fault that a real API server has without a script is tested there too.
#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "localcluster/apiserver/faults.h"
#include "tests/integration/kube/test_server.h"

namespace medley::kube {
namespace {

using base::IsOk;
using base::seconds;
using localcluster::apiserver::Fault;
using Type = WatchEvent::Type;

class FaultTest : public testing::TestWithParam<ServerKind> {
 protected:
  explicit FaultTest(localcluster::ApiServerOptions options = {})
      : server_(GetParam(), clock_, std::move(options)), ns_(server_.ns()) {
    ClientConfig config = server_.config();
    config.max_retries = 0;
    client_ = std::make_unique<HttpClient>(std::move(config), clock_, 1);
  }
  void Script(Fault fault) { server_.embedded()->faults().Add(std::move(fault)); }
  absl::Status List(std::optional<std::string> version = std::nullopt) {
    return client_->List(maps_, {.ns = ns_, .resource_version = std::move(version)}).status();
  }
  absl::StatusOr<Object> Put(const std::string& name) { return client_->Create(maps_, Object(maps_, {ns_, name})); }
  // Collects events until the stream ends or `most` have arrived.
  absl::Status Watch(const std::string& version, size_t most = 100) {
    events_.clear();
    return client_->Watch(maps_, {.ns = ns_, .resource_version = version}, {}, [&](WatchEvent event) {
      events_.push_back(std::move(event));
      return events_.size() < most;
    });
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  TestServer server_;
  const std::string ns_;
  std::unique_ptr<HttpClient> client_;
  std::vector<WatchEvent> events_;
};

// A server that keeps two changes only, so that it answers 410 without a script. (A real server that was started
// recently still has its first version; crd_test.cc uses a resource that is younger than its server.)
class SmallWindowTest : public FaultTest {
 protected:
  SmallWindowTest() : FaultTest({.event_window = 2}) {}
};
class UnscriptedFaultTest : public FaultTest {};

INSTANTIATE_TEST_SUITE_P(On, FaultTest, testing::Values(ServerKind::kEmbedded), ServerName);
INSTANTIATE_TEST_SUITE_P(On, SmallWindowTest, testing::Values(ServerKind::kEmbedded), ServerName);
INSTANTIATE_TEST_SUITE_P(On, UnscriptedFaultTest, testing::ValuesIn(ServersUnderTest()), ServerName);

TEST_P(SmallWindowTest, H_410OnAWatchFromBeforeTheWindow) {
  std::string first;
  for (const char* name : {"a", "b", "c", "d"}) {
    const auto made = Put(name);
    ASSERT_THAT(made, IsOk());
    if (first.empty()) first = made->resource_version();
  }
  EXPECT_THAT(Watch(first, 1), IsOk());
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].type, Type::kError);
  EXPECT_TRUE(IsGone(ErrorFromStatusObject(events_[0].object, "watch")));
}

TEST_P(UnscriptedFaultTest, H_TooLargeVersionOfAList) {
  const absl::Status status = List("4000000000000");
  EXPECT_TRUE(IsTooLargeResourceVersion(status)) << base::ToString(status);
}

TEST_P(FaultTest, H_410OnList) {
  Script({.verb = "list", .code = 410});
  EXPECT_TRUE(IsGone(List()));
  EXPECT_THAT(List(), IsOk());
}

TEST_P(FaultTest, H_410OnWatch) {
  Script({.kind = Fault::Kind::kWatchExpired, .verb = "watch"});
  EXPECT_THAT(Watch("0"), IsOk());
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].type, Type::kError);
  EXPECT_TRUE(IsGone(ErrorFromStatusObject(events_[0].object, "watch")));
}

TEST_P(FaultTest, H_TooLargeVersion) {
  Script({.verb = "list", .code = 504});
  EXPECT_TRUE(IsTooLargeResourceVersion(List("5")));
  Script({.verb = "watch", .code = 504});
  EXPECT_TRUE(IsTooLargeResourceVersion(Watch("5")));
}

TEST_P(FaultTest, H_429WithRetryAfter) {
  Script({.verb = "list", .code = 429, .retry_after_seconds = 7});
  const absl::Status status = List();
  EXPECT_TRUE(IsTooManyRequests(status));
  EXPECT_EQ(RetryAfter(status), seconds(7));
  Script({.kind = Fault::Kind::kWatchError, .verb = "watch", .code = 429});
  EXPECT_THAT(Watch("0"), IsOk());
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_TRUE(IsTooManyRequests(ErrorFromStatusObject(events_[0].object, "watch")));
}

TEST_P(FaultTest, H_500) {
  Script({.verb = "create", .code = 500});
  EXPECT_EQ(HttpCode(Put("a").status()), 500);
  EXPECT_THAT(Put("a"), IsOk());  // it has not been created
}

TEST_P(FaultTest, H_Refused) {
  ASSERT_THAT(Put("a"), IsOk());
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(server_.embedded()->SetListening(false), IsOk());
    EXPECT_TRUE(IsConnectionRefused(List()));
    EXPECT_TRUE(IsConnectionRefused(Watch("0")));
    ASSERT_THAT(server_.embedded()->SetListening(true), IsOk());
    EXPECT_THAT(client_->Get(maps_, {ns_, "a"}), IsOk());
  }
}

TEST_P(FaultTest, H_Dropped) {
  Script({.kind = Fault::Kind::kDrop, .verb = "list"});
  const absl::Status status = List();
  EXPECT_TRUE(absl::IsUnavailable(status)) << base::ToString(status);
  EXPECT_FALSE(IsConnectionRefused(status));
  EXPECT_EQ(HttpCode(status), 0);
}

TEST_P(FaultTest, H_MidStreamCutAndHalfALine) {
  ASSERT_THAT(Put("a"), IsOk());
  ASSERT_THAT(Put("b"), IsOk());
  for (const Fault::Kind kind : {Fault::Kind::kWatchCut, Fault::Kind::kHalfLine}) {
    Script({.kind = kind, .verb = "watch", .events = 1});
    const absl::Status status = Watch("0");
    EXPECT_TRUE(IsStreamCut(status)) << base::ToString(status);
    EXPECT_EQ(events_.size(), 1u);  // the event that arrived whole counts, the half one does not
  }
}

TEST_P(FaultTest, H_Bookmark) {
  Script({.kind = Fault::Kind::kBookmark, .verb = "watch"});
  ASSERT_THAT(Put("a"), IsOk());
  EXPECT_THAT(Watch("0", 2), IsOk());
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].type, Type::kBookmark);
  EXPECT_FALSE(events_[1].object.resource_version().empty());
  EXPECT_EQ(events_[1].object.kind(), "ConfigMap");
}

TEST_P(FaultTest, H_SubSecondClose) {
  Script({.kind = Fault::Kind::kWatchClose, .verb = "watch"});
  EXPECT_THAT(Watch("0"), IsOk());  // a watch that nobody closes lasts for minutes
  EXPECT_TRUE(events_.empty());
}

TEST_P(FaultTest, H_Conflict) {
  const auto made = Put("a");
  ASSERT_THAT(made, IsOk());
  Script({.verb = "update", .code = 409});
  EXPECT_TRUE(IsConflict(client_->Update(maps_, *made).status()));
  EXPECT_THAT(client_->Update(maps_, *made), IsOk());
}

TEST_P(FaultTest, H_SlowBody) {
  ASSERT_THAT(Put("a"), IsOk());
  for (const char* verb : {"list", "watch"}) {
    Script({.kind = Fault::Kind::kSlowBody, .verb = verb, .delay = base::milliseconds(300)});
    const auto began = clock_.Steady();
    if (std::string_view(verb) == "list") {
      const auto list = client_->List(maps_, {.ns = ns_});
      ASSERT_THAT(list, IsOk());
      EXPECT_EQ(list->items.size(), 1u);  // the body is whole
    } else {
      EXPECT_THAT(Watch("0", 1), IsOk());
      EXPECT_EQ(events_.size(), 1u);
    }
    EXPECT_GE(clock_.Steady() - began, base::milliseconds(300)) << verb;
  }
}

}  // namespace
}  // namespace medley::kube
