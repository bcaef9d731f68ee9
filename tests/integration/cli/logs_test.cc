// Tests medley logs against an API server whose pod logs the test writes.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "cli/cluster/log_follower.h"
#include "common/base/status.h"
#include "common/base/testing/patience.h"
#include "common/base/testing/status_matchers.h"
#include "operator/api/resources.h"
#include "tests/integration/cli/cluster_harness.h"
#include "tests/unit/cli/cluster/objects.h"

namespace medley::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class LogsTest : public ClusterTest {
 protected:
  void SetUp() override { PutRunningJob(); }

  std::string Line(int second, const std::string& text) {
    return fmt::format("2026-11-21T12:00:{:02}.5Z {}", second, text);
  }
  // The lines and notes received so far.
  std::vector<std::string> Seen() {
    base::MutexLock lock(mutex_);
    return seen_;
  }
  bool Eventually(const std::string& line) {
    base::MutexLock lock(mutex_);
    return changed_.WaitFor(mutex_, {}, base::Patience(base::seconds(30)),
                            [&] { return std::find(seen_.begin(), seen_.end(), line) != seen_.end(); });
  }
  std::jthread Follow(LogChoice choice) {
    return std::jthread([this, choice](std::stop_token stop) {
      const Cluster cluster = Connected();
      const absl::Status done = FollowLogs(cluster, choice, clock_, std::move(stop), sink_, note_);
      note_(done.ok() ? "over" : base::ToString(done));
    });
  }
  void Add(const std::string& text) {
    base::MutexLock lock(mutex_);
    seen_.push_back(text);
    changed_.NotifyAll();
  }
  const LogSink sink_ = [this](const LogLine& line) { Add(line.pod + ": " + line.text); };
  const LogNote note_ = [this](const std::string& sentence) { Add(sentence); };
  base::Mutex mutex_;
  base::CondVar changed_;
  std::vector<std::string> seen_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(LogsTest, AllPodsInTheOrderOfTime) {
  PutPod("adult-coordinator", "coordinator", "", "running");
  PutPod("adult-0-v100-spot-0", "trainer", "0", "running");
  logs_.Write("adult-coordinator", Line(1, "one"));
  logs_.Write("adult-0-v100-spot-0", Line(2, "two"));
  logs_.Write("adult-coordinator", Line(3, "three"));
  const Cluster cluster = Connected();
  ASSERT_THAT(ReadLogs(cluster, {.job = "adult"}, sink_, note_), base::IsOk());
  EXPECT_THAT(Seen(), ElementsAre("adult-coordinator: one", "adult-0-v100-spot-0: two", "adult-coordinator: three"));
  EXPECT_EQ(Medley("logs adult --role coordinator --timestamps").output,
            "adult-coordinator | 2026-11-21T12:00:01.5Z one\nadult-coordinator | "
            "2026-11-21T12:00:03.5Z three\n");
  EXPECT_EQ(Medley("logs adult --tail 1 --stage 1").output, "adult-0-v100-spot-0 | two\n")
      << "the plan in force decides";
  EXPECT_THAT(Medley("logs adult --color always --tail 1").output, HasSubstr("\x1b[36m"));
  EXPECT_THAT(Medley("logs adult --role server").output, HasSubstr("has no matching pods now"));
  logs_.Write("adult-coordinator", Line(4, R"({"time":"2026-11-21T12:00:04.000000Z","level":"info","msg":"four"})"));
  EXPECT_EQ(Medley("logs adult --tail 1 --role coordinator").output, "adult-coordinator | 12:00:04.000 four\n");
  EXPECT_THAT(Medley("logs adult --tail 1 --raw").output, HasSubstr(R"("msg":"four")"));
  EXPECT_GT(Medley("logs adult --role boss").status, 100);
}

TEST_F(LogsTest, APodWithoutALogIsNoted) {
  PutPod("adult-coordinator", "coordinator", "", "running");
  PutPod("adult-server-0", "server", "", "waiting");
  logs_.Write("adult-coordinator", Line(1, "one"));
  server_.embedded()->faults().Clear();
  const Cluster cluster = Connected();
  ASSERT_THAT(ReadLogs(cluster, {.job = "adult"}, sink_, note_), base::IsOk());
  EXPECT_THAT(Seen(), Contains("adult-coordinator: one"));
}

TEST_F(LogsTest, FollowsPodsThatComeAndGoUntilTheJobIsOver) {
  PutPod("adult-coordinator", "coordinator", "", "running");
  logs_.Write("adult-coordinator", Line(1, "began"));
  std::jthread follower = Follow({.job = "adult"});
  EXPECT_TRUE(Eventually("adult-coordinator: began"));
  logs_.Write("adult-coordinator", Line(2, "continues"));
  EXPECT_TRUE(Eventually("adult-coordinator: continues"));
  // A rescale: a pod is created, another one is deleted.
  logs_.Write("adult-1-cpu-spot-7", Line(3, "new here"));
  PutPod("adult-1-cpu-spot-7", "trainer", "1", "running");
  EXPECT_TRUE(Eventually("adult-1-cpu-spot-7: new here"));
  logs_.End("adult-1-cpu-spot-7");
  const auto deleted = server_.client().Delete(kube::resources::Pods(), {server_.ns(), "adult-1-cpu-spot-7"},
                                               {.grace_period_seconds = 0});
  EXPECT_THAT(deleted, base::IsOk());
  logs_.Write("adult-coordinator", Line(4, "last word"));
  EXPECT_TRUE(Eventually("adult-coordinator: last word"));
  PutStatus(ops::TrainingJobs(), {server_.ns(), "adult"},
            {{"conditions", {testing_objects::Condition("Complete", "True", "TrainingComplete", "all")}}});
  logs_.End("adult-coordinator");
  PutStatus(kube::resources::Pods(), {server_.ns(), "adult-coordinator"},
            {{"phase", "Succeeded"},
             {"containerStatuses",
              {{{"name", "worker"},
                {"image", "i"},
                {"imageID", ""},
                {"ready", false},
                {"restartCount", 0},
                {"state", {{"terminated", {{"exitCode", 0}}}}}}}}});
  EXPECT_TRUE(Eventually("over"));
}

TEST_F(LogsTest, ALineComesOnceThroughABrokenConnection) {
  PutPod("adult-coordinator", "coordinator", "", "running");
  logs_.Write("adult-coordinator", Line(1, "one"));
  std::jthread follower = Follow({.job = "adult"});
  EXPECT_TRUE(Eventually("adult-coordinator: one"));
  logs_.Cut("adult-coordinator");
  logs_.Write("adult-coordinator", Line(2, "two"));
  EXPECT_TRUE(Eventually("adult-coordinator: two"));
  const std::vector<std::string> seen = Seen();
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "adult-coordinator: one"), 1);
  follower.request_stop();
  EXPECT_TRUE(Eventually("over"));
}

TEST_F(LogsTest, FollowingIsBounded) {
  for (const char* name : {"adult-server-0", "adult-server-1"}) {
    logs_.Write(name, Line(1, "hello"));
    PutPod(name, "server", "", "running");
  }
  std::jthread follower = Follow({.job = "adult", .max_pods = 1});
  EXPECT_TRUE(Eventually("only 1 pods are followed at the same time; raise --max-pods, or use --role or --stage"));
  follower.request_stop();
  EXPECT_TRUE(Eventually("over"));
}

}  // namespace
}  // namespace medley::cli
