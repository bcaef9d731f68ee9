#include "operator/telemetry/http_endpoints.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "common/base/testing/status_matchers.h"
#include "operator/telemetry/operator_metrics.h"

namespace medley::ops {
namespace {

using testing::HasSubstr;
namespace http = boost::beast::http;
using Reply = http::response<http::string_body>;

Reply Get(int port, const std::string& target, http::verb verb = http::verb::get) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket socket(io);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(port)});
  http::request<http::empty_body> request(verb, target, 11);
  http::write(socket, request);
  boost::beast::flat_buffer buffer;
  Reply reply;
  http::read(socket, buffer, reply);
  return reply;
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
  const Reply page = Get(endpoints.port(), "/metrics");
  EXPECT_EQ(page.result_int(), 200u);
  EXPECT_THAT(page.body(), HasSubstr("medley_operator_jobs{phase=\"Running\"} 2"));
  EXPECT_THAT(page.body(), HasSubstr("medley_operator_replans_total{decision=\"Saves\"} 1"));
  EXPECT_EQ(Get(endpoints.port(), "/healthz").result_int(), 200u);
  const Reply not_ready = Get(endpoints.port(), "/readyz");
  EXPECT_EQ(not_ready.result_int(), 503u);
  EXPECT_THAT(not_ready.body(), HasSubstr("caches are not filled"));
  EXPECT_EQ(Get(endpoints.port(), "/other").result_int(), 404u);
  EXPECT_EQ(Get(endpoints.port(), "/metrics", http::verb::post).result_int(), 405u);
  HttpEndpoints second({"127.0.0.1", endpoints.port()}, {});
  EXPECT_THAT(second.Start(),
              base::StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(endpoints.port()))));
  endpoints.Stop();
  endpoints.Stop();
}

}  // namespace
}  // namespace medley::ops
