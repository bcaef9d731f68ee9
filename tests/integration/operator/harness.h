// A cluster for tests of the operator: an API server (the embedded one, or a real one), a kubelet
// that only sets statuses and answers for logs, and a scheduling service and a coordinator that are
// fakes behind real gRPC servers. Time is real time plus what a test adds.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/model/forward.h"
#include "common/rpc/server.h"
#include "kube/client/http_client.h"
#include "localcluster/log_reader.h"
#include "operator/api/job_status.h"
#include "operator/app/operator_app.h"
#include "operator/lifecycle/actions.h"
#include "tests/integration/kube/test_server.h"

namespace medley::ops {

// Real time, moved ahead by Advance; sleepers wake then. Thread-safe.
class ShiftedClock final : public base::Clock {
 public:
  base::WallTime Now() const override;
  base::SteadyTime Steady() const override;
  bool SleepUntil(base::SteadyTime deadline, std::stop_token stop) override;
  void Advance(base::nanoseconds by);

 private:
  base::SystemClock real_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  base::nanoseconds shift_ ABSL_GUARDED_BY(mutex_){0};
};

class FakeScheduler {
 public:
  using Planner = std::function<absl::StatusOr<model::PlanResult>(const model::PlanRequest&)>;
  FakeScheduler();
  ~FakeScheduler();
  std::string address() const;
  void SetPlanner(Planner planner);
  // Publishes a catalog in which pool "gpu"'s offering has this price; 0: the catalog does not hold it.
  void Publish(double gpu_price);
  // A catalog in which the offering has a price in each of these zones, and none for the region.
  void PublishZones(std::map<std::string, double> prices);
  // The price of Publish, of an offering that is not available.
  void PublishUnavailable(double gpu_price);
  void Kill();
  void Revive();
  int plans() const;
  model::PlanRequest last() const;

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<rpc::Server> server_;
  int port_ = 0;
};

class FakeCoordinator {
 public:
  FakeCoordinator();
  ~FakeCoordinator();
  int port() const;
  // Generations and reasons of the plans that were applied, in order, and the pods named in the last.
  std::vector<std::pair<int64_t, std::string>> applied() const;
  std::set<std::string> members() const;
  std::set<std::string> drained() const;
  int suspends() const;
  // Requests of leaders that were deposed, and the newest term served.
  int refused() const;
  int64_t leader_term() const;
  void ServeTerm(int64_t term);  // as if a leader of this term had been here
  // A plan is in force as soon as it is applied; false: after Commit.
  void SetAutoCommit(bool on);
  void Commit();
  void Progress(int64_t samples, double throughput);
  // It recovers into a new generation without `member`, which was lost.
  void Recover(const std::string& member);
  void Complete();
  // The process ends as the real one does: it is complete, and a client was sent the last observation.
  bool ends() const;
  void Fail(const std::string& message, bool retryable);
  void Forget();  // as a coordinator that has just started

 private:
  class Service;
  std::unique_ptr<Service> service_;
  std::unique_ptr<rpc::Server> server_;
};

// Longer than a test may last, so that it passes only when a test advances the clock.
constexpr std::chrono::minutes kNoticePatience{10};

class OperatorHarness : public testing::TestWithParam<kube::ServerKind>, public localcluster::LogReader {
 protected:
  OperatorHarness();
  ~OperatorHarness() override;
  void SetUp() override;
  void TearDown() override;

  absl::Status ReadLog(const kube::Key& pod, const localcluster::LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink) override;

  void InstallCrds();
  OperatorOptions Options();
  void StartOperator();
  void StopOperator();
  kube::Json JobJson(const std::string& name = "adult");
  void Apply(const kube::Resource& resource, const kube::Json& object);
  void PatchSpec(const std::string& name, const kube::Json& spec);
  // Lets the kubelet work until `holds`; fails the test after 100 s of real time with the job's
  // status.
  bool Eventually(const std::function<bool()>& holds, const std::string& what);
  // Lets everything work for a moment, to see that nothing happens.
  void Settle();
  bool WaitForCondition(const std::string& type, const std::string& status, const std::string& reason = "");
  void RunJob();  // pools, job, until condition Running
  JobStatus Status(const std::string& name = "adult");
  kube::Object Get(const kube::Resource& resource, const kube::Key& key);
  bool Exists(const kube::Resource& resource, const kube::Key& key);
  std::string SecretOf(const std::string& job);  // the name of the one with its credentials; "": none
  std::set<std::string> PodNames();
  void SetPod(const std::string& name, const kube::Json& status);
  void Bind(const kube::Object& pod, const std::string& node);
  // A ready node; it is deleted at the end of the test.
  void AddNode(const std::string& name, const kube::Json& allocatable);
  void PatchNode(const std::string& name, const kube::Json& patch);
  void PatchNodeStatus(const std::string& name, const kube::Json& status);
  void SetNodeReady(const std::string& name, bool ready);
  void Taint(const std::string& node, const std::string& key);
  bool HasEvent(const std::string& reason, const std::string& part = "");
  void Pump();
  void CleanUp();
  void PrintEvents();

  ShiftedClock clock_;
  FakeScheduler scheduler_;
  FakeCoordinator coordinator_;
  kube::TestServer server_;
  const std::string ns_;                      // of the job
  std::unique_ptr<kube::HttpClient> client_;  // the test's
  std::unique_ptr<kube::Client> operators_;   // the operator's
  std::unique_ptr<OperatorApp> app_;
  // What the kubelet does with a pod.
  std::atomic<bool> kubelet_on_{true};
  std::atomic<int> profiler_exit_{0};
  std::map<std::string, int> profiler_exits_;                // by pool, instead
  std::string profiler_log_;                                 // empty: a good profile
  base::nanoseconds recheck_ = base::seconds(2);             // of an operator that is started
  int max_profilers_ = 0;                                    // of an operator that is started
  bool recommend_ = false;                                   // OperatorOptions::recommend
  base::nanoseconds over_window_ = base::milliseconds(500);  // of an operator that is started
  base::nanoseconds capacity_debounce_ = base::milliseconds(100);
  // The node to which a pod is bound; null or an empty answer: it stays unbound, and runs all the same.
  std::function<std::string(const kube::Object&)> place_;
  std::set<std::string> pools_without_nodes_;  // whose members find no node
  std::set<std::string> dead_nodes_;           // whose kubelets do nothing

 private:
  std::vector<std::string> nodes_;
};

}  // namespace medley::ops
