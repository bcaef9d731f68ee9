// The parts that reconcilers need, with stores that a test fills and a client whose hooks it sets.
#pragma once

#include "common/base/testing/fake_clock.h"
#include "common/base/testing/status_matchers.h"
#include "kube/client/testing/fake_client.h"
#include "operator/controllers/profile_reconciler.h"

namespace medley::ops {

class ControllersTest : public testing::Test {
 protected:
  ControllersTest() : metrics_(registry_), scheduler_({.address = "127.0.0.1:1"}, clock_) {
    EXPECT_THAT(jobs_.AddIndex(kProfileIndex, ProfileOfJob), base::IsOk());
    EXPECT_THAT(pods_.AddIndex(kProfileIndex, ProfileOfPod), base::IsOk());
    const auto owner_of = [](const kube::Object& pod) {
      const auto owner = pod.controller();
      return owner ? std::vector{owner->uid} : std::vector<std::string>();
    };
    EXPECT_THAT(pods_.AddIndex("owner", owner_of), base::IsOk());
  }
  // An autoscaled pool "cpu" of units with one CPU.
  void PutPool(int limit) {
    pools_.Put(std::make_shared<const kube::Object>(
        kube::Json{{"apiVersion", "medley.dev/v1alpha1"},
                   {"kind", "ResourcePool"},
                   {"metadata", {{"name", "cpu"}, {"uid", "pool"}, {"generation", 1}}},
                   {"spec",
                    {{"class", "CPU"},
                     {"scaling", "Autoscaled"},
                     {"limit", limit},
                     {"price", {{"usdPerUnitHour", "1"}}},
                     {"unit", {{"resources", {{"cpu", "1"}, {"memory", "1Gi"}}}}}}}}));
  }
  // For namespace "ns". Jobs of different `width` have different models.
  static kube::Object Job(const std::string& name, int width) {
    kube::Json json = kube::Json::parse(R"({"apiVersion": "medley.dev/v1alpha1", "kind": "TrainingJob",
        "metadata": {"namespace": "ns", "generation": 1},
        "spec": {"model": {"name": "ctrdnn"},
                 "data": {"train": {"uri": "file:///data/adult.csv", "format": "csv"},
                          "schema": {"label": {"column": 2}, "categorical": [0], "numeric": [1]},
                          "volume": {"persistentVolumeClaim": {"claimName": "d"}, "mountPath": "/data"}},
                 "objective": {"minThroughput": 1}},
        "status": {"startTime": "2026-01-01T00:00:00Z",
                   "conditions": [{"type": "Planned", "status": "False", "reason": "Profiling"}]}})");
    json["metadata"]["name"] = name;
    json["metadata"]["uid"] = "uid-" + name;
    json["spec"]["model"]["parameters"]["hidden"] = {width};
    return kube::Object(json);
  }
  JobDeps Deps() {
    const JobStores stores{jobs_, pools_, pods_, empty_, empty_, empty_, empty_, empty_};
    return {client_, clock_, stores,        capacity_, signed_pods_, line_,         outages_, scheduler_,
            links_,  calls_, observations_, board_,    events_,      expectations_, metrics_, {}};
  }

  base::FakeClock clock_;
  kube::FakeClient client_;
  metrics::Registry registry_;
  OperatorMetrics metrics_;
  kube::Store jobs_, pools_, pods_, empty_;
  SchedulerClient scheduler_;
  CoordinatorLinks links_{1, [](const kube::Key&, bool) {}};
  SlowCalls calls_{{.planner_threads = 1, .coordinator_threads = 1, .suspension_threads = 1, .log_threads = 1},
                   [](const kube::Key&) {}};
  ObservationSender observations_{
      {},
      [](const model::JobObservation&, const std::string&, std::stop_token) { return base::Unavailable("no service"); },
      [](const absl::StatusOr<model::Prediction>&) {}};
  profiling::Board board_;
  EventRecorder events_{client_, clock_, {}};
  Expectations expectations_{clock_};
  CapacityView capacity_;
  const RecordKeys keys_;  // those of the operator
  SignedPods signed_pods_{keys_, clock_};
  WaitingLine line_{clock_, [](const kube::Key&, base::nanoseconds) {}};
  PoolOutages outages_;
};

}  // namespace medley::ops
