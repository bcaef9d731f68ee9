#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <thread>

#include "common/base/details.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "common/rpc/channel.h"
#include "common/rpc/context.h"
#include "common/rpc/server.h"
#include "common/rpc/status.h"
#include "medley/scheduler/v1/scheduler.grpc.pb.h"

namespace medley::rpc {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

class EchoScheduler final : public scheduler::v1::SchedulerService::Service {
 public:
  grpc::Status GetCatalog(grpc::ServerContext* context, const scheduler::v1::GetCatalogRequest*,
                          scheduler::v1::GetCatalogResponse* response) override {
    if (grpc::Status status = Authorize(*context, "secret"); !status.ok()) return status;
    response->mutable_catalog()->set_revision(7);
    return grpc::Status::OK;
  }
  // Streams until the client cancels.
  grpc::Status WatchCatalog(grpc::ServerContext* context, const scheduler::v1::WatchCatalogRequest*,
                            grpc::ServerWriter<scheduler::v1::WatchCatalogResponse>* writer) override {
    writer->Write({});
    std::unique_lock lock(mutex_);
    while (!context->IsCancelled()) cancelled_.wait_for(lock, std::chrono::milliseconds(5));
    ++ended_;
    cancelled_.notify_all();
    return grpc::Status::CANCELLED;
  }
  // Whether so many streams have ended within the time.
  bool WaitForEnds(int count, base::nanoseconds patience) {
    std::unique_lock lock(mutex_);
    return cancelled_.wait_for(lock, patience, [&] { return ended_ >= count; });
  }

 private:
  int ended_ = 0;
  std::mutex mutex_;
  std::condition_variable cancelled_;
};

// Forwards the bytes of one connection to a local port, in both directions.
class Relay {
 public:
  explicit Relay(int to) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = Local(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this, to](const std::stop_token& stop) { Run(to, stop); });
  }
  ~Relay() {
    thread_.request_stop();
    thread_.join();
    ::close(listener_);
  }
  int port() const { return port_; }
  // Forwards nothing more and closes nothing.
  void Freeze() { frozen_ = true; }

 private:
  static sockaddr_in Local(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static bool Readable(int socket) {
    pollfd poll{socket, POLLIN, 0};
    return ::poll(&poll, 1, 5) > 0;
  }
  // False: the connection has ended.
  static bool Forward(int from, int to) {
    if (!Readable(from)) return true;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    return count > 0 && ::send(to, bytes.data(), static_cast<size_t>(count), MSG_NOSIGNAL) == count;
  }
  void Run(int to, const std::stop_token& stop) {
    while (!Readable(listener_)) {
      if (stop.stop_requested()) return;
    }
    const int client = ::accept(listener_, nullptr, nullptr);
    const int server = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Local(to);
    EXPECT_EQ(::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    while (!stop.stop_requested() && !frozen_ && Forward(client, server) && Forward(server, client)) continue;
    while (!stop.stop_requested()) ::poll(nullptr, 0, 5);
    ::close(client);
    ::close(server);
  }

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> frozen_{false};
  std::jthread thread_;
};

class RpcTest : public testing::Test {
 protected:
  void SetUp() override {
    auto server = Server::Start({}, {&service_});
    ASSERT_THAT(server, IsOk());
    server_ = std::move(*server);
    stub_ = scheduler::v1::SchedulerService::NewStub(MakeChannel(server_->address()));
  }

  absl::Status GetCatalog(const std::string& token) {
    grpc::ClientContext context;
    Prepare(context, {.token = token, .timeout = base::seconds(60), .wait_for_ready = true});
    scheduler::v1::GetCatalogResponse response;
    return FromGrpc(stub_->GetCatalog(&context, {}, &response), "scheduler: GetCatalog");
  }

  EchoScheduler service_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<scheduler::v1::SchedulerService::Stub> stub_;
};

TEST_F(RpcTest, OnlyTheRightTokenIsServed) {
  EXPECT_THAT(GetCatalog("secret"), IsOk());
  EXPECT_THAT(GetCatalog("secreT"), StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("wrong token")));
  EXPECT_THAT(GetCatalog("secret2"), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(GetCatalog(""), StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("no authorization")));
}

TEST_F(RpcTest, AnIpv6AddressIsListenedOnAndPrintedInBrackets) {
  EchoScheduler service;
  const auto server = Server::Start({.host = "::1"}, {&service});
  if (!server.ok()) {
    std::cerr << "[   NOTE   ] NOT RUN: this machine has no ::1: " << base::ToString(server.status()) << "\n";
    return;
  }
  const std::string address = (*server)->address();
  EXPECT_EQ(address, "[::1]:" + std::to_string((*server)->port()));
  const auto stub = scheduler::v1::SchedulerService::NewStub(MakeChannel(address));
  grpc::ClientContext context;
  Prepare(context, {.token = "secret", .timeout = base::seconds(60), .wait_for_ready = true});
  scheduler::v1::GetCatalogResponse response;
  EXPECT_TRUE(stub->GetCatalog(&context, {}, &response).ok());
}

TEST_F(RpcTest, PortInUseIsAnErrorThatNamesIt) {
  EXPECT_THAT(Server::Start({.port = server_->port()}, {}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(std::to_string(server_->port()))));
}

TEST_F(RpcTest, StopCancelsAStream) {
  grpc::ClientContext context;
  Prepare(context, {.wait_for_ready = true});
  std::stop_source stop;
  StopCancelsCall guard(context, stop.get_token());
  auto reader = stub_->WatchCatalog(&context, {});
  scheduler::v1::WatchCatalogResponse response;
  ASSERT_TRUE(reader->Read(&response));
  stop.request_stop();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_THAT(FromGrpc(reader->Finish()), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(RpcTest, ServerStopEndsStreamsWithinTheGrace) {
  grpc::ClientContext context;
  Prepare(context, {.wait_for_ready = true});
  auto reader = stub_->WatchCatalog(&context, {});
  scheduler::v1::WatchCatalogResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server_->Stop(base::milliseconds(10));
  server_->Stop();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_FALSE(reader->Finish().ok());
}

TEST_F(RpcTest, CallWithoutServerFailsAtOnce) {
  server_->Stop();
  stub_ = scheduler::v1::SchedulerService::NewStub(MakeChannel(server_->address()));
  grpc::ClientContext context;
  Prepare(context, {.timeout = base::seconds(10)});
  scheduler::v1::GetCatalogResponse response;
  EXPECT_THAT(FromGrpc(stub_->GetCatalog(&context, {}, &response), "scheduler: GetCatalog"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("scheduler: GetCatalog: ")));
}

TEST_F(RpcTest, PauseEndsWhenThePeerComesBack) {
  const int port = server_->port();
  server_.reset();
  const auto channel =
      MakeChannel("127.0.0.1:" + std::to_string(port),
                  {.connect_backoff_first = base::milliseconds(20), .connect_backoff_max = base::milliseconds(100)});
  base::SystemClock clock;
  PauseBeforeCallingAgain(*channel, clock, base::milliseconds(50), {});
  EXPECT_NE(channel->GetState(false), GRPC_CHANNEL_READY);
  server_ = *Server::Start({.port = port}, {&service_});
  PauseBeforeCallingAgain(*channel, clock, std::chrono::hours(1), {});  // would last longer than the test may
  EXPECT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
}

TEST_F(RpcTest, PauseLastsInFullWhileConnectedAndEndsOnStop) {
  const auto channel = MakeChannel(server_->address());
  base::FakeClock clock;
  PauseBeforeCallingAgain(*channel, clock, base::seconds(60), {});  // connects
  ASSERT_EQ(channel->GetState(false), GRPC_CHANNEL_READY);
  std::jthread pausing(
      [&](std::stop_token stop) { PauseBeforeCallingAgain(*channel, clock, base::seconds(60), stop); });
  EXPECT_TRUE(clock.WaitForSleepers(1));
  pausing.request_stop();
  pausing.join();
}

// A dead machine closes no connection: nothing comes from it any more.
TEST_F(RpcTest, AServerNoticesAClientWhoseMachineVanished) {
  // Long enough for this process to answer for the client on a busy machine, until the relay is frozen.
  auto server = Server::Start(
      {.keepalive_interval = base::milliseconds(100), .keepalive_timeout = base::milliseconds(3000)}, {&service_});
  ASSERT_THAT(server, IsOk());
  Relay relay((*server)->port());
  const auto stub = scheduler::v1::SchedulerService::NewStub(MakeChannel("127.0.0.1:" + std::to_string(relay.port())));
  grpc::ClientContext context;
  Prepare(context, {.wait_for_ready = true});
  auto reader = stub->WatchCatalog(&context, {});
  scheduler::v1::WatchCatalogResponse response;
  ASSERT_TRUE(reader->Read(&response));
  relay.Freeze();
  EXPECT_TRUE(service_.WaitForEnds(1, base::seconds(60)));
  context.TryCancel();
  EXPECT_FALSE(reader->Finish().ok());
}

TEST(RpcStatusTest, CodesAndMessagesSurviveBothWays) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status = base::MakeStatus(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status) << code;
    const absl::Status detailed = base::WithDetails(status, "leader-term=3");
    EXPECT_EQ(FromGrpc(ToGrpc(detailed)), detailed) << code;
    EXPECT_EQ(base::Details(FromGrpc(ToGrpc(detailed), "what")), status.ok() ? "" : "leader-term=3") << code;
  }
}

}  // namespace
}  // namespace medley::rpc
