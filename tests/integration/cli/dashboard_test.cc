// Tests the page of `medley dashboard`: its JSON, who may read it, and the page itself in a real browser.
#include <gmock/gmock.h>

#include "cli/dashboard/dashboard.h"
#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "tests/integration/cli/cluster_harness.h"
#include "tests/unit/cli/cluster/objects.h"
#include "tests/unit/common/http_server/raw_client.h"

namespace medley::cli {
namespace {

using kube::Json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DashboardTest : public ClusterTest {
 protected:
  void Open(bool all_namespaces = false) {
    page_ = std::make_unique<Dashboard>(Connected(), clock_, DashboardOptions{.all_namespaces = all_namespaces});
    ASSERT_THAT(page_->Start(), base::IsOk());
  }
  int port() const {
    const std::string url = page_->url();
    return std::stoi(url.substr(url.rfind(':') + 1));
  }
  // The path that only the printed address has, without the last slash.
  std::string Secret() const {
    const std::string url = page_->url();
    const size_t slash = url.find('/', url.find("://") + 3);
    return url.substr(slash, url.size() - slash - 1);
  }
  std::string Ask(const std::string& path, const std::string& host = "127.0.0.1", const char* method = "GET") {
    return AskRaw(Secret() + path, "Host: " + host + "\r\n", method);
  }
  std::string AskRaw(const std::string& target, const std::string& headers, const char* method = "GET") {
    http_server::RawClient client(port());
    client.Send(std::string(method) + " " + target + " HTTP/1.1\r\n" + headers + "\r\n");
    return client.Response();
  }
  Json Body(const std::string& path) {
    const std::string response = Ask(path);
    return Json::parse(response.substr(response.find("\r\n\r\n") + 4), nullptr, false);
  }

  std::unique_ptr<Dashboard> page_;
};

TEST_F(DashboardTest, AJobWithItsStoryIsJson) {
  PutRunningJob();
  Open();
  const Json overview = Body("/api/overview");
  ASSERT_TRUE(overview.is_object());
  EXPECT_EQ(overview["jobs"][0]["name"], "adult");
  EXPECT_EQ(overview["pools"].size(), 2U);
  const Json job = Body("/api/jobs/" + server_.ns() + "/adult");
  ASSERT_TRUE(job.is_object());
  EXPECT_EQ(job["status"]["plan"]["generation"], 4);
  EXPECT_EQ(job["layerNames"], Json({"emb", "fc1", "loss"}));
  EXPECT_EQ(job["usdPerUnitHour"]["cpu-spot"], 0.04);
  EXPECT_FALSE(job["events"].empty());
  EXPECT_THAT(job["explain"].dump(), HasSubstr("limits the throughput"));
}

TEST_F(DashboardTest, OnlyTheBrowserOfThisMachineMayReadAndNobodyMayWrite) {
  PutRunningJob();
  Open();
  EXPECT_THAT(Ask("/api/overview", "localhost:" + std::to_string(port())), StartsWith("HTTP/1.1 200"));
  for (const char* host : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", ""}) {
    EXPECT_THAT(Ask("/api/overview", host), StartsWith("HTTP/1.1 421")) << host;
  }
  for (const char* method : {"POST", "PUT", "DELETE"}) {
    EXPECT_THAT(Ask("/api/overview", "127.0.0.1", method), StartsWith("HTTP/1.1 405")) << method;
  }
  const std::string page = Ask("/");
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("Access-Control-Allow-Origin")));
}

// Issue 13: every user of the machine could read it.
TEST_F(DashboardTest, OnlyTheAddressThatWasPrintedIsServed) {
  PutRunningJob();
  Open();
  EXPECT_THAT(Secret(), testing::MatchesRegex("/[0-9a-f]{32}"));
  std::string wrong = Secret();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  for (const std::string& path : {std::string(), std::string("/x"), Secret().substr(0, 20), wrong}) {
    for (const char* file : {"/", "/api/overview", "/main.js"}) {
      EXPECT_THAT(AskRaw(path + file, "Host: 127.0.0.1\r\n"), StartsWith("HTTP/1.1 403")) << path << file;
    }
  }
  EXPECT_THAT(AskRaw(Secret() + "/api/overview", "Host: 127.0.0.1\r\nOrigin: http://evil.example\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Ask("/main.js"), StartsWith("HTTP/1.1 200"));
  const std::string first = Secret();
  Open();
  EXPECT_NE(Secret(), first);
}

TEST_F(DashboardTest, RefusalsAreSentences) {
  PutRunningJob();
  Open();
  EXPECT_THAT(Ask("/api/jobs/elsewhere/adult"), HasSubstr("this page shows the namespace " + server_.ns() + " only"));
  EXPECT_THAT(Ask("/api/jobs/" + server_.ns() + "/nobody"), HasSubstr("TrainingJob 'nobody' does not exist"));
  EXPECT_THAT(Ask("/api/jobs/adult"), HasSubstr("name a job"));
  EXPECT_THAT(Ask("/api/prices"), HasSubstr("--server HOST:PORT"));
  EXPECT_THAT(Ask("/../../etc/passwd"), StartsWith("HTTP/1.1 404"));
  server_.embedded()->faults().Add({.verb = "list", .plural = "trainingjobs", .code = 403, .reason = "Forbidden"});
  EXPECT_THAT(Ask("/api/overview"), StartsWith("HTTP/1.1 403"));
}

TEST_F(DashboardTest, AllPagesShareOneReadingOfTheClusterPerSecond) {
  PutRunningJob();
  base::FakeClock clock;
  page_ = std::make_unique<Dashboard>(Connected(), clock, DashboardOptions());
  ASSERT_THAT(page_->Start(), base::IsOk());
  ASSERT_THAT(Ask("/api/overview"), StartsWith("HTTP/1.1 200"));
  server_.embedded()->faults().Add({.verb = "list", .plural = "trainingjobs", .code = 403, .reason = "Forbidden"});
  EXPECT_THAT(Ask("/api/overview"), StartsWith("HTTP/1.1 200"));
  clock.Advance(base::seconds(1));
  EXPECT_THAT(Ask("/api/overview"), StartsWith("HTTP/1.1 403"));
}

TEST_F(DashboardTest, ABrowserShowsJobsCurvesPlansMoneyAndEvents) {
  PutRunningJob();
  Json status = testing_objects::RunningStatus();
  for (int i = 1; i <= 2; ++i) {
    status["observed"]["evaluations"].push_back(
        {{"step", 500 * i},
         {"epochs", i},
         {"loss", 0.5 - 0.1 * i},
         {"metrics", {{"auc", 0.8 + 0.05 * i}, {"accuracy", 0.8}, {"logLoss", 0.4}, {"test_samples", 100}}}});
  }
  for (int i = 1; i <= 3; ++i) {
    status["observed"]["course"].push_back({{"step", 300 * i}, {"loss", 0.7 - 0.1 * i}, {"throughput", 20000 + i}});
  }
  PutStatus(ops::TrainingJobs(), {server_.ns(), "adult"}, status);
  Json other = testing_objects::JobWithoutStatus().json();
  other["metadata"] = {{"name", "second"}, {"namespace", server_.ns()}};
  other["status"] = {
      {"conditions", {testing_objects::Condition("Planned", "False", "Queued", "waits for 2 units of pool cpu-spot")}}};
  Put(ops::TrainingJobs(), kube::Object(other));
  Open();
  const std::string shots = std::string(getenv("MEDLEY_BIN_DIR")) + "/../web";
  const Ended browser = Shell("/usr/bin/python3 tests/integration/cli/dashboard_browser.py " + page_->url() + " " +
                              server_.ns() + " " + shots);
  EXPECT_EQ(browser.status, 0) << browser.output;
}

}  // namespace
}  // namespace medley::cli
