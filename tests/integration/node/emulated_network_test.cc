// The emulated network itself: that packets arrive, in order, after the delay that its link has now, at its rate.
#include "localcluster/node/emulated_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <numeric>
#include <thread>
#include <vector>

#include "common/base/status.h"
#include "common/base/testing/status_matchers.h"
#include "localcluster/node/unique_fd.h"
#include "tests/integration/node/network_main.h"

namespace medley::kube {
namespace {

constexpr uint16_t kEchoPort = 7;
constexpr uint64_t kNetworkSeed = 3;

sockaddr_in EchoAddress(const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kEchoPort);
  inet_pton(AF_INET, address.c_str(), &to.sin_addr);
  return to;
}

class EmulatedNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto network = localcluster::EmulatedNetwork::Create(kNetworkSeed);
    ASSERT_THAT(network, base::IsOk());
    network_ = *std::move(network);
    const auto address = network_->Address("echo");
    ASSERT_THAT(address, base::IsOk());
    address_ = EchoAddress(*address);
    {
      const localcluster::EmulatedNetwork::Inside inside(*network_, "echo");
      listener_ = localcluster::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    const auto* address_of = reinterpret_cast<const sockaddr*>(&address_);
    ASSERT_EQ(bind(listener_.get(), address_of, sizeof address_), 0);
    ASSERT_EQ(listen(listener_.get(), 1), 0);
    client_ = localcluster::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(client_.get(), address_of, sizeof address_), 0);
    server_ = localcluster::UniqueFd(accept(listener_.get(), nullptr, nullptr));
    ASSERT_TRUE(server_.valid());
  }

  // Sends `count` numbers one way, and returns the seconds until all have arrived.
  double Send(size_t count) {
    std::vector<uint32_t> sent(count), received(count);
    std::iota(sent.begin(), sent.end(), 1U);
    const base::SteadyTime begin = clock_.Steady();
    std::jthread sender([&] {
      for (size_t done = 0; done < count * 4;) {
        const ssize_t n = send(client_.get(), reinterpret_cast<const char*>(sent.data()) + done, count * 4 - done, 0);
        if (n <= 0) return;
        done += static_cast<size_t>(n);
      }
    });
    EXPECT_EQ(recv(server_.get(), received.data(), count * 4, MSG_WAITALL), static_cast<ssize_t>(count * 4));
    EXPECT_EQ(received, sent);
    return base::ToSeconds(clock_.Steady() - begin);
  }

  base::SystemClock clock_;
  std::unique_ptr<localcluster::EmulatedNetwork> network_;
  sockaddr_in address_{};
  localcluster::UniqueFd listener_, client_, server_;
};

TEST_F(EmulatedNetworkTest, DelaysFromNowOn) {
  Send(1 << 20);
  ASSERT_THAT(network_->SetLink(localcluster::EmulatedNetwork::kHost, "echo", {.delay = base::milliseconds(80)}),
              base::IsOk());
  EXPECT_GE(Send(1), 0.08);
  ASSERT_THAT(network_->SetLink(localcluster::EmulatedNetwork::kHost, "echo",
                                {.delay = base::milliseconds(200), .spread = 0.5}),
              base::IsOk());
  for (int i = 0; i < 5; ++i) EXPECT_GE(Send(1), 0.1);
  ASSERT_THAT(network_->SetLink(localcluster::EmulatedNetwork::kHost, "echo", {}), base::IsOk());
  double fastest = 1;
  for (int i = 0; i < 20; ++i) fastest = std::min(fastest, Send(1));
  EXPECT_LT(fastest, 0.08) << "a link without a delay";
}

TEST_F(EmulatedNetworkTest, SendsNoFasterThanItsRate) {
  ASSERT_THAT(network_->SetLink(localcluster::EmulatedNetwork::kHost, "echo", {.bytes_per_second = 8e6}), base::IsOk());
  EXPECT_GE(Send(1 << 20), 0.9 * (4 << 20) / 8e6);
}

TEST_F(EmulatedNetworkTest, ACardLimitsAllLinksOfItsNode) {
  ASSERT_THAT(network_->SetCard("echo", {.receives = 8e6}), base::IsOk());
  EXPECT_GE(Send(1 << 20), 0.9 * (4 << 20) / 8e6) << "received";
  ASSERT_THAT(network_->SetCard("echo", {.sends = 8e6}), base::IsOk());
  ASSERT_THAT(network_->SetCard(localcluster::EmulatedNetwork::kHost, {.sends = 8e6}), base::IsOk());
  EXPECT_GE(Send(1 << 20), 0.9 * (4 << 20) / 8e6) << "sent";
}

}  // namespace
}  // namespace medley::kube

int main(int argc, char** argv) { return medley::kube::RunOnNetwork(argc, argv); }
