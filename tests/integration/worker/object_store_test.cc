// Jobs whose data lie in an object store: a server in another process, over TLS, that fails on demand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/base/testing/temp_dir.h"
#include "tests/integration/object_store/server_process.h"
#include "tests/integration/worker/job_harness.h"
#include "tests/integration/worker/small_job.h"

namespace medley::worker::object_store_test {
namespace {

namespace pb = ::medley::job::v1;
using base::IsOk;

class ObjectStoreJobTest : public testing::Test {
 protected:
  ObjectStoreJobTest() : folder_(*base::MakeTempDir("medley-object-store-job")) {
    setenv("no_proxy", "localhost", 1);
    for (int part = 1; part <= 2; ++part) {
      const std::filesystem::path file = folder_ / ("part-" + std::to_string(part) + ".csv");
      CopyLines(ExampleData("adult.train.csv"), file, 320 * part);
      store_.emplace(server_.settings(), clock_, 1);
      EXPECT_THAT(store_->Put(*object_store::ParseLocation("s3://data/train/" + file.filename().string()),
                              *base::ReadFile(file), {}),
                  IsOk());
    }
  }
  ~ObjectStoreJobTest() override { base::RemoveTempDir(folder_); }

  JobOptions Options(const std::string& train) const {
    JobOptions options = SmallJob(train, 1);
    options.environment = server_.environment();
    return options;
  }
  std::vector<double> Train(const JobOptions& options) {
    JobHarness job(options);
    job.StartCoordinator();
    job.Apply({.stages = {{0, 1, 1}, {1, 4, 1}}, .servers = 1, .micro_batches = 2}, "start");
    const pb::Observation end = job.WaitForEnd();
    EXPECT_EQ(end.phase(), pb::JOB_PHASE_COMPLETE) << end.message() << job.AllLogs();
    return job.Losses();
  }

  const std::filesystem::path folder_;
  object_store::ServerProcess server_;
  base::SystemClock clock_;
  std::optional<object_store::ObjectStore> store_;
};

TEST_F(ObjectStoreJobTest, AJobOnObjectsHasTheLossesOfOneOnFilesThroughAStorm) {
  const std::vector<double> files = Train(Options((folder_ / "part-*.csv").string()));
  EXPECT_EQ(files.size(), 60U);
  JobOptions options = Options("s3://data/train/part-*.csv");
  options.samples_folder = (folder_ / "samples").string();  // both trainers share the copies
  server_.Fail("storm", 3);
  server_.Fail("half", 1);
  EXPECT_EQ(Train(options), files);
}

TEST_F(ObjectStoreJobTest, WrongKeysFailTheJobWithASentence) {
  JobOptions options = Options("s3://data/train/part-*.csv");
  options.environment[1] = "AWS_SECRET_ACCESS_KEY=another";
  JobHarness job(options);
  job.StartCoordinator();
  job.Apply({.stages = {{0, 4, 1}}}, "start");
  const pb::Observation end = job.WaitForEnd();
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_FAILED);
  EXPECT_FALSE(end.retryable());
  EXPECT_THAT(end.message(), testing::AllOf(testing::HasSubstr("spec.data.train.uri: "),
                                            testing::HasSubstr("access denied: check AWS_ACCESS_KEY_ID")));
}

TEST_F(ObjectStoreJobTest, ABadRowIsNamedByItsObject) {
  ASSERT_THAT(store_->Put(*object_store::ParseLocation("s3://data/bad.csv"),
                          *base::ReadFile(folder_ / "part-1.csv") + "39, State-gov, not-a-number\n", {}),
              IsOk());
  JobHarness job(Options("s3://data/bad.csv"));
  job.StartCoordinator();
  job.Apply({.stages = {{0, 4, 1}}}, "start");
  const pb::Observation end = job.WaitForEnd();
  EXPECT_EQ(end.phase(), pb::JOB_PHASE_FAILED);
  EXPECT_THAT(end.message(), testing::HasSubstr("/s3:/data/bad.csv:321"));
}

}  // namespace
}  // namespace medley::worker::object_store_test
