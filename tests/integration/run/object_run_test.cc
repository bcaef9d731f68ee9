// A run whose data, checkpoints and model are in an object store: killed, and continued from the store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "cli/run/child_process.h"
#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "tests/integration/object_store/server_process.h"
#include "tests/integration/run/run_fixture.h"

namespace medley::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(RunTest, AKilledRunContinuesFromAnObjectStore) {
  const object_store::ServerProcess server;
  const object_store::Settings settings = server.settings();
  setenv("no_proxy", "localhost,127.0.0.1", 1);
  setenv("AWS_ACCESS_KEY_ID", settings.keys.access_key_id.c_str(), 1);
  setenv("AWS_SECRET_ACCESS_KEY", settings.keys.secret_access_key.c_str(), 1);
  setenv("AWS_REGION", settings.region.c_str(), 1);
  setenv("MEDLEY_STORAGE_CA", settings.authorities.c_str(), 1);
  std::string job =
      SmallJob("objective:", "checkpoint: {interval: 1s, uri: \"s3://jobs/mine\"}\n  storage: {endpoint: \"" +
                                 settings.endpoint + "\", pathStyle: true}\n  objective:");
  Edit(job, "epochs: 1,", "epochs: 60,");
  const auto child = StartManifest(job, {});
  ASSERT_TRUE(WaitForOutput(" samples/s  loss ", base::seconds(120))) << Output();
  base::SystemClock clock;
  object_store::ObjectStore store(settings, clock, 1);
  const auto manifests = [&] {
    int number = 0;
    const auto listing = store.List(*object_store::ParseLocation("s3://jobs/mine/"), false, {});
    if (!listing.ok()) return number;
    for (const auto& each : listing->objects) number += each.key.ends_with("/manifest.json") ? 1 : 0;
    return number;
  };
  const base::SteadyTime end = clock.Steady() + base::seconds(120);
  while (manifests() == 0 && clock.Steady() < end) clock.SleepFor(base::milliseconds(200), {});
  ASSERT_GT(manifests(), 0) << Output();
  kill(child->pid(), SIGKILL);
  EXPECT_EQ(WaitForEnd(*child, base::seconds(60)), "signal 9");
  EXPECT_TRUE(NoProcessIsLeft());
  std::filesystem::remove(folder_ / "out");
  EXPECT_EQ(RunManifest(job, {"--resume"}), "exit code 0") << Output();
  EXPECT_THAT(Output(),
              AllOf(HasSubstr("continuing from step "), HasSubstr("s3://jobs/mine/"), HasSubstr("the model is in ")));
  EXPECT_THAT(base::ReadFile(folder_ / "model/model.json"), base::IsOk());
  EXPECT_EQ(server.uploads(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/node/claims")) << "no volume was used";
}

}  // namespace
}  // namespace medley::cli
