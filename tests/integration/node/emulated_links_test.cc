// Pods of a process node over an emulated network: each has a network of its own, and links that its annotations
// change while it runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "localcluster/apiserver/api_server.h"
#include "localcluster/node/emulated_network.h"
#include "localcluster/node/emulation.h"
#include "localcluster/node/process_node.h"
#include "tests/integration/node/network_main.h"

namespace medley::kube {
namespace {

using base::IsOk;

constexpr base::seconds kPatience{60};
constexpr uint64_t kNetworkSeed = 5;

// Answers each message of up to BYTES bytes with one byte. Both pods listen on the same port.
constexpr char kServer[] = R"(
import socket
listener = socket.create_server(("0.0.0.0", 7000))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    try:
        size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
        while connection.recv(size, socket.MSG_WAITALL):
            connection.send(b".")
    except ConnectionError:
        pass  # the client was killed
)";

// Prints the seconds of one message and its answer after another.
constexpr char kClient[] = R"(
import socket, sys, time
size = int(sys.argv[2])
connection = socket.create_connection((sys.argv[1], 7000))
connection.send(size.to_bytes(4, "big"))
while True:
    begin = time.monotonic()
    connection.sendall(bytes(size))
    connection.recv(1)
    print(time.monotonic() - begin, flush=True)
    time.sleep(0.01)
)";

class EmulatedLinksTest : public testing::Test {
 protected:
  void SetUp() override {
    auto network = localcluster::EmulatedNetwork::Create(kNetworkSeed);
    ASSERT_THAT(network, IsOk());
    network_ = *std::move(network);
    folder_ = *base::MakeTempDir("emulated-links");
    ASSERT_THAT(api_.Start(), IsOk());
    ClientConfig config;
    config.server = api_.url();
    config.token = api_.token();
    client_ = std::make_unique<HttpClient>(std::move(config), clock_, 1);
    localcluster::ProcessNodeOptions options;
    options.root = folder_ / "node";
    options.nodes = {{"n", {}, {}}};
    options.images = {{"python", "/usr/bin/python3"}};
    options.network = network_.get();
    options.stop_grace = base::milliseconds(300);
    node_ = std::make_unique<localcluster::ProcessNode>(*client_, clock_, options);
    ASSERT_THAT(node_->Start(), IsOk());
  }
  void TearDown() override {
    if (node_ != nullptr) node_->Stop();
    node_.reset();
    client_.reset();
    api_.Stop();
    base::RemoveTempDir(folder_);
  }

  void Create(const std::string& name, const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& annotations = {}) {
    std::vector<std::string> command = {"python3", "-c"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Json container = {{"name", "main"}, {"image", "python"}, {"command", command}};
    const Object pod(Json{{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", {{"name", name}, {"namespace", "default"}, {"annotations", annotations}}},
                          {"spec", {{"restartPolicy", "Never"}, {"containers", Json::array({container})}}}});
    ASSERT_THAT(client_->Create(resources::Pods(), pod), IsOk());
  }
  void Annotate(const std::string& name, const char* annotation, const Json& value) {
    const Json patch = {{"metadata", {{"annotations", {{annotation, value}}}}}};
    ASSERT_THAT(client_->Patch(resources::Pods(), {"default", name}, PatchType::kMerge, patch, {}, ""), IsOk());
  }
  void Delete(const std::string& name) {
    DeleteOptions at_once;
    at_once.grace_period_seconds = 0;
    ASSERT_THAT(client_->Delete(resources::Pods(), {"default", name}, at_once), IsOk());
  }
  std::string Log(const std::string& name) {
    std::string text;
    const absl::Status read = node_->ReadLog({"default", name}, {}, {}, [&](std::string_view bytes) {
      text += bytes;
      return true;
    });
    return read.ok() ? text : "";
  }
  std::string AddressOf(const std::string& name) {
    const auto pod = client_->Get(resources::Pods(), {"default", name});
    return pod.ok() ? pod->String("/status/podIP") : "";
  }
  bool Eventually(const std::function<bool()>& holds) {
    const base::SteadyTime deadline = clock_.Steady() + kPatience;
    while (!holds()) {
      if (clock_.Steady() > deadline) return false;
      clock_.SleepFor(base::milliseconds(10), {});
    }
    return true;
  }
  void StartServer(const std::string& name) {
    Create(name, {kServer});
    ASSERT_TRUE(Eventually([&] { return Log(name).find("listening") != std::string::npos; })) << Log(name);
    ASSERT_EQ(AddressOf(name).substr(0, 6), "10.99.");
  }
  std::vector<double> Seconds(const std::string& name) {
    std::istringstream text(Log(name));
    std::vector<double> seconds;
    for (double value = 0; text >> value;) seconds.push_back(value);
    return seconds;
  }
  // Waits until a message that was sent from now on took `least` to `most` seconds.
  bool AwaitSeconds(const std::string& name, double least, double most) {
    const size_t before = Seconds(name).size();
    return Eventually([&] {
      const std::vector<double> seconds = Seconds(name);
      return std::any_of(seconds.begin() + static_cast<std::ptrdiff_t>(std::min(before, seconds.size())), seconds.end(),
                         [&](double value) { return value >= least && value <= most; });
    });
  }

  base::SystemClock clock_;
  std::unique_ptr<localcluster::EmulatedNetwork> network_;
  std::filesystem::path folder_;
  localcluster::ApiServer api_{clock_, {}};
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<localcluster::ProcessNode> node_;
};

TEST_F(EmulatedLinksTest, AnAnnotationDelaysMessagesUntilItIsChanged) {
  StartServer("server");
  Create("client", {kClient, AddressOf("server"), "1"}, {{localcluster::kLinkDelayAnnotation, "150ms"}});
  ASSERT_TRUE(AwaitSeconds("client", 0.3, 10)) << Log("client");
  for (const double seconds : Seconds("client")) EXPECT_GE(seconds, 0.3) << "150 ms each way";
  Annotate("client", localcluster::kLinkDelayAnnotation, nullptr);
  EXPECT_TRUE(AwaitSeconds("client", 0, 0.29)) << Log("client");
  Annotate("server", localcluster::kLinkDelayAnnotation, "200ms");
  EXPECT_TRUE(AwaitSeconds("client", 0.4, 10)) << "delays hold for both ends: " << Log("client");
  Annotate("server", localcluster::kLinkDelayAnnotation, "soon");
  Annotate("client", localcluster::kLinkDelayAnnotation, "150ms");
  EXPECT_TRUE(AwaitSeconds("client", 0.7, 10)) << "what cannot be read leaves the link as it is: " << Log("client");
}

TEST_F(EmulatedLinksTest, AnAnnotationLimitsTheBytesOfASecond) {
  StartServer("server");
  Create("client", {kClient, AddressOf("server"), "1000000"}, {{localcluster::kEgressAnnotation, "16M"}});
  ASSERT_TRUE(AwaitSeconds("client", 0.45, 30)) << "1 MB at 2 MB/s: " << Log("client");
  Annotate("client", localcluster::kEgressAnnotation, "800M");
  EXPECT_TRUE(AwaitSeconds("client", 0, 0.4)) << Log("client");
  Annotate("server", localcluster::kIngressAnnotation, "16M");
  EXPECT_TRUE(AwaitSeconds("client", 0.45, 30)) << Log("client");
}

TEST_F(EmulatedLinksTest, ANewPodHasNothingOfTheLinksOfADeletedOne) {
  StartServer("server");
  Create("client", {kClient, AddressOf("server"), "1"}, {{localcluster::kLinkDelayAnnotation, "150ms"}});
  ASSERT_TRUE(AwaitSeconds("client", 0.3, 10)) << Log("client");
  const std::string address = AddressOf("client");
  Delete("client");
  ASSERT_TRUE(Eventually([&] {
    const auto gone = network_->Address("default/next");  // taken again as soon as it is free
    if (gone.ok() && *gone == address) return true;
    network_->Remove("default/next");
    return false;
  }));
  Create("next", {kClient, AddressOf("server"), "1"});
  EXPECT_TRUE(AwaitSeconds("next", 0, 0.29)) << Log("next");
  EXPECT_EQ(AddressOf("next"), address);
}

TEST_F(EmulatedLinksTest, APodDoesNotStartWithAnAnnotationThatCannotBeRead) {
  Create("odd", {"print(1)"}, {{localcluster::kLinkDelaySpreadAnnotation, "2"}});
  EXPECT_TRUE(Eventually([&] {
    const auto pod = client_->Get(resources::Pods(), {"default", "odd"});
    return pod.ok() &&
           pod->String("/status/containerStatuses/0/state/waiting/message").find("which is no number of 0 to 1") !=
               std::string::npos;
  }));
  Annotate("odd", localcluster::kLinkDelaySpreadAnnotation, "0.5");
  EXPECT_TRUE(Eventually([&] { return Log("odd") == "1\n"; }));
}

}  // namespace
}  // namespace medley::kube

int main(int argc, char** argv) { return medley::kube::RunOnNetwork(argc, argv); }
