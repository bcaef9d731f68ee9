// What other users of the machine, and pods, can do to `medley run`: issue 13's attacks on the real programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <list>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "kube/client/http_client.h"
#include "kube/errors.h"
#include "tests/integration/run/run_fixture.h"
#include "tests/unit/common/http_server/raw_client.h"

namespace medley::cli {
namespace {

namespace fs = std::filesystem;
using base::IsOk;
using base::StatusIs;
using http_server::RawClient;
using kube::Json;
using testing::HasSubstr;
using testing::StartsWith;

int Mode(const fs::path& path) { return static_cast<int>(fs::status(path).permissions()); }

class StrangersTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = *base::MakeTempDir("medley-strangers");
    run_ = folder_ / "run";
    ASSERT_THAT(base::WriteFileAtomic(folder_ / "job.yaml", SmallJob()), IsOk());
    medley_ = Start({"run", (folder_ / "job.yaml").string(), "--plain", "--keep", "--folder", run_.string(), "--export",
                     (folder_ / "model").string()},
                    "out");
    ASSERT_TRUE(Eventually(
        [&] { return Output().find("export KUBECONFIG=") != std::string::npos || medley_->Ended().has_value(); }));
    ASSERT_EQ(medley_->Ended(), std::nullopt) << Output();
  }
  void TearDown() override {
    if (medley_ != nullptr) {
      kill(medley_->pid(), SIGINT);
      EXPECT_TRUE(Eventually([&] { return medley_->Ended().has_value(); }));
    }
    base::RemoveTempDir(folder_);
  }

  std::unique_ptr<ChildProcess> Start(std::vector<std::string> arguments, const char* log) {
    const fs::path program = fs::path(std::getenv("MEDLEY_BIN_DIR")) / "medley";
    auto child = ChildProcess::Start({.program = program, .arguments = std::move(arguments), .log = folder_ / log});
    EXPECT_THAT(child.status(), IsOk());
    return *std::move(child);
  }
  // Runs `medley` to its end; how it ended and its output.
  std::string Medley(std::vector<std::string> arguments) {
    const auto child = Start(std::move(arguments), "command");
    EXPECT_TRUE(Eventually([&] { return child->Ended().has_value(); }));
    const std::string output = base::ReadFile(folder_ / "command").value_or("");
    fs::remove(folder_ / "command");
    return child->Ended().value_or("") + ": " + output;
  }
  bool Eventually(const std::function<bool()>& holds) {
    const base::SteadyTime deadline = clock_.Steady() + base::Patience(base::seconds(120));
    while (!holds()) {
      if (clock_.Steady() > deadline) return false;
      clock_.SleepFor(base::milliseconds(50), std::stop_token());
    }
    return true;
  }
  std::string Output() const { return base::ReadFile(folder_ / "out").value_or(""); }
  // The address that `medley run` has printed for this, without "http://127.0.0.1".
  std::string Printed(const std::string& what) const {
    const std::string output = Output();
    const size_t line = output.find("\n" + what + " ");
    const size_t at = output.find("127.0.0.1:", line);
    EXPECT_NE(line, std::string::npos) << what;
    return output.substr(at + 10, output.find('\n', at) - at - 10);
  }
  static int PortOf(const std::string& printed) { return std::stoi(printed); }
  static std::string Ask(int port, const std::string& path) {
    RawClient client(port);
    client.Send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    return client.Rest();
  }
  kube::ClientConfig Config() {
    auto config = kube::LoadKubeconfig(run_ / "kubeconfig");
    EXPECT_THAT(config.status(), IsOk());
    return *std::move(config);
  }

  base::SystemClock clock_;
  fs::path folder_, run_;
  std::unique_ptr<ChildProcess> medley_;
};

TEST_F(StrangersTest, GetNothingAndBlockNobody) {
  // The files of the run are its owner's.
  EXPECT_EQ(Mode(run_), 0700);
  EXPECT_EQ(Mode(run_ / "node"), 0700);
  EXPECT_EQ(Mode(run_ / "kubeconfig"), 0600);
  EXPECT_EQ(Mode(run_ / "scheduler.token"), 0600);

  // The API server answers nothing without the token.
  kube::HttpClient owner(Config(), clock_, 1);
  kube::ClientConfig anonymous_config = Config();
  anonymous_config.token.clear();
  kube::HttpClient anonymous(anonymous_config, clock_, 1);
  for (const char* path : {"/version", "/healthz", "/readyz", "/openapi/v2", "/api", "/apis", "/api/v1/nodes",
                           "/api/v1/namespaces/default/pods/small-coordinator/log"}) {
    EXPECT_THAT(anonymous.GetRaw(path).status(), StatusIs(absl::StatusCode::kUnauthenticated)) << path;
  }
  EXPECT_THAT(owner.GetRaw("/version"), IsOk());

  // A pod that sets LD_PRELOAD is not started, and says so.
  const kube::Object pod(Json::parse(R"({"metadata": {"name": "evil", "namespace": "default"}, "spec": {"containers": [
      {"name": "c", "image": "medley-worker", "env": [{"name": "LD_PRELOAD", "value": "/tmp/evil.so"}]}]}})"));
  ASSERT_THAT(owner.Create(kube::resources::Pods(), pod), IsOk());
  Json waiting;
  EXPECT_TRUE(Eventually([&] {
    const auto now = owner.Get(kube::resources::Pods(), pod.key());
    if (now.ok()) waiting = now->At("/status/containerStatuses/0/state/waiting");
    return waiting.is_object() && waiting.value("reason", "") == "CreateContainerConfigError";
  })) << waiting;
  EXPECT_THAT(waiting.value("message", ""), HasSubstr("may not set LD_PRELOAD"));
  ASSERT_THAT(owner.Delete(kube::resources::Pods(), pod.key()), IsOk());

  // The scheduling service needs its own token, which the user's commands find.
  const int rest = PortOf(Printed("scheduling service, REST"));
  EXPECT_THAT(Ask(rest, "/v1/planners"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(Ask(rest, "/metrics"), StartsWith("HTTP/1.1 200"));
  const std::string grpc = "127.0.0.1:" + Printed("scheduling service, gRPC");
  EXPECT_THAT(Medley({"prices", "--server", grpc}), StartsWith("exit code 1"));
  EXPECT_THAT(Medley({"prices", "--server", grpc, "--token-file", (run_ / "scheduler.token").string()}),
              StartsWith("exit code 0"));
  EXPECT_THAT(Medley({"prices", "--kubeconfig", (run_ / "kubeconfig").string()}), StartsWith("exit code 0"));

  // The page is served only under the address that was printed.
  const std::string page = Printed("web page of the job");
  EXPECT_THAT(Ask(PortOf(page), "/"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask(PortOf(page), "/api/overview"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask(PortOf(page), page.substr(page.find('/'))), StartsWith("HTTP/1.1 200"));

  // 300 silent connections to each port, of which half have begun a request, shut nobody out.
  const std::string server = Config().server;
  const int api = std::stoi(server.substr(server.rfind(':') + 1));
  const int metrics = PortOf(Printed("operator"));
  std::list<RawClient> silent;
  for (const int port : {api, metrics, PortOf(page)}) {
    for (int i = 0; i < 300; ++i) {
      silent.emplace_back(port);
      if (i % 2 == 0) silent.back().Send("GET / HTTP/1.1\r\nHo");
    }
  }
  kube::HttpClient fresh(Config(), clock_, 1);
  EXPECT_THAT(fresh.List(kube::resources::Pods(), {.ns = "default"}), IsOk());
  EXPECT_THAT(Ask(metrics, "/metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask(PortOf(page), page.substr(page.find('/'))), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(medley_->Ended(), std::nullopt);
}

TEST_F(StrangersTest, AFolderOfOthersIsRefused) {
  const fs::path open = folder_ / "open";
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  EXPECT_THAT(Medley({"run", (folder_ / "job.yaml").string(), "--folder", open.string(), "--export",
                      (folder_ / "other-model").string()}),
              testing::AllOf(StartsWith("exit code 1"), HasSubstr("every user may write to the run folder")));
  EXPECT_TRUE(fs::is_empty(open));
}

}  // namespace
}  // namespace medley::cli
