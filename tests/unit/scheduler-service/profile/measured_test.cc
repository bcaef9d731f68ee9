// Compares estimates with measurements of our profiler (tests/data/profiles): the numbers in docs/design/profiles.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "common/base/file.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/convert.h"
#include "common/model/model.h"
#include "common/model/planning.h"
#include "common/model/profile.h"
#include "common/model/text.h"
#include "medley/profile/v1/profile.pb.h"
#include "scheduler-service/profile/analytic.h"
#include "scheduler-service/profile/robust_fit.h"

namespace medley::sched {
namespace {

using base::IsOk;

// The recorded profile and the estimate: profiles[0] is measured, profiles[1] estimated.
model::Profile Estimated(const std::string& name, const std::string& distinct_share) {
  const std::string path = std::string(std::getenv("MEDLEY_SOURCE_DIR")) + "/tests/data/profiles/" + name + ".json";
  const auto text = base::ReadFile(path);
  EXPECT_THAT(text, IsOk());
  profile::v1::Profile message;
  EXPECT_THAT(model::ParseText(text.ok() ? *text : "", message), IsOk());
  auto profile = model::FromProto(message);
  EXPECT_THAT(profile, IsOk());
  profile->model.layers.at(0).attributes["distinctShare"] = distinct_share;
  const auto catalog = HardwareCatalog::Builtin();
  EXPECT_THAT(AddAnalyticProfiles(profile->model, "estimate", *catalog->Find("cpu-emerald-rapids"),
                                  profile->profile_batch_size),
              IsOk());
  return *std::move(profile);
}

TEST(MeasuredTest, ComputeIsEstimatedWell) {
  std::vector<double> errors;
  for (const char* name : {"adult-2048", "adult-wide-4096", "criteo-4096", "criteo-dim64-2048"}) {
    double measured = 0;
    double estimated = 0;
    for (const model::Layer& layer : Estimated(name, "1").model.layers) {
      const double ratio = layer.profiles[1].compute_seconds / layer.profiles[0].compute_seconds;
      measured += layer.profiles[0].compute_seconds;
      estimated += layer.profiles[1].compute_seconds;
      errors.push_back(std::abs(ratio - 1));
      if (layer.kind == "EMBEDDING") {
        EXPECT_LT(ratio, 2.5) << name;  // ids of Adult repeat so often that its rows stay in the cache
        EXPECT_GT(ratio, 1 / 1.5) << name;
      } else {
        EXPECT_NEAR(ratio, 1, 0.30) << name << " " << layer.name;
      }
      EXPECT_NEAR(layer.profiles[1].compute_parallel, layer.profiles[0].compute_parallel, 0.15) << name << layer.name;
    }
    EXPECT_NEAR(estimated / measured, 1, 0.12) << name;
  }
  EXPECT_LT(MedianOf(errors), 0.10);
}

TEST(MeasuredTest, CommunicationHasTheRightMagnitude) {
  for (const char* name : {"adult-2048", "adult-wide-4096", "criteo-4096", "criteo-dim64-2048"}) {
    double measured = 0;
    double estimated = 0;
    for (const model::Layer& layer : Estimated(name, "1").model.layers) {
      measured += layer.profiles[0].transfer_seconds;
      estimated += layer.profiles[1].transfer_seconds;
      // The profiler measures an allreduce of two units, which moves half of the bytes of a large one.
      if (layer.sparse || layer.weight_bytes == 0) continue;
      const double ratio = layer.profiles[1].sync_seconds / layer.profiles[0].sync_seconds;
      EXPECT_GT(ratio, 1.3) << name << " " << layer.name;
      EXPECT_LT(ratio, 4) << name << " " << layer.name;
    }
    EXPECT_NEAR(estimated / measured, 1, 0.35) << name;
  }
}

// With the counted shares of distinct rows (23,236 of 101,020 and 13,914 of 51,856), the estimate of servers is good.
TEST(MeasuredTest, ServersFollowTheDistinctRows) {
  const std::vector<std::pair<std::string, std::string>> cases = {{"criteo-4096", "0.2300"},
                                                                  {"criteo-dim64-2048", "0.2683"}};
  for (const auto& [name, share] : cases) {
    const model::Layer embedding = Estimated(name, share).model.layers[0];
    EXPECT_NEAR(embedding.profiles[1].server_seconds / embedding.profiles[0].server_seconds, 1, 0.25) << name;
    EXPECT_NEAR(embedding.profiles[1].sync_seconds / embedding.profiles[0].sync_seconds, 1, 0.60) << name;
  }
}

}  // namespace
}  // namespace medley::sched
