// `medley run --emulate-network`: a whole cluster whose pods have networks of their own, with the links of their
// annotations. The test is root of a network namespace, so it needs no unshare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <sstream>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/node/network_main.h"

namespace medley::cli {
namespace {

using testing::HasSubstr;

std::filesystem::path Variable(const char* name) { return std::getenv(name); }

class NetworkTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = *base::MakeTempDir("medley-network-test"); }
  void TearDown() override {
    child_.reset();
    base::RemoveTempDir(folder_);
  }

  std::string Output() const { return base::ReadFile(folder_ / "out").value_or(""); }
  bool WaitFor(const std::function<bool()>& holds, base::nanoseconds limit) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(limit);
    while (!holds()) {
      if (clock_.Steady() > deadline || child_->Ended()) return holds();
      clock_.SleepFor(base::milliseconds(50), {});
    }
    return true;
  }
  // Prints to a file, in the network of the cluster. The exit status must be 0.
  std::string Kubectl(const std::string& arguments) {
    const std::string line = "KUBECONFIG=" + (folder_ / "run/kubeconfig").string() + " nsenter --target " +
                             std::to_string(child_->pid()) + " --net kubectl " + arguments + " > " +
                             (folder_ / "answer").string() + " 2>&1";
    const int status = std::system(line.c_str());
    const std::string answer = base::ReadFile(folder_ / "answer").value_or("");
    EXPECT_EQ(status, 0) << line << "\n" << answer;
    return answer;
  }

  base::SystemClock clock_;
  std::filesystem::path folder_;
  std::unique_ptr<ChildProcess> child_;
};

TEST_F(NetworkTest, PodsHaveTheLinksOfTheirAnnotations) {
  auto child =
      ChildProcess::Start({.program = Variable("MEDLEY_BIN_DIR") / "medley",
                           .arguments = {"run", (Variable("MEDLEY_SOURCE_DIR") / "examples/slow-link.yaml").string(),
                                         "--emulate-network", "--plain", "--keep", "--folder",
                                         (folder_ / "run").string(), "--export", (folder_ / "model").string()},
                           .log = folder_ / "out"});
  ASSERT_THAT(child.status(), base::IsOk());
  child_ = *std::move(child);
  ASSERT_TRUE(WaitFor([&] { return Output().find("export KUBECONFIG=") != std::string::npos; }, base::seconds(240)))
      << Output();
  EXPECT_THAT(Output(), HasSubstr("samples trained         65,122 of 65,122"));
  EXPECT_THAT(Output(), HasSubstr("nsenter --target " + std::to_string(child_->pid()) + " --net"));
  EXPECT_THAT(Kubectl("get pods -l medley.dev/pool=far -o jsonpath='{.items[*].metadata.annotations}'"),
              HasSubstr("\"run.medley.dev/link-delay\":\"20ms\""));
  std::istringstream addresses(Kubectl("get pods -o jsonpath='{.items[*].status.podIP}'"));
  int pods = 0;
  for (std::string address; addresses >> address; ++pods) EXPECT_EQ(address.substr(0, 8), "10.99.0.");
  EXPECT_GE(pods, 4) << "the coordinator, trainers of both pools, their profilers";
  ASSERT_EQ(kill(child_->pid(), SIGINT), 0);
  EXPECT_TRUE(WaitFor([&] { return child_->Ended().has_value(); }, base::seconds(60)));
  EXPECT_EQ(child_->Ended().value_or(""), "exit code 0");
}

}  // namespace
}  // namespace medley::cli

int main(int argc, char** argv) { return medley::kube::RunOnNetwork(argc, argv); }
