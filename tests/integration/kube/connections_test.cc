// Section E4 of docs/design/kube-client.md: connections, deadlines, retries and the user agent.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "common/base/testing/status_matchers.h"
#include "kube/cache/informer.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "localcluster/apiserver/faults.h"
#include "tests/integration/kube/test_server.h"
#include "tests/unit/kube/cache/testing.h"

namespace medley::kube {
namespace {

using base::IsOk;
using base::milliseconds;
using base::seconds;
using base::StatusIs;
using localcluster::apiserver::Fault;

// What waits this long unduly is reported as a test that hangs.
constexpr seconds kLongerThanTests{3600};

class ConnectionsTest : public testing::Test {
 protected:
  ConnectionsTest() {
    localcluster::ApiServerOptions options;
    options.on_request = [this](const localcluster::RequestSeen& request) {
      base::MutexLock lock(mutex_);
      seen_.push_back(request);
    };
    server_ = std::make_unique<localcluster::ApiServer>(clock_, std::move(options));
    const absl::Status started = server_->Start();
    EXPECT_THAT(started, IsOk());
    config_.server = server_->url();
    config_.token = server_->token();
    client_ = std::make_unique<HttpClient>(config_, clock_, 1);
  }
  Object Map(const std::string& name) { return Object(maps_, {"default", name}); }
  std::vector<localcluster::RequestSeen> seen() {
    base::MutexLock lock(mutex_);
    return seen_;
  }

  const Resource maps_ = resources::ConfigMaps();
  base::SystemClock clock_;
  base::Mutex mutex_;
  std::vector<localcluster::RequestSeen> seen_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<localcluster::ApiServer> server_;
  ClientConfig config_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(ConnectionsTest, E4_KeepAlive_ManyRequestsShareOneConnection) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "m" + std::to_string(i);
    ASSERT_THAT(client_->Create(maps_, Map(name)), IsOk());
    ASSERT_THAT(client_->Get(maps_, {"default", name}), IsOk());
    ASSERT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
    ASSERT_THAT(client_->Delete(maps_, {"default", name}), IsOk());
    EXPECT_TRUE(IsNotFound(client_->Get(maps_, {"default", name}).status()));  // an error keeps the connection open too
  }
  EXPECT_EQ(seen().size(), 100u);
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(ConnectionsTest, E4_KeepAlive_NoMoreConnectionsThanRequestsAtOnce) {
  constexpr int kThreads = 6;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this] {
        for (int n = 0; n < 20; ++n) EXPECT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
      });
    }
  }
  EXPECT_LE(server_->connections(), kThreads);
  EXPECT_EQ(seen().size(), size_t{20 * kThreads});
}

TEST_F(ConnectionsTest, E4_KeepAlive_AWatchThatEndsNormallyReturnsItsConnection) {
  for (int i = 0; i < 5; ++i) {
    server_->faults().Add({.kind = Fault::Kind::kWatchClose, .verb = "watch"});
    ASSERT_THAT(client_->Watch(maps_, {.ns = "default"}, {}, [](WatchEvent) { return true; }), IsOk());
    ASSERT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(ConnectionsTest, E4_KeepAlive_AConnectionThatWasCutIsReplaced) {
  ASSERT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
  ASSERT_THAT(server_->SetListening(false), IsOk());
  ASSERT_THAT(server_->SetListening(true), IsOk());
  EXPECT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(ConnectionsTest, E4_UserAgentIsAlwaysSet) {
  ASSERT_THAT(client_->List(maps_, {.ns = "default"}), IsOk());
  config_.user_agent = "medley-operator/9 (linux/amd64)";
  HttpClient named(config_, clock_, 1);
  ASSERT_THAT(named.Create(maps_, Map("a")), IsOk());
  server_->faults().Add({.kind = Fault::Kind::kWatchClose, .verb = "watch"});
  ASSERT_THAT(named.Watch(maps_, {.ns = "default"}, {}, [](WatchEvent) { return true; }), IsOk());
  const auto requests = seen();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].user_agent, "medley/0.1");
  EXPECT_EQ(requests[1].user_agent, config_.user_agent);
  EXPECT_EQ(requests[2].user_agent, config_.user_agent);
}

TEST_F(ConnectionsTest, E4_RetryAfterIsHonouredUpToTenTimes) {
  InstantClock clock;
  HttpClient client(config_, clock, 1);
  for (const int code : {429, 503}) {
    const size_t before = seen().size();
    const size_t slept = clock.sleeps().size();
    server_->faults().Add({.verb = "list", .code = code, .retry_after_seconds = 7, .times = 20});
    const absl::Status refused = client.List(maps_, {.ns = "default"}).status();
    EXPECT_EQ(HttpCode(refused), code);
    EXPECT_EQ(RetryAfter(refused), seconds(7));
    EXPECT_EQ(seen().size() - before, 11u);  // the first attempt and ten retries
    const auto sleeps = clock.sleeps();
    ASSERT_EQ(sleeps.size() - slept, 10u);
    for (size_t i = slept; i < sleeps.size(); ++i) EXPECT_EQ(sleeps[i], seconds(7));
    server_->faults().Clear();
  }
}

TEST_F(ConnectionsTest, E4_OnlyAnswersWithRetryAfterAreRetried) {
  InstantClock clock;
  HttpClient client(config_, clock, 1);
  for (const Fault& fault : {Fault{.code = 503}, Fault{.code = 429}, Fault{.code = 409, .retry_after_seconds = 1}}) {
    const size_t before = seen().size();
    server_->faults().Add(fault);
    EXPECT_EQ(HttpCode(client.List(maps_, {.ns = "default"}).status()), fault.code);
    EXPECT_EQ(seen().size() - before, 1u);
  }
  // The client waits as long as the server asks, but at most 30 s.
  server_->faults().Add({.code = 503, .retry_after_seconds = 3600});
  EXPECT_THAT(client.List(maps_, {.ns = "default"}), IsOk());
  ASSERT_EQ(clock.sleeps().size(), 1u);
  EXPECT_EQ(clock.sleeps()[0], seconds(30));
}

TEST_F(ConnectionsTest, Deadline_EveryVerbIsBounded) {
  ASSERT_THAT(client_->Create(maps_, Map("a")), IsOk());
  config_.request_timeout = milliseconds(100);
  HttpClient hasty(config_, clock_, 1);
  const Key key{"default", "a"};
  const std::vector<std::function<absl::Status()>> calls = {
      [&] { return hasty.Get(maps_, key).status(); },
      [&] { return hasty.List(maps_, {.ns = "default"}).status(); },
      [&] { return hasty.Create(maps_, Map("b")).status(); },
      [&] { return hasty.Update(maps_, Map("a")).status(); },
      [&] {
        return hasty.Patch(maps_, key, PatchType::kMerge, {{"data", {{"v", "2"}}}}).status();
      },
      [&] { return hasty.Delete(maps_, key); },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    server_->faults().Add({.kind = Fault::Kind::kSlowBody, .delay = kLongerThanTests});
    EXPECT_THAT(calls[i](), StatusIs(absl::StatusCode::kDeadlineExceeded)) << i;
  }
}

// A server that accepts connections and sends nothing.
TEST(DeadlineTest, Deadline_AWatchWithoutAnAnswerEnds) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 8), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  base::SystemClock clock;
  ClientConfig config;
  config.server = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  config.request_timeout = milliseconds(200);
  HttpClient client(std::move(config), clock, 1);
  EXPECT_THAT(client.Watch(resources::Pods(), {}, {}, [](WatchEvent) { return true; }),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(client.List(resources::Pods(), {}), StatusIs(absl::StatusCode::kDeadlineExceeded));
  ::close(fd);
}

TEST_F(ConnectionsTest, B7_StopInterruptsAListInFlightAndTheWaitsBetweenRetries) {
  server_->faults().Add({.kind = Fault::Kind::kSlowBody, .verb = "list", .delay = kLongerThanTests});
  server_->faults().Add({.verb = "list", .code = 503, .retry_after_seconds = 30, .times = 100});
  for (int i = 0; i < 2; ++i) {
    Informer::Options options;
    options.reflector.resource = maps_;
    options.reflector.watch_list = false;
    Informer informer(*client_, clock_, std::move(options));
    informer.Start();
    const auto deadline = clock_.Steady() + seconds(60);
    while (server_->faults().taken() <= static_cast<size_t>(i) && clock_.Steady() < deadline) {
      std::this_thread::yield();
    }
    informer.Stop();  // returns before the request does
  }
}

}  // namespace
}  // namespace medley::kube
