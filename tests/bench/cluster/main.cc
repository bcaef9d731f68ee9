// cluster_bench: measures the load of the operator on a real API server, and its reaction times. Prints one line of
// JSON to stdout.
//
// run.py starts a cluster with Medley's CRDs, medley-operator and medley-scheduler. This program acts as all kubelets
// and all coordinators, and it creates the nodes and jobs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "kube/cache/informer.h"
#include "kube/client/http_client.h"
#include "operator/api/resources.h"
#include "operator/app/record_secret.h"
#include "tests/bench/cluster/bench_jobs.h"
#include "tests/bench/cluster/coordinators.h"
#include "tests/bench/cluster/kubelet.h"
#include "tests/bench/cluster/slow_planner.h"
#include "tests/bench/cluster/usage.h"

namespace medley::bench {
namespace {

using kube::Json;

constexpr int kClients = 8;  // concurrent writers of the benchmark
constexpr base::seconds kPatience{600};
constexpr base::seconds kSlowPlan{30};
constexpr double kExpensive = 10.0, kCheap = 0.001;  // USD per hour of a unit of "gpu"

struct Flags {
  std::string kubeconfig;
  std::string prices;
  std::vector<std::string> pids;  // NAME=PID
  std::string planner;            // address of the scheduling service
  int planner_port = 0;           // on which the operator reaches it, through SlowPlanner
  int worker_port = 7070;
  std::string pod_ip = "127.0.0.1";
  int jobs = 1000;
  int nodes = 20;
  int pods_at_rest = 10'000;
  int rest_seconds = 60;
  int following = 10;  // number of jobs that are replanned on price changes
  int rounds = 50;
  int slow_plans = 100;  // number of jobs that ask for plans that take kSlowPlan each
};

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return -1;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

Json Summary(const std::vector<double>& seconds) {
  return {{"count", seconds.size()},
          {"p50", Percentile(seconds, 0.5)},
          {"p99", Percentile(seconds, 0.99)},
          {"max", Percentile(seconds, 1)}};
}

class Bench {
 public:
  Bench(const Flags& flags, kube::ClientConfig config)
      : flags_(flags),
        ns_(config.ns),
        client_(config, clock_, 1),
        pods_(client_, clock_, {.reflector = {.resource = kube::resources::Pods()}}),
        jobs_(client_, clock_, {.reflector = {.resource = ops::TrainingJobs()}}) {
    for (const std::string& pid : flags.pids)
      pids_[pid.substr(0, pid.find('='))] = std::stoi(pid.substr(pid.find('=') + 1));
  }
  ~Bench() {
    kubelet_.reset();
    pods_.Stop();
    jobs_.Stop();
    client_.Shutdown();
  }

  absl::StatusOr<Json> Run() {
    MEDLEY_RETURN_IF_ERROR(Begin());
    Json out;
    MEDLEY_ASSIGN_OR_RETURN(out["create"], Create());
    MEDLEY_ASSIGN_OR_RETURN(out["rest"], Rest());
    MEDLEY_ASSIGN_OR_RETURN(out["killed"], Killed());
    MEDLEY_ASSIGN_OR_RETURN(out["prices"], Prices());
    MEDLEY_ASSIGN_OR_RETURN(out["killedWhilePlansAreSlow"], KilledWhilePlansAreSlow());
    out["kubeletFailures"] = kubelet_->failures();
    return out;
  }

 private:
  void Say(const std::string& text) { std::fprintf(stderr, "cluster_bench: %s\n", text.c_str()); }

  absl::Status Wait(const std::string& what, const std::function<bool()>& holds) {
    base::MutexLock lock(mutex_);
    const bool held = changed_.WaitFor(mutex_, {}, kPatience, holds);
    return held ? absl::OkStatus() : base::DeadlineExceeded("waited {} s for: {}", kPatience.count(), what);
  }

  // Runs `work` for each index in kClients threads. Returns the first error.
  absl::Status ForEach(int count, const std::function<absl::Status(int)>& work) {
    std::atomic<int> next = 0;
    base::Mutex mutex;
    absl::Status first;
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kClients; ++i) {
        threads.emplace_back([&] {
          for (int at = next++; at < count; at = next++) {
            absl::Status status = work(at);
            base::MutexLock lock(mutex);
            if (first.ok()) first = std::move(status);
          }
        });
      }
    }
    return first;
  }

  absl::Status Create(const kube::Resource& resource, const kube::Object& object) {
    return client_.Create(resource, object).status();
  }

  absl::Status CreateNode(const kube::Object& node) {
    MEDLEY_RETURN_IF_ERROR(Create(kube::resources::Nodes(), node));
    return client_
        .Patch(kube::resources::Nodes(), node.key(), kube::PatchType::kStrategicMerge, BenchNodeStatus(), {}, "status")
        .status();
  }

  absl::Status Begin() {
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags_.prices, PriceFile(kExpensive)));
    MEDLEY_ASSIGN_OR_RETURN(planner_, SlowPlanner::Start(flags_.planner_port, flags_.planner, clock_));
    MEDLEY_ASSIGN_OR_RETURN(
        coordinators_, Coordinators::Start(flags_.pod_ip, flags_.worker_port, clock_,
                                           [this](const std::string& member, int64_t generation, base::SteadyTime at) {
                                             base::MutexLock lock(mutex_);
                                             plans_[JobIndex(member)] = {generation, at};
                                             changed_.NotifyAll();
                                           }));
    MEDLEY_RETURN_IF_ERROR(ForEach(flags_.nodes, [this](int i) { return CreateNode(BenchNode(i)); }));
    for (const char* pool : {"cpu", "gpu"}) {
      MEDLEY_RETURN_IF_ERROR(Create(ops::ResourcePools(), BenchPool(pool)));
    }
    // Profiles count only with the operator's signature.
    MEDLEY_ASSIGN_OR_RETURN(const ops::RecordKeys keys,
                            ops::EnsureRecordKeys(client_, {ns_, "medley-operator-records"}, clock_, {}));
    for (int i = 0; i < kNamespaces; ++i) {
      const std::string ns = NamespaceName(i);
      const kube::Resource namespaces = kube::resources::Namespaces();
      MEDLEY_RETURN_IF_ERROR(Create(namespaces, kube::Object(namespaces, {"", ns})));
      for (const char* pool : {"cpu", "gpu"}) {
        kube::Object profile = BenchProfile(ns, pool);
        keys.Sign(ops::RecordKind::kProfile, "", profile);
        MEDLEY_RETURN_IF_ERROR(Create(kube::resources::ConfigMaps(), profile));
      }
    }
    kubelet_ = std::make_unique<Kubelet>(client_, pods_, flags_.pod_ip, kClients);
    MEDLEY_RETURN_IF_ERROR(pods_
                               .AddHandler({.on_add = [this](const kube::ObjectPtr& pod, bool) { Saw(*pod); },
                                            .on_update = [this](const auto&, const kube::ObjectPtr& pod) { Saw(*pod); },
                                            .on_delete = nullptr})
                               .status());
    MEDLEY_RETURN_IF_ERROR(
        jobs_
            .AddHandler({.on_add = [this](const kube::ObjectPtr& job, bool) { SawJob(*job); },
                         .on_update = [this](const auto&, const kube::ObjectPtr& job) { SawJob(*job); },
                         .on_delete = nullptr})
            .status());
    pods_.Start();
    jobs_.Start();
    MEDLEY_RETURN_IF_ERROR(pods_.WaitForSync(base::seconds(30), {}));
    return jobs_.WaitForSync(base::seconds(30), {});
  }

  void Saw(const kube::Object& pod) {
    base::MutexLock lock(mutex_);
    const std::string name = pod.key().name;
    if (!pod.label(ops::kJobNameLabel).empty() && created_.insert(pod.uid()).second) {
      created_at_[name] = {pod.uid(), clock_.Steady()};
      names_.insert(name);
    }
    changed_.NotifyAll();
  }

  void SawJob(const kube::Object& job) {
    base::MutexLock lock(mutex_);
    phases_[job.key().name] = job.String("/status/phase");
    changed_.NotifyAll();
  }

  int InPhase(const std::string& phase) const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return static_cast<int>(
        std::count_if(phases_.begin(), phases_.end(), [&](const auto& p) { return p.second == phase; }));
  }

  absl::StatusOr<Json> Create() {
    Say("creating jobs");
    const base::SteadyTime begin = clock_.Steady();
    MEDLEY_RETURN_IF_ERROR(
        ForEach(flags_.jobs, [this](int i) { return Create(ops::TrainingJobs(), BenchJob(i, i < flags_.following)); }));
    MEDLEY_RETURN_IF_ERROR(Wait("every job Suspended", [this] { return InPhase("Suspended") == flags_.jobs; }));
    const base::SteadyTime suspended = clock_.Steady();
    Say("resuming them");
    const UsageSince usage(pids_);
    MEDLEY_RETURN_IF_ERROR(ForEach(flags_.jobs, [this](int i) {
      return client_
          .Patch(ops::TrainingJobs(), JobKey(i), kube::PatchType::kMerge,
                 {{"spec", {{"runPolicy", {{"suspend", false}}}}}})
          .status();
    }));
    const base::SteadyTime resumed = clock_.Steady();
    const size_t wanted = static_cast<size_t>(flags_.jobs) * kPodsPerJob;
    MEDLEY_RETURN_IF_ERROR(
        Wait("every pod created", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return names_.size() >= wanted; }));
    const base::SteadyTime created = clock_.Steady();
    const auto cpu = usage.cpu_seconds();
    MEDLEY_RETURN_IF_ERROR(Wait("every job Running", [this] { return InPhase("Running") == flags_.jobs; }));
    const base::SteadyTime running = clock_.Steady();
    base::MutexLock lock(mutex_);
    return Json{{"jobs", flags_.jobs},
                {"pods", names_.size()},
                {"secondsToSuspended", base::ToSeconds(suspended - begin)},
                {"secondsToResumeAll", base::ToSeconds(resumed - suspended)},
                {"secondsToPods", base::ToSeconds(created - suspended)},
                {"secondsToRunning", base::ToSeconds(running - suspended)},
                {"cpuSeconds", cpu}};
  }

  absl::StatusOr<Json> Rest() {
    Say("filling up to the pods at rest");
    const int others = std::max(0, flags_.pods_at_rest - flags_.jobs * kPodsPerJob);
    MEDLEY_RETURN_IF_ERROR(
        ForEach(others, [this](int i) { return Create(kube::resources::Pods(), OtherPod(i, flags_.nodes)); }));
    MEDLEY_RETURN_IF_ERROR(Wait("every other pod runs", [this] {
      for (const kube::ObjectPtr& pod : pods_.store().List())
        if (pod->String("/status/phase") != "Running") return false;
      return true;
    }));
    clock_.SleepFor(base::seconds(15), {});  // until all watchers have received these statuses
    const UsageSince usage(pids_);
    clock_.SleepFor(base::seconds(flags_.rest_seconds), {});
    Json share = Json::object(), rss = Json::object();
    for (const auto& [name, seconds] : usage.cpu_seconds()) share[name] = seconds / flags_.rest_seconds;
    for (const auto& [name, pid] : pids_) rss[name] = UsageOf(pid).value_or(Usage()).rss_mib;
    return Json{{"pods", pods_.store().Size()}, {"seconds", flags_.rest_seconds}, {"cores", share}, {"rssMib", rss}};
  }

  // Lets a trainer fail and measures the time until its replacement is created.
  absl::StatusOr<Json> Killed() {
    Say("killing trainers");
    MEDLEY_ASSIGN_OR_RETURN(const std::vector<double> seconds, KillTrainers(flags_.rounds));
    return Summary(seconds);
  }

  // The same while many jobs, the killed ones among them, ask for plans that take long.
  absl::StatusOr<Json> KilledWhilePlansAreSlow() {
    Say("killing trainers while plans are slow");
    planner_->SetDelay(kSlowPlan);
    const int asking = std::min(flags_.slow_plans, flags_.jobs - flags_.following);
    MEDLEY_RETURN_IF_ERROR(ForEach(asking, [this](int i) {
      return client_
          .Patch(ops::TrainingJobs(), JobKey(flags_.following + i), kube::PatchType::kMerge,
                 {{"spec", {{"objective", {{"minThroughput", 44000}}}}}})
          .status();
    }));
    const base::SteadyTime end = clock_.Steady() + kSlowPlan;
    while (planner_->held() < asking && clock_.Steady() < end) clock_.SleepFor(base::milliseconds(20), {});
    const int before = planner_->held();
    std::vector<double> seconds;
    // A pod that fails again soon is created again after a delay, so every job has only one of its trainers killed.
    for (int i = 0; i < asking && std::ssize(seconds) < flags_.rounds && clock_.Steady() < end; ++i) {
      if (failed_.contains(flags_.following + i)) continue;
      MEDLEY_ASSIGN_OR_RETURN(const double one, KillTrainer(flags_.following + i));
      seconds.push_back(one);
    }
    Json out = Summary(seconds);
    out["slowPlans"] = {{"seconds", kSlowPlan.count()}, {"before", before}, {"after", planner_->held()}};
    planner_->SetDelay(base::nanoseconds(0));
    return out;
  }

  absl::StatusOr<std::vector<double>> KillTrainers(int rounds) {
    std::vector<double> seconds;
    for (int round = 0; round < rounds; ++round) {
      const int job = flags_.following + round * 7 % std::max(1, flags_.jobs - flags_.following);
      MEDLEY_ASSIGN_OR_RETURN(const double one, KillTrainer(job));
      seconds.push_back(one);
    }
    return seconds;
  }

  // Returns the seconds until the replacement is created.
  absl::StatusOr<double> KillTrainer(int job) {
    failed_.insert(job);
    std::string victim, uid;
    for (const kube::ObjectPtr& pod : pods_.store().List(NamespaceName(job))) {
      if (JobIndex(pod->key().name) != job || pod->label(ops::kRoleLabel) != "trainer" || pod->deleting()) continue;
      victim = pod->key().name;
      uid = pod->uid();
      break;
    }
    if (victim.empty()) return base::NotFound("job {} has no trainer", JobName(job));
    const Json failed = {{"status",
                          {{"phase", "Failed"},
                           {"containerStatuses",
                            Json::array({{{"name", ops::kWorkerContainer},
                                          {"image", "i"},
                                          {"imageID", ""},
                                          {"ready", false},
                                          {"restartCount", 0},
                                          {"state", {{"terminated", {{"exitCode", 137}, {"reason", "Error"}}}}}}})}}}};
    const base::SteadyTime begin = clock_.Steady();
    MEDLEY_RETURN_IF_ERROR(client_
                               .Patch(kube::resources::Pods(), {NamespaceName(job), victim},
                                      kube::PatchType::kStrategicMerge, failed, {}, "status")
                               .status());
    MEDLEY_RETURN_IF_ERROR(Wait("the replacement of " + victim,
                                [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return created_at_[victim].first != uid; }));
    base::MutexLock lock(mutex_);
    return base::ToSeconds(created_at_[victim].second - begin);
  }

  // Lowers and raises the price of "gpu", and measures the time until each job that follows prices gets its new plan.
  absl::StatusOr<Json> Prices() {
    Say("moving the price");
    std::vector<double> seconds;
    for (int round = 0; round < flags_.rounds / std::max(1, flags_.following) + 4; ++round) {
      std::map<int, int64_t> before;
      {
        base::MutexLock lock(mutex_);
        for (int i = 0; i < flags_.following; ++i) before[i] = plans_[i].first;
      }
      const base::SteadyTime begin = clock_.Steady();
      MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags_.prices, PriceFile(round % 2 == 0 ? kCheap : kExpensive)));
      MEDLEY_RETURN_IF_ERROR(Wait("the new plans", [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
        return std::all_of(before.begin(), before.end(),
                           [&](const auto& b) { return plans_[b.first].first > b.second; });
      }));
      base::MutexLock lock(mutex_);
      for (int i = 0; i < flags_.following; ++i) seconds.push_back(base::ToSeconds(plans_[i].second - begin));
    }
    return Summary(seconds);
  }

  const Flags flags_;
  const std::string ns_;  // the operator's, as it takes it from the same file
  base::SystemClock clock_;
  std::map<std::string, int> pids_;
  kube::HttpClient client_;
  kube::Informer pods_, jobs_;
  std::unique_ptr<Kubelet> kubelet_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::set<std::string> created_ ABSL_GUARDED_BY(mutex_);  // UIDs
  std::set<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<std::string, base::SteadyTime>> created_at_ ABSL_GUARDED_BY(mutex_);  // name -> UID
  std::map<std::string, std::string> phases_ ABSL_GUARDED_BY(mutex_);                                   // of jobs
  std::map<int, std::pair<int64_t, base::SteadyTime>> plans_ ABSL_GUARDED_BY(mutex_);  // job -> generation, when
  std::unique_ptr<Coordinators> coordinators_;
  std::unique_ptr<SlowPlanner> planner_;
  std::set<int> failed_;  // jobs of which a trainer was killed
};

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("What the operator does to a real API server, and how soon it answers");
  app.add_option("--kubeconfig", flags.kubeconfig, "of the cluster")->required();
  app.add_option("--prices", flags.prices, "file that the scheduling service watches")->required();
  app.add_option("--pid", flags.pids, "NAME=PID of a process to account for");
  app.add_option("--planner", flags.planner, "address of the scheduling service")->required();
  app.add_option("--planner-port", flags.planner_port, "on which the operator reaches it through this program")
      ->required();
  app.add_option("--slow-plans", flags.slow_plans, "jobs that ask for slow plans at once")->capture_default_str();
  app.add_option("--worker-port", flags.worker_port, "of the coordinators")->capture_default_str();
  app.add_option("--pod-ip", flags.pod_ip, "of every pod, an address of this machine")->capture_default_str();
  app.add_option("--jobs", flags.jobs)->capture_default_str();
  app.add_option("--nodes", flags.nodes)->capture_default_str();
  app.add_option("--pods-at-rest", flags.pods_at_rest, "with pods of others")->capture_default_str();
  app.add_option("--rest-seconds", flags.rest_seconds)->capture_default_str();
  app.add_option("--following", flags.following, "jobs that follow prices")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "of each reaction")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  auto config = kube::LoadKubeconfig(flags.kubeconfig);
  if (!config.ok()) {
    std::fprintf(stderr, "cluster_bench: %s\n", base::Message(config.status()).c_str());
    return 1;
  }
  const auto found = Bench(flags, *std::move(config)).Run();
  if (!found.ok()) {
    std::fprintf(stderr, "cluster_bench: %s\n", base::Message(found.status()).c_str());
    return 1;
  }
  std::printf("%s\n", found->dump().c_str());
  return 0;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) { return medley::bench::Main(argc, argv); }
