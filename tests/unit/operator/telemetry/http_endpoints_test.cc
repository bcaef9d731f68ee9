#include "operator/telemetry/http_endpoints.h"

#include "common/base/testing/status_matchers.h"
#include "operator/telemetry/operator_metrics.h"
#include "tests/unit/common/http_server/raw_client.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The whole response to a request without a body.
std::string Ask(int port, const std::string& target, const std::string& method = "GET", const std::string& more = "") {
  http_server::RawClient client(port);
  client.Send(method + " " + target + " HTTP/1.1\r\nHost: x\r\n" + more + "\r\n");
  return client.Response();
}

TEST(HttpEndpointsTest, MetricsAndChecks) {
  metrics::Registry registry;
  OperatorMetrics operator_metrics(registry);
  operator_metrics.CountReplan("Saves");
  JobSnapshot running;
  running.phase = "Running";
  operator_metrics.jobs().Set({"default", "a"}, running, base::WallTime());
  operator_metrics.jobs().Set({"default", "b"}, running, base::WallTime());
  absl::Status ready = base::Unavailable("caches are not filled");
  HttpEndpoints endpoints(
      {}, {[&] { return operator_metrics.Text(); }, [] { return absl::OkStatus(); }, [&] { return ready; }});
  ASSERT_THAT(endpoints.Start(), base::IsOk());
  const std::string page = Ask(endpoints.port(), "/metrics");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(page, HasSubstr("medley_operator_jobs{phase=\"Running\"} 2"));
  EXPECT_THAT(page, HasSubstr("medley_operator_replans_total{decision=\"Saves\"} 1"));
  EXPECT_THAT(Ask(endpoints.port(), "/healthz"), StartsWith("HTTP/1.1 200"));
  const std::string not_ready = Ask(endpoints.port(), "/readyz");
  EXPECT_THAT(not_ready, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(not_ready, HasSubstr("caches are not filled"));
  EXPECT_THAT(Ask(endpoints.port(), "/other"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask(endpoints.port(), "/metrics", "POST"), StartsWith("HTTP/1.1 405"));
  HttpEndpoints second({"127.0.0.1", endpoints.port()}, {});
  EXPECT_THAT(second.Start(),
              base::StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(endpoints.port()))));
  endpoints.Stop();
  endpoints.Stop();
}

// Probes need none: the kubelet has no token.
TEST(HttpEndpointsTest, MetricsNeedATokenWhereOneIsSet) {
  auto readers = http_server::Readers::OfTokens("0123456789abcdef\n");
  ASSERT_THAT(readers, base::IsOk());
  HttpEndpoints endpoints({.readers = *readers}, {[] { return std::string("medley_secret 1\n"); },
                                                  [] { return absl::OkStatus(); }, [] { return absl::OkStatus(); }});
  ASSERT_THAT(endpoints.Start(), base::IsOk());
  for (const char* more : {"", "Authorization: Bearer 0123456789abcdeg\r\n", "Authorization: 0123456789abcdef\r\n"}) {
    const std::string answer = Ask(endpoints.port(), "/metrics", "GET", more);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401")) << more;
    EXPECT_THAT(answer, testing::Not(HasSubstr("medley_secret")));
  }
  const std::string right = "Authorization: Bearer 0123456789abcdef\r\n";
  EXPECT_THAT(Ask(endpoints.port(), "/metrics", "GET", right), HasSubstr("medley_secret 1"));
  for (const char* probe : {"/healthz", "/livez", "/readyz"}) {
    EXPECT_THAT(Ask(endpoints.port(), probe), StartsWith("HTTP/1.1 200")) << probe;
  }
}

}  // namespace
}  // namespace medley::ops
