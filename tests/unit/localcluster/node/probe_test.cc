#include "localcluster/node/probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "common/base/testing/status_matchers.h"
#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {
namespace {

using base::IsOk;
using base::StatusIs;

struct Listener {
  UniqueFd fd;
  int port = 0;
};

Listener Listen() {
  Listener made{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(made.fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(made.fd.get(), 4), 0);
  EXPECT_EQ(getsockname(made.fd.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  made.port = ntohs(address.sin_port);
  return made;
}

TEST(ReadinessProbeTest, ParsesTheThreeKinds) {
  const kube::Json container = kube::Json::parse(R"({"ports": [{"name": "grpc", "containerPort": 7}],
    "readinessProbe": {"tcpSocket": {"port": "grpc"}, "periodSeconds": 2, "failureThreshold": 1}})");
  const auto tcp = ReadinessProbe(container);
  ASSERT_THAT(tcp, IsOk());
  EXPECT_EQ((*tcp)->port, 7);
  EXPECT_EQ((*tcp)->period, base::seconds(2));
  EXPECT_EQ((*tcp)->failure_threshold, 1);
  const auto http =
      ReadinessProbe(kube::Json::parse(R"({"readinessProbe": {"httpGet": {"port": 80, "path": "/ok"}}})"));
  ASSERT_THAT(http, IsOk());
  EXPECT_EQ((*http)->path, "/ok");
  const auto exec =
      ReadinessProbe(kube::Json::parse(R"({"readinessProbe": {"exec": {"command": ["sh", "-c", "x"]}}})"));
  ASSERT_THAT(exec, IsOk());
  EXPECT_EQ((*exec)->command.size(), 3u);
  EXPECT_FALSE(ReadinessProbe(kube::Json::object())->has_value());
  for (const char* bad :
       {R"({"readinessProbe": {"tcpSocket": {"port": "none"}}})", R"({"readinessProbe": {}})",
        R"({"readinessProbe": {"exec": {}}})", R"({"readinessProbe": {"httpGet": {"port": 1, "scheme": "HTTPS"}}})"}) {
    EXPECT_THAT(ReadinessProbe(kube::Json::parse(bad)), StatusIs(absl::StatusCode::kInvalidArgument)) << bad;
  }
}

TEST(ProbeTallyTest, ThresholdsAreOfAnswersInARow) {
  ProbeSpec spec;
  spec.success_threshold = 2;
  spec.failure_threshold = 3;
  ProbeTally tally(spec);
  const std::vector<std::pair<bool, bool>> steps = {{true, false}, {false, false}, {true, false}, {true, true},
                                                    {false, true}, {false, true},  {true, true},  {false, true},
                                                    {false, true}, {false, false}, {true, false}};
  for (size_t i = 0; i < steps.size(); ++i) {
    tally.Count(steps[i].first);
    EXPECT_EQ(tally.ready(), steps[i].second) << i;
  }
}

TEST(AskProbeTest, TcpNeedsAListener) {
  base::SystemClock clock;
  Listener listener = Listen();
  ProbeSpec spec;
  spec.port = listener.port;
  EXPECT_THAT(AskProbe(spec, "127.0.0.1", clock), IsOk());
  listener.fd.Reset();
  EXPECT_THAT(AskProbe(spec, "127.0.0.1", clock), StatusIs(absl::StatusCode::kUnavailable));
}

TEST(AskProbeTest, HttpWantsAGoodAnswerInTime) {
  base::SystemClock clock;
  const Listener listener = Listen();
  ProbeSpec spec;
  spec.kind = ProbeSpec::Kind::kHttp;
  spec.port = listener.port;
  spec.timeout = base::milliseconds(200);
  // The listener does not answer.
  EXPECT_THAT(AskProbe(spec, "127.0.0.1", clock), StatusIs(absl::StatusCode::kDeadlineExceeded));
  spec.timeout = base::seconds(60);
  const UniqueFd silent(accept(listener.fd.get(), nullptr, nullptr));
  for (const auto& [answer, good] :
       {std::pair("HTTP/1.1 204 No Content\r\n\r\n", true), std::pair("HTTP/1.1 503 Unavailable\r\n\r\n", false)}) {
    std::jthread server([&, text = std::string(answer)] {
      const UniqueFd peer(accept(listener.fd.get(), nullptr, nullptr));
      std::array<char, 512> buffer;
      ASSERT_GT(recv(peer.get(), buffer.data(), buffer.size(), 0), 0);
      ASSERT_EQ(send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    });
    EXPECT_EQ(AskProbe(spec, "127.0.0.1", clock).ok(), good) << answer;
  }
}

}  // namespace
}  // namespace medley::localcluster
