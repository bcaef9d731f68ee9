#include "cli/run/sweep_command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <optional>

#include "cli/run/examples.h"
#include "cli/run/hopeless.h"
#include "cli/run/kept_profiles.h"
#include "cli/run/local_cluster.h"
#include "cli/run/local_nodes.h"
#include "cli/run/manifest_check.h"
#include "cli/run/manifests.h"
#include "cli/run/model_folder.h"
#include "cli/run/prepare_folder.h"
#include "cli/run/run_folder.h"
#include "cli/run/run_lock.h"
#include "cli/run/sweep_grid.h"
#include "cli/run/sweep_result.h"
#include "cli/run/worker_devices.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

constexpr int kSweepInterrupted = 130;
constexpr base::nanoseconds kSweepPoll = base::milliseconds(300);

// As in run_command.cc: the second signal ends the process, and the kernel then ends what it has started.
std::atomic<bool> sweep_interrupted{false};
void OnSweepSignal(int) {
  if (sweep_interrupted.exchange(true)) _exit(kSweepInterrupted);
}

int FailSweep(const absl::Status& status, int code) {
  std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
  return code;
}

// Progress is for people, so it does not mix with JSON.
void SaySweep(const SweepOptions& options, const std::string& line) {
  std::FILE* to = options.json ? stderr : stdout;
  std::fprintf(to, "%s\n", line.c_str());
  std::fflush(to);
}

// Trains the trials, as many at a time as fit. Not thread-safe: one owner.
class Trials {
 public:
  Trials(base::Clock& clock, LocalCluster& cluster, KeptProfiles& profiles, const SweepOptions& options,
         std::vector<Trial> trials)
      : clock_(clock), cluster_(cluster), profiles_(profiles), options_(options), begin_(clock.Steady()) {
    for (Trial& trial : trials) {
      states_.push_back({});
      results_.push_back({std::move(trial)});
    }
  }

  // Until all trials are over or the user interrupts. Errors: the cluster does not work any more.
  absl::Status Run() {
    while (!sweep_interrupted) {
      MEDLEY_ASSIGN_OR_RETURN(const kube::ObjectList pools, cluster_.client().List(ops::ResourcePools(), {}));
      for (size_t i = 0; i < results_.size(); ++i) {
        if (results_[i].status == TrialResult::Status::kRunning) MEDLEY_RETURN_IF_ERROR(Look(i, pools.items));
      }
      while (Count(TrialResult::Status::kRunning) < AtOnce() && Count(TrialResult::Status::kWaiting) > 0) StartNext();
      if (Count(TrialResult::Status::kRunning) + Count(TrialResult::Status::kWaiting) == 0) break;
      if (const auto ended = cluster_.EndedProgram()) return base::Unavailable("{}", *ended);
      clock_.SleepFor(kSweepPoll, std::stop_token());
    }
    for (TrialResult& result : results_) {
      if (result.status == TrialResult::Status::kRunning) result.status = TrialResult::Status::kStopped;
    }
    return absl::OkStatus();
  }

  const std::vector<TrialResult>& results() const { return results_; }
  const std::string& metric() const { return metric_; }

 private:
  struct State {
    base::SteadyTime created{};
    HopelessWatch hopeless;
  };

  int Count(TrialResult::Status status) const {
    return static_cast<int>(std::ranges::count(results_, status, &TrialResult::status));
  }

  // How many fit is known when the first one has a plan: the others need about as much.
  int AtOnce() const {
    if (options_.at_once > 0) return options_.at_once;
    return std::max(1, fit_);
  }

  void StartNext() {
    const auto next = std::ranges::find(results_, TrialResult::Status::kWaiting, &TrialResult::status);
    State& state = states_[static_cast<size_t>(next - results_.begin())];
    state.created = clock_.Steady();
    const auto created = cluster_.client().Create(ops::TrainingJobs(), next->trial.job);
    if (created.ok()) {
      next->status = TrialResult::Status::kRunning;
      SaySweep(options_,
               fmt::format("{:6.1f} s  {} begins", base::ToSeconds(clock_.Steady() - begin_), next->trial.name));
      return;
    }
    Fail(*next, base::Message(WithExample(created.status())));
  }

  void Fail(TrialResult& result, const std::string& why) {
    result.status = TrialResult::Status::kDidNotComplete;
    result.message = why;
    SaySweep(options_, fmt::format("{:6.1f} s  {} failed: {}", base::ToSeconds(clock_.Steady() - begin_),
                                   result.trial.name, why));
  }

  absl::Status Look(size_t index, const std::vector<kube::Object>& pools) {
    TrialResult& result = results_[index];
    const auto job = cluster_.client().Get(ops::TrainingJobs(), result.trial.job.key());
    if (!job.ok()) return base::Annotate(job.status(), "reading trial " + result.trial.name);
    const Snapshot view = TakeSnapshot(*job, pools);
    result.seconds = base::ToSeconds(clock_.Steady() - states_[index].created);
    if (metric_.empty()) metric_ = SweepMetric(options_.metric, result.trial.job, view);
    if (view.plan) NotePlan(view);
    TakeResult(view, metric_, result);
    if (result.status == TrialResult::Status::kComplete) {
      SaySweep(options_,
               fmt::format("{:6.1f} s  {} is complete{}", base::ToSeconds(clock_.Steady() - begin_), result.trial.name,
                           result.value ? fmt::format(": {} {:.4f}", metric_, *result.value) : ""));
      return absl::OkStatus();
    }
    if (result.status == TrialResult::Status::kDidNotComplete) {
      Fail(result, result.message);
      return absl::OkStatus();
    }
    // Beside others a trial may only have to wait for their units.
    const bool alone = Count(TrialResult::Status::kRunning) == 1;
    const std::string why = alone ? states_[index].hopeless.Look(view, result.seconds) : "";
    if (why.empty()) return absl::OkStatus();
    Fail(result, why);
    (void)cluster_.client().Delete(ops::TrainingJobs(), result.trial.job.key(), {});
    return absl::OkStatus();
  }

  void NotePlan(const Snapshot& view) {
    if (fit_ > 0) return;
    profiles_.Keep(cluster_.client());
    std::map<std::string, int> needs;
    for (const ops::PlanStatus::Stage& stage : view.plan->stages) needs[stage.pool] += stage.units;
    if (view.plan->servers > 0) needs[view.plan->server_pool] += view.plan->servers;
    int fit = static_cast<int>(results_.size());
    for (const PoolView& pool : view.pools) {
      const auto need = needs.find(pool.name);
      if (need != needs.end() && need->second > 0) fit = std::min(fit, pool.limit / need->second);
    }
    fit_ = std::clamp(fit, 1, std::max(1, localcluster::ThisMachine().cpus));
  }

  base::Clock& clock_;
  LocalCluster& cluster_;
  KeptProfiles& profiles_;
  const SweepOptions& options_;
  const base::SteadyTime begin_;
  std::vector<TrialResult> results_;
  std::vector<State> states_;
  std::string metric_;
  int fit_ = 0;  // trials; 0: not known yet
};

// Copies the model of the best trial. Returns false after saying why it is not where the user wants it.
bool GiveBest(LocalCluster& cluster, const Trial& trial, const SweepOptions& options) {
  absl::Status taken;
  const auto job = cluster.client().Get(ops::TrainingJobs(), trial.job.key());
  taken = job.status();
  if (job.ok()) {
    taken = TakeModelOf(*job, cluster.claims(), options.model);
  }
  if (!taken.ok()) {
    FailSweep(base::Annotate(taken, "taking the model of " + trial.name), 1);
    return false;
  }
  SaySweep(options, "the model of " + trial.name + " is in " + options.model.string());
  return true;
}

int SweepIn(base::Clock& clock, const SweepOptions& options, Manifests& manifests, std::vector<Trial> trials,
            const std::vector<std::string>& names, const std::filesystem::path& folder) {
  const auto programs =
      options.programs.empty() ? std::filesystem::read_symlink("/proc/self/exe").parent_path() : options.programs;
  const localcluster::Machine machine = localcluster::ThisMachine();
  absl::StatusOr<bool> on_gpus = false;
  if (!machine.gpus.empty() && AnyForGpus(manifests.pools)) {
    on_gpus = WorkerUsesGpus(clock, programs / "medley-worker", folder);
    if (!on_gpus.ok()) return FailSweep(on_gpus.status(), 1);
  }
  const int most = options.at_once > 0 ? options.at_once : std::max(1, machine.cpus);
  const auto local = NodesFor(manifests.pools, machine, *on_gpus, most);
  if (!local.ok()) return FailSweep(base::Annotate(local.status(), options.file.string()), 2);
  if (*on_gpus) SimulateOnCpu(manifests.pools);
  manifests.job = trials.front().job;  // the trials share its profiles where they do not change the model
  KeptProfiles profiles(clock, manifests, programs / "medley-worker", false);
  LocalCluster cluster(clock, {.programs = programs,
                               .run_folder = folder,
                               .nodes = local->nodes,
                               .gpus = *on_gpus ? machine.gpus : std::vector<std::string>(),
                               .restored = profiles.TakeObjects()});
  if (const absl::Status status = cluster.Start(); !status.ok()) return FailSweep(status, 1);
  for (const auto* lines : {&local->remarks, &local->limits, &profiles.remarks()}) {
    for (const std::string& line : *lines) SaySweep(options, line);
  }
  for (const kube::Object& pool : manifests.pools) {
    const auto created = cluster.client().Create(ops::ResourcePools(), pool);
    if (!created.ok()) return FailSweep(base::Annotate(created.status(), "applying pool " + pool.key().name), 2);
  }
  Trials run(clock, cluster, profiles, options, std::move(trials));
  const absl::Status ran = run.Run();
  const auto best = BestTrial(run.results(), run.metric());
  if (options.json) {
    std::printf("%s\n", SweepJson(run.results(), run.metric()).dump(2).c_str());
  } else {
    std::printf("\n%s", SweepTable(run.results(), names, run.metric()).c_str());
    if (best) std::printf("\nbest: %s\n", run.results()[*best].trial.name.c_str());
  }
  std::fflush(stdout);
  bool given = true;
  if (best) given = GiveBest(cluster, run.results()[*best].trial, options);
  cluster.Stop();
  if (!ran.ok()) return FailSweep(ran, 1);
  if (sweep_interrupted) return kSweepInterrupted;
  const bool any = std::ranges::any_of(
      run.results(), [](const TrialResult& result) { return result.status == TrialResult::Status::kComplete; });
  return any && given ? 0 : 1;
}

}  // namespace

int Sweep(const SweepOptions& given) {
  SweepOptions options = given;
  signal(SIGINT, OnSweepSignal);
  signal(SIGTERM, OnSweepSignal);
  signal(SIGPIPE, SIG_IGN);
  base::log::Configure("medley", base::log::Level::kWarn);
  std::vector<SweepAxis> axes;
  for (const std::string& text : options.set) {
    auto axis = ParseAxis(text);
    if (!axis.ok()) return FailSweep(axis.status(), 2);
    axes.push_back(*std::move(axis));
  }
  auto manifests = LoadManifests(options.file);
  if (!manifests.ok()) return FailSweep(manifests.status(), 2);
  if (!manifests->others.empty()) {
    return FailSweep(
        base::InvalidArgument("{}: only ResourcePools and one TrainingJob are accepted", options.file.string()), 2);
  }
  EnsureCheckpointVolume(manifests->job);
  auto trials = MakeTrials(manifests->job, axes);
  if (!trials.ok()) return FailSweep(trials.status(), 2);
  for (const Trial& trial : *trials) {
    if (const absl::Status known = CheckFields(trial.job); !known.ok()) return FailSweep(known, 2);
  }
  if (options.model.empty()) options.model = "./" + manifests->job.key().name + "-model";
  if (const absl::Status status = CheckModelFolder(options.model); !status.ok()) return FailSweep(status, 2);
  std::filesystem::path folder = options.folder;
  if (folder.empty()) {
    auto made = base::MakeTempDir("medley-sweep");
    if (!made.ok()) return FailSweep(made.status(), 1);
    folder = *made;
  } else if (const absl::Status made = MakeRunFolder(folder); !made.ok()) {
    return FailSweep(made, 1);
  }
  folder = std::filesystem::absolute(folder);
  const auto lock = RunLock::Take(folder);
  if (!lock.ok()) return FailSweep(lock.status(), 2);
  base::SystemClock clock;
  const int code = SweepIn(clock, options, *manifests, *std::move(trials), ShortNames(axes), folder);
  if (options.folder.empty() && code != 1) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  } else if (options.folder.empty()) {
    std::fprintf(stderr, "medley: logs are in %s\n", folder.c_str());
  }
  return code;
}

}  // namespace medley::cli
