#include "common/model/cluster.h"

#include <gmock/gmock.h>

#include "common/base/testing/status_matchers.h"
#include "common/model/execution_plan.h"
#include "common/model/link_table.h"
#include "common/model/synchronisation.h"

namespace medley::model {
namespace {

using base::IsOk;
using base::StatusIs;
using testing::HasSubstr;

Cluster FourDevices() {
  return {{{"a", "gpu", "m1", "z1/r1"}, {"b", "gpu", "m1", "z1/r1"}, {"c", "cpu", "", "z1/r2"}, {"d", "cpu", "", "z2"}},
          {{"*", "*", 1, 1}}};
}

double Latency(const Cluster& cluster, int a, int b) {
  const auto table = LinkTable::Make(cluster);
  EXPECT_THAT(table, IsOk());
  return table.ok() ? table->Between(a, b).latency_seconds : -1;
}

TEST(LinkTableTest, TheMostSpecificLinkCounts) {
  Cluster cluster = FourDevices();
  EXPECT_EQ(Latency(cluster, 0, 3), 1);
  cluster.links.push_back({"gpu", "cpu", 2, 1});
  EXPECT_EQ(Latency(cluster, 0, 3), 2);
  EXPECT_EQ(Latency(cluster, 3, 0), 2);  // both directions
  cluster.links.push_back({"z1", "z2", 3, 1});
  EXPECT_EQ(Latency(cluster, 0, 3), 3);
  cluster.links.push_back({"z1/r1", "z2", 4, 1});
  EXPECT_EQ(Latency(cluster, 0, 3), 4);
  EXPECT_EQ(Latency(cluster, 2, 3), 3);  // another rack
  cluster.links.push_back({"m1", "d", 5, 1});
  cluster.links.push_back({"z1", "z1", 9, 1});  // less specific, though later
  EXPECT_EQ(Latency(cluster, 0, 3), 5);
  cluster.links.push_back({"d", "m1", 6, 1});  // the other direction has its own
  EXPECT_EQ(Latency(cluster, 0, 3), 5);
  EXPECT_EQ(Latency(cluster, 3, 0), 6);
  cluster.links.push_back({"m1", "d", 7, 1});  // of equal ones the last
  EXPECT_EQ(Latency(cluster, 1, 3), 7);
}

TEST(LinkTableTest, DevicesOfOneMachineNeedNoLink) {
  Cluster cluster{{{"a", "gpu", "m1", ""}, {"b", "gpu", "m1", ""}}, {}};
  const auto table = LinkTable::Make(cluster);
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->Between(0, 1).latency_seconds, 0);
  EXPECT_EQ(table->Between(0, 1).bytes_per_second, 0);
  cluster.devices[1].machine = "m2";
  EXPECT_THAT(LinkTable::Make(cluster),
              StatusIs(absl::StatusCode::kInvalidArgument, "cluster.links: no link connects devices 'a' and 'b'"));
}

TEST(MostStalenessTest, FollowsTheSchedule) {
  ExecutionPlan plan;
  plan.stages.resize(4);
  EXPECT_EQ(MostStaleness(plan), 0);
  plan.schedule.kind = ScheduleKind::kAsync1F1B;
  EXPECT_EQ(MostStaleness(plan), 3);
  plan.schedule.micro_batches = 2;
  EXPECT_EQ(MostStaleness(plan), 2);
  plan.schedule.max_staleness = 1;
  EXPECT_EQ(MostStaleness(plan), 1);
  plan.stages.resize(1);
  EXPECT_EQ(MostStaleness(plan), 0);
}

TEST(LinkTableTest, RefusesInvalidClusters) {
  const auto refused = [](const Cluster& cluster, std::string_view why) {
    EXPECT_THAT(LinkTable::Make(cluster), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(std::string(why))));
  };
  refused({}, "cluster.devices: must not be empty");
  Cluster cluster = FourDevices();
  cluster.devices[1].id = "a";
  refused(cluster, "cluster.devices[1].id: 'a' appears twice");
  cluster = FourDevices();
  cluster.devices[2].pool = "";
  refused(cluster, "cluster.devices[2].pool: must not be empty");
  cluster = FourDevices();
  cluster.links[0].bytes_per_second = 0;
  refused(cluster, "cluster.links[0].bytesPerSecond: must be finite and greater than 0, is 0");
  cluster = FourDevices();
  cluster.links[0].latency_seconds = -1;
  refused(cluster, "cluster.links[0].latencySeconds");
  cluster = FourDevices();
  cluster.links.push_back({"a", "z3", 0, 1});
  refused(cluster, "cluster.links[1].to: 'z3' is no device, machine, location or pool of the cluster");
  cluster = FourDevices();
  cluster.devices.resize(kMaxClusterDevices + 1, {"x", "p", "", ""});
  refused(cluster, "1025 devices, at most 1024 are allowed");
}

}  // namespace
}  // namespace medley::model
