// Many jobs that compete for units, in a simulated cluster with delays everywhere: plans take time, caches lag, pods
// start late, crash and take time to end, and the operator crashes. Units are given once, whatever happens, and nobody
// waits while what it needs is free.
//
// The simulated operator does what operator/lifecycle does with CapacityView and WaitingLine: it takes a turn, counts,
// plans, reserves, stores the plan and creates pods. It never polls: a job is planned only when something wakes it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/base/testing/fake_clock.h"
#include "operator/api/resources.h"
#include "operator/capacity/capacity_view.h"
#include "operator/capacity/waiting_line.h"

namespace medley::ops {
namespace {

using kube::Json;

constexpr int kArrivals = 500;
constexpr int kPools = 4;
constexpr base::nanoseconds kTick = base::milliseconds(10);

struct SimulatedJob {
  std::string name;
  std::string pool;
  int units = 1;
  int64_t priority = 0;
  std::string created;
  int run_ticks = 0;
  enum class State { kWaiting, kPlanned, kRuns, kFinished } state = State::kWaiting;
  kube::Key key() const { return {"ns", name}; }
  std::string Pod(int index) const { return name + "-" + std::to_string(index); }
};

struct SimulatedPod {
  std::string job;
  std::string pool;
  std::string node;
  bool terminating = false;
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : rng_(seed) {
    for (int p = 0; p < kPools; ++p) AddPool("pool" + std::to_string(p), p == kPools - 1);
    StartOperator();
    int at = 0;
    for (int i = 0; i < kArrivals; ++i) {
      at += Some(60);
      Later(at, [this, i] { Arrive(i); });
      if (i % 10 == 9) Later(at + 3, [this] { Crash(); });
    }
  }

  void Run() {
    for (int step = 0; !events_.empty() && !testing::Test::HasFailure(); ++step) {
      if (on_the_way_ == 0) CheckThatNobodyWaitsInVain();
      Event event = events_.top();
      events_.pop();
      on_the_way_ -= event.is_later ? 0 : 1;
      clock_.Advance((event.tick - tick_) * kTick);
      tick_ = event.tick;
      event.work();
      CheckLimits();
    }
    for (const auto& [name, job] : jobs_) EXPECT_EQ(job.state, SimulatedJob::State::kFinished) << name;
  }
  int waiting_seen() const { return waiting_seen_; }
  int crashes() const { return crashes_; }
  int waits() const { return waits_; }

 private:
  struct Event {
    int tick = 0;
    int64_t order = 0;
    bool is_later = false;  // a job arrives or ends, or something crashes: the cluster comes to rest before
    std::function<void()> work;
    bool operator<(const Event& other) const { return std::pair(tick, order) > std::pair(other.tick, other.order); }
  };

  void After(int ticks, std::function<void()> work) {
    ++on_the_way_;
    events_.push({tick_ + ticks, order_++, false, std::move(work)});
  }
  void Later(int ticks, std::function<void()> work) { events_.push({tick_ + ticks, order_++, true, std::move(work)}); }
  // Work of the operator, which is lost when it crashes.
  void OperatorAfter(int ticks, std::function<void()> work) {
    After(ticks, [this, run = crashes_, work = std::move(work)] {
      if (run == crashes_) work();
    });
  }
  int Some(int most) { return static_cast<int>(rng_.Below(static_cast<uint64_t>(most) + 1)); }

  void AddPool(const std::string& name, bool autoscaled) {
    ResourcePool pool;
    pool.name = name;
    pool.limit = 1 + Some(63);
    if (autoscaled) pool.scaling = PoolScaling::kAutoscaled;
    pools_[name] = std::make_shared<const ResourcePool>(pool);
    PodDemand demand;
    demand.amounts.requests = {{"cpu", 1000}};
    demand.node_selector = {{"pool", name}};
    demands_[name] = std::make_shared<const PodDemand>(demand);
    if (autoscaled) return;
    for (int n = 0; n <= Some(5); ++n) AddNode(name, 1 + Some(15));
  }
  std::string AddNode(const std::string& pool, int units) {
    const std::string name = pool + "-node" + std::to_string(nodes_.size());
    nodes_[name] = {{"metadata", {{"name", name}, {"labels", {{"pool", pool}}}}},
                    {"status", {{"allocatable", {{"cpu", std::to_string(units)}}}}}};
    room_[name] = units;
    return name;
  }

  std::vector<PlannedUnit> Units(const SimulatedJob& job) const {
    std::vector<PlannedUnit> units;
    for (int i = 0; i < job.units; ++i) {
      units.push_back({{"ns", job.Pod(i)}, pools_.at(job.pool), demands_.at(job.pool)});
    }
    return units;
  }
  kube::Object Object(const std::string& name) const {
    const SimulatedPod& pod = pods_.at(name);
    Json json = {{"metadata",
                  {{"name", name},
                   {"namespace", "ns"},
                   {"labels", {{kJobNameLabel, pod.job}, {kRoleLabel, "trainer"}, {kPoolLabel, pod.pool}}}}},
                 {"spec",
                  {{"nodeSelector", {{"pool", pod.pool}}},
                   {"containers", Json::array({{{"resources", {{"requests", {{"cpu", "1"}}}}}}})}}},
                 {"status", {{"phase", "Running"}}}};
    json["metadata"]["ownerReferences"] = Json::array(
        {{{"kind", TrainingJobs().kind}, {"name", pod.job}, {"uid", "uid-" + pod.job}, {"controller", true}}});
    if (!pod.node.empty()) json["spec"]["nodeName"] = pod.node;
    if (pod.terminating) json["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    return kube::Object(json);
  }

  // --- The operator.

  void StartOperator() {
    planning_.clear();
    view_ = std::make_unique<CapacityView>();
    line_ = std::make_unique<WaitingLine>(clock_, [this](const kube::Key& job, base::nanoseconds delay) {
      OperatorAfter(static_cast<int>((delay + kTick - base::nanoseconds(1)) / kTick),
                    [this, name = job.name] { Reconcile(name); });
    });
    for (const auto& [name, node] : nodes_) view_->PutNode(kube::Object(node));
    for (const auto& [name, pod] : pods_) view_->PutPod(Object(name));
    for (auto& [name, job] : jobs_) {
      if (job.state == SimulatedJob::State::kFinished) continue;
      if (job.state == SimulatedJob::State::kWaiting) {
        line_->Join(PlaceOf(job));
      } else {
        view_->Restore({job.key(), name}, Units(job));
      }
      OperatorAfter(Some(3), [this, id = name] { Reconcile(id); });
    }
  }
  void Crash() {
    ++crashes_;
    StartOperator();
  }
  void ReportFreed() {
    if (view_->TakeFreed()) line_->UnitsFreed();
  }
  WaitingLine::Job PlaceOf(const SimulatedJob& job) const { return {job.key(), job.priority, job.created}; }

  void Reconcile(const std::string& name) {
    SimulatedJob& job = jobs_.at(name);
    const auto plans = planning_.find(name);
    if (plans != planning_.end()) {  // a controller reconciles a job again that was enqueued meanwhile
      plans->second = true;
      return;
    }
    if (job.state == SimulatedJob::State::kPlanned || job.state == SimulatedJob::State::kRuns) return CreatePods(name);
    if (job.state != SimulatedJob::State::kWaiting) return;
    const int64_t turn = line_->turn();
    if (line_->Take(PlaceOf(job))) return line_->Wait(job.key(), turn);
    const int units = view_->UnitsFor(*pools_.at(job.pool), *demands_.at(job.pool), job.key()).units;
    const int patience = static_cast<int>(WaitingLine::kPatience / kTick);
    const int plan = Some(100) == 0 ? Some(2 * patience) : Some(10);
    planning_[name] = false;
    OperatorAfter(plan, [this, name, turn, units] {
      Accept(name, turn, units);
      const bool again = planning_.at(name);
      planning_.erase(name);
      if (again) Reconcile(name);
    });
  }
  void Accept(const std::string& name, int64_t turn, int units) {
    SimulatedJob& job = jobs_.at(name);
    if (units < job.units) {
      ++waits_;
      line_->Wait(job.key(), turn);
      return;
    }
    absl::Status reserved = base::ResourceExhausted("another job is planned first");
    if (!line_->Ahead(job.key(), turn)) reserved = view_->Reserve({job.key(), name}, Units(job));
    ReportFreed();
    if (!reserved.ok()) {
      line_->Wait(job.key(), turn);
      OperatorAfter(1, [this, name] { Reconcile(name); });
      return;
    }
    job.state = SimulatedJob::State::kPlanned;  // the plan is stored
    line_->Leave(job.key());
    OperatorAfter(Some(100), [this, name] { Reconcile(name); });  // others are reconciled first
  }
  void CreatePods(const std::string& name) {
    const SimulatedJob& job = jobs_.at(name);
    bool all = true;
    for (int i = 0; i < job.units; ++i) {
      const std::string pod = job.Pod(i);
      all = all && pods_.contains(pod) && !pods_.at(pod).terminating;
      if (pods_.contains(pod)) continue;
      pods_[pod] = {name, job.pool, "", false};
      Published(pod);
      After(1 + Some(3), [this, pod] { Bind(pod); });
    }
    if (!all) OperatorAfter(5, [this, name] { Reconcile(name); });
  }

  // --- The cluster.

  void Arrive(int number) {
    SimulatedJob job;
    job.name = "job" + std::to_string(number);
    job.pool = "pool" + std::to_string(rng_.Below(kPools));
    const ResourcePool& pool = *pools_.at(job.pool);
    int64_t most = pool.limit;
    if (pool.scaling == PoolScaling::kNodes) {
      int64_t all = 0;
      for (const auto& [node, json] : nodes_) all += node.starts_with(job.pool + "-") ? Capacity(node) : 0;
      most = std::min(most, all);
    }
    job.units = 1 + Some(static_cast<int>(std::min<int64_t>(most, 16)) - 1);
    job.priority = 10 * Some(2);
    job.created = "2026-01-01T00:00:" + std::to_string(10 + number / 10);
    job.run_ticks = 20 + Some(1000);
    jobs_[job.name] = job;
    OperatorAfter(Some(2), [this, name = job.name] { Reconcile(name); });
  }
  int64_t Capacity(const std::string& node) const {
    return std::stoi(nodes_.at(node)["status"]["allocatable"]["cpu"].get<std::string>());
  }
  // The operator's cache shows the pod as it is then.
  void Published(const std::string& pod) {
    OperatorAfter(Some(2), [this, pod] {
      if (pods_.contains(pod)) {
        view_->PutPod(Object(pod));
      } else {
        view_->ErasePod({"ns", pod});
      }
      ReportFreed();
    });
  }
  void Bind(const std::string& name) {
    const auto pod = pods_.find(name);
    if (pod == pods_.end() || !pod->second.node.empty() || pod->second.terminating) return;
    std::vector<std::string> nodes;
    for (const auto& [node, left] : room_) {
      if (node.starts_with(pod->second.pool + "-") && left > 0) nodes.push_back(node);
    }
    if (nodes.empty() && pools_.at(pod->second.pool)->scaling == PoolScaling::kAutoscaled) {
      nodes.push_back(AddNode(pod->second.pool, 4));
      OperatorAfter(Some(2), [this, node = nodes.back()] {
        view_->PutNode(kube::Object(nodes_.at(node)));
        ReportFreed();
      });
    }
    ASSERT_FALSE(nodes.empty()) << "pod " << name << " was created, and no node has room for it";
    pod->second.node = nodes[rng_.Below(nodes.size())];
    --room_[pod->second.node];
    Published(name);
    SimulatedJob& job = jobs_.at(pod->second.job);
    for (int i = 0; i < job.units; ++i) {
      const auto other = pods_.find(job.Pod(i));
      if (other == pods_.end() || other->second.node.empty()) return;
    }
    if (job.state != SimulatedJob::State::kPlanned) return;
    job.state = SimulatedJob::State::kRuns;
    Later(job.run_ticks, [this, id = job.name] { Finish(id); });
    if (Some(3) == 0) Later(Some(job.run_ticks), [this, name] { Remove(name); });  // it crashes
  }
  void Remove(const std::string& name) {
    const auto pod = pods_.find(name);
    if (pod == pods_.end()) return;
    if (!pod->second.node.empty()) ++room_[pod->second.node];
    const std::string job = pod->second.job;
    pods_.erase(pod);
    Published(name);
    OperatorAfter(1 + Some(3), [this, job] { Reconcile(job); });
  }
  void Finish(const std::string& name) {
    SimulatedJob& job = jobs_.at(name);
    job.state = SimulatedJob::State::kFinished;
    OperatorAfter(Some(2), [this, name] {
      view_->Release(name);
      ReportFreed();
    });
    for (int i = 0; i < job.units; ++i) {
      const auto pod = pods_.find(job.Pod(i));
      if (pod == pods_.end()) continue;
      pod->second.terminating = true;
      Published(pod->first);
      After(1 + Some(5), [this, id = pod->first] { Remove(id); });
    }
  }

  // --- What must hold.

  void CheckLimits() {
    std::map<std::string, std::set<std::string>> units;  // by pool: pods that exist or are planned
    for (const auto& [name, pod] : pods_) units[pod.pool].insert(name);
    for (const auto& [name, job] : jobs_) {
      if (job.state != SimulatedJob::State::kPlanned && job.state != SimulatedJob::State::kRuns) continue;
      for (int i = 0; i < job.units; ++i) units[job.pool].insert(job.Pod(i));
    }
    for (const auto& [pool, pods] : units) {
      ASSERT_LE(static_cast<int>(pods.size()), pools_.at(pool)->limit) << pool << " at tick " << tick_;
    }
  }
  void CheckThatNobodyWaitsInVain() {
    std::map<std::string, int64_t> free;
    for (const auto& [name, pool] : pools_) {
      int64_t used = 0, left = pool->scaling == PoolScaling::kAutoscaled ? pool->limit : 0;
      for (const auto& [pod, facts] : pods_) used += facts.pool == name ? 1 : 0;
      if (pool->scaling == PoolScaling::kNodes) {
        for (const auto& [node, room] : room_) left += node.starts_with(name + "-") ? room : 0;
      }
      free[name] = std::min<int64_t>(pool->limit - used, left);
    }
    for (const auto& [name, job] : jobs_) {
      if (job.state != SimulatedJob::State::kWaiting) continue;
      ++waiting_seen_;
      ASSERT_GT(job.units, free[job.pool]) << name << " waits for units of " << job.pool << " at tick " << tick_;
    }
  }

  base::Rng rng_;
  base::FakeClock clock_;
  std::priority_queue<Event> events_;
  int tick_ = 0;
  int64_t order_ = 0;
  std::map<std::string, std::shared_ptr<const ResourcePool>> pools_;
  std::map<std::string, std::shared_ptr<const PodDemand>> demands_;  // of a unit, by pool
  std::map<std::string, Json> nodes_;
  std::map<std::string, int64_t> room_;  // real, by node
  std::map<std::string, SimulatedJob> jobs_;
  std::map<std::string, SimulatedPod> pods_;
  std::map<std::string, bool> planning_;  // jobs that are being planned; true: enqueued meanwhile
  std::unique_ptr<CapacityView> view_;
  std::unique_ptr<WaitingLine> line_;
  int64_t on_the_way_ = 0;
  int waiting_seen_ = 0, crashes_ = 0, waits_ = 0;
};

TEST(UnitSimulationTest, UnitsAreGivenOnceAndNobodyWaitsInVain) {
  int waiting_seen = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.Run();
    if (HasFailure()) return;
    EXPECT_EQ(simulation.crashes(), kArrivals / 10);
    EXPECT_GT(simulation.waits(), 100);  // else units were not scarce
    waiting_seen += simulation.waiting_seen();
  }
  EXPECT_GT(waiting_seen, 200);
}

}  // namespace
}  // namespace medley::ops
