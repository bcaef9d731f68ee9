// Flexible synchronisation follows a link that becomes slow and fast again, in real processes over an emulated network.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "common/base/testing/status_matchers.h"
#include "tests/integration/node/network_main.h"
#include "tests/integration/worker/job_harness.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr char kDenseLayers[] = R"([{"name": "fc1", "kind": "FullyConnected", "out": 64, "activation": "tanh"},
                                    {"name": "fc_out", "kind": "FullyConnected", "out": 1},
                                    {"name": "loss", "kind": "Loss"}])";

JobOptions OverNetwork(localcluster::EmulatedNetwork* network) {
  JobOptions options;
  options.train = ExampleData("adult.train.csv");
  options.layers_json = kDenseLayers;
  options.tables = {};
  options.epochs = 100000;  // the job does not end before the test
  options.batch_size = 512;
  options.schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})";
  options.share_memory = false;
  options.network = network;
  return options;
}

TEST(SlowLinkTest, FlexibleSynchronisationFollowsIt) {
  const auto network = localcluster::EmulatedNetwork::Create(1);
  ASSERT_THAT(network, base::IsOk());
  const auto set_delay = [&](base::nanoseconds delay) {
    for (const char* other : {"t0-0", "t0-1"}) {
      ASSERT_THAT((*network)->SetLink("t0-2", other, {.delay = delay}), base::IsOk());
    }
  };
  JobHarness job(OverNetwork(network->get()));
  job.StartCoordinator();
  // Without a delay an agreement takes about as long as a step.
  job.Apply({.stages = {{.end = 3, .units = 3, .group = 2}}, .mode = plan::v1::SYNC_MODE_FLEXIBLE, .target_ratio = 1},
            "start");
  const auto wait_for_fraction = [&](double least, double most) {
    const pb::Observation seen = job.WaitFor(
        [&](const pb::Observation& o) {
          return o.agreement().ratio() > 0 && o.agreement().fraction() >= least && o.agreement().fraction() <= most;
        },
        base::seconds(120));
    EXPECT_EQ(seen.restarts(), 0);
    std::printf("step %lld: %s\n", static_cast<long long>(seen.step()), seen.agreement().ShortDebugString().c_str());
  };
  wait_for_fraction(0.1, 1);
  set_delay(base::milliseconds(200));
  wait_for_fraction(0.01, 0.03);
  set_delay(base::nanoseconds(0));
  wait_for_fraction(0.1, 1);
}

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) { return medley::kube::RunOnNetwork(argc, argv); }
