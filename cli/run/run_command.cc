#include "cli/run/run_command.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "cli/dashboard/dashboard.h"
#include "cli/exit_status.h"
#include "cli/run/examples.h"
#include "cli/run/failure.h"
#include "cli/run/goal.h"
#include "cli/run/hopeless.h"
#include "cli/run/json_lines.h"
#include "cli/run/kept_profiles.h"
#include "cli/run/local_cluster.h"
#include "cli/run/local_nodes.h"
#include "cli/run/manifests.h"
#include "cli/run/model_folder.h"
#include "cli/run/observer.h"
#include "cli/run/prepare_folder.h"
#include "cli/run/run_keeper.h"
#include "cli/run/saved_run.h"
#include "cli/run/scenario.h"
#include "cli/run/stop_run.h"
#include "cli/run/summary.h"
#include "cli/run/view.h"
#include "cli/run/worker_devices.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "kube/errors.h"
#include "localcluster/node/emulated_network.h"

namespace medley::cli {
namespace {

constexpr int kInterrupted = 130;  // exit statuses
constexpr int kTimedOut = 124;     // as timeout(1)

// Set by the handler of SIGINT and SIGTERM; a global, because a signal handler gets no other data.
std::atomic<bool> interrupted{false};

// The second one does not wait for the checkpoint: the kernel kills all processes that this one has started.
void OnSignal(int) {
  if (interrupted.exchange(true)) _exit(kInterrupted);
}

int TerminalWidth() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 100;
}

class Output {
 public:
  Output(bool live, bool json) : live_(live && !json), json_(json) {}
  void Say(const std::string& line) {
    messages_.push_back(line);
    if (!live_) Print(json_ ? MessageJson(line) : line + "\n");
  }
  void Address(const std::string& name, const std::string& address) {
    if (json_) return Print(AddressJson(name, address));
    Say(fmt::format("{:<26} {}", name, address));
  }
  void Progress(const Snapshot& view, double seconds) {
    if (json_) return Print(ProgressJson(view, seconds));
    Say(ProgressLine(view));
  }
  // What the run ends with, for people only.
  void Line(const std::string& line) {
    if (!json_) Print(line + "\n");
  }
  void Show(const Snapshot& view, double seconds) {
    if (live_) Print(screen_.Replace(Frame(view, messages_, seconds, TerminalWidth())));
  }
  bool live() const { return live_; }
  bool json() const { return json_; }

 private:
  void Print(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  const bool live_;
  const bool json_;
  Screen screen_;
  std::vector<std::string> messages_;
};

// `restored`: the job of an earlier run, which continues; null: a new job.
absl::Status ApplyAll(LocalCluster& cluster, const Manifests& manifests, const kube::Object* restored) {
  kube::Client& client = cluster.client();
  const kube::Resource pools{"medley.dev", "v1alpha1", "resourcepools", "ResourcePool", false};
  const kube::Resource jobs{"medley.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};
  for (const kube::Object& pool : manifests.pools) {
    const auto created = client.Create(pools, pool);
    if (!created.ok()) return base::Annotate(WithExample(created.status()), "applying ResourcePool " + pool.key().name);
  }
  for (const kube::Object& other : manifests.others) {
    return base::InvalidArgument(
        "{} {}: medley run accepts only ResourcePools and one TrainingJob; remove this object from the file",
        other.kind(), other.key().ToString());
  }
  const absl::Status created =
      restored != nullptr ? cluster.Restore(*restored) : client.Create(jobs, manifests.job).status();
  return created.ok() ? created
                      : base::Annotate(WithExample(created), "applying TrainingJob " + manifests.job.key().name);
}

// Follows the job until it has finished and carries out the scenario. Fills the record even when it returns an error.
// Errors: DeadlineExceeded and Cancelled when the run is to be stopped.
absl::Status Follow(base::Clock& clock, LocalCluster& cluster, const Manifests& manifests, const Scenario& scenario,
                    const RunOptions& options, RunKeeper& keeper, Output& output, RunRecord& record) {
  Observer observer(clock, cluster, manifests.job.key(), scenario, manifests.scenario.parent_path());
  const base::SteadyTime start = clock.Steady();
  HopelessWatch hopeless;
  double last_progress = 0;
  while (!interrupted) {
    MEDLEY_RETURN_IF_ERROR(observer.Step(record));
    const std::string why = hopeless.Look(record.last, base::ToSeconds(clock.Steady() - start));
    if (!why.empty()) observer.SaidAtTheEnd(why);
    const bool over = record.last.complete || record.last.failed || !why.empty();
    for (const std::string& line : observer.TakeMessages(over)) output.Say(line);
    record.seconds = base::ToSeconds(clock.Steady() - start);
    output.Show(record.last, record.seconds);
    keeper.Tick(record.last, record.seconds);
    if (record.last.complete || record.last.failed) return absl::OkStatus();
    if (!why.empty()) return base::FailedPrecondition("the job cannot run: {}", why);
    if (const auto ended = cluster.EndedProgram()) return base::Unavailable("{}", *ended);
    if (options.timeout_seconds > 0 && record.seconds > options.timeout_seconds) {
      return base::DeadlineExceeded("the job has not finished after {:.0f} s (--timeout); {}", record.seconds,
                                    record.last.problem.empty() ? "it is " + record.last.phase : record.last.problem);
    }
    if (!output.live() && record.last.observed.samples > 0 && record.seconds - last_progress >= 2) {
      output.Progress(record.last, record.seconds);
      last_progress = record.seconds;
    }
    clock.SleepFor(base::milliseconds(200), std::stop_token());
  }
  return base::Cancelled("interrupted");
}

// `out`: standard error, where standard output is for programs.
void KeepUp(base::Clock& clock, LocalCluster& cluster, bool own_network,
            const std::vector<std::pair<std::string, std::string>>& addresses, std::FILE* out) {
  std::fprintf(
      out, "\nthe local cluster runs until you press Ctrl-C:\n\n  export KUBECONFIG=%s\n  kubectl get mtj,mrp,pods\n\n",
      cluster.kubeconfig().c_str());
  for (const auto& [what, address] : addresses) std::fprintf(out, "%-26s %s\n", what.c_str(), address.c_str());
  if (own_network)
    std::fprintf(out, "in a network of its own: begin each line with nsenter --target %d --net\n", getpid());
  std::fflush(out);
  while (!interrupted) {
    if (const auto ended = cluster.EndedProgram()) {
      std::fprintf(stderr, "medley: %s\n", ended->c_str());
      return;
    }
    clock.SleepFor(base::milliseconds(200), std::stop_token());
  }
}

int Fail(const absl::Status& status, int code, RunResult& result) {
  std::fprintf(stderr, "medley: %s\n", base::Message(status).c_str());
  result.failures.push_back(base::Message(status));
  return code;
}

// Copies the model of the complete job, or what its program has saved, out of the run folder, which may be temporary.
// Returns a sentence that says where it is.
absl::StatusOr<std::string> TakeModel(LocalCluster& cluster, const kube::Key& job, const std::filesystem::path& to) {
  const kube::Resource jobs{"medley.dev", "v1alpha1", "trainingjobs", "TrainingJob", true};
  MEDLEY_ASSIGN_OR_RETURN(const kube::Object object, cluster.client().Get(jobs, job));
  if (object.At("/spec/program").is_object()) {
    MEDLEY_ASSIGN_OR_RETURN(const bool copied, TakeSaved(object, cluster.claims(), to));
    return copied ? "what the program has saved is in " + to.string()
                  : "what the program has saved is in the volume of spec.checkpoint";
  }
  MEDLEY_RETURN_IF_ERROR(TakeModelOf(object, cluster.claims(), to));
  return fmt::format("the model is in {} (its README.md says how to use it)", to.string());
}

// Returns false after saying why the model is not where the user wants it.
bool GiveModel(LocalCluster& cluster, const kube::Key& job, const std::filesystem::path& to, Output& output,
               RunResult& result) {
  const absl::StatusOr<std::string> taken = TakeModel(cluster, job, to);
  if (!taken.ok()) {
    Fail(base::Annotate(taken.status(), "taking the model from where the job keeps it"), 1, result);
    return false;
  }
  output.Line(*taken);
  result.model = to;
  return true;
}

// Serves the web page of the job. Without it the run goes on.
std::unique_ptr<Dashboard> OpenPage(const LocalCluster& cluster, base::Clock& clock, Output& output) {
  auto connected = Connect({.kubeconfig = {.kubeconfig = cluster.kubeconfig(), .context = "", .ns = ""}}, clock);
  absl::Status status = connected.status();
  if (status.ok()) {
    auto page = std::make_unique<Dashboard>(
        *std::move(connected), clock,
        DashboardOptions{.port = 0, .all_namespaces = true, .price_service = cluster.price_service()});
    status = page->Start();
    if (status.ok()) return page;
  }
  output.Say("no web page: " + base::Message(status));
  return nullptr;
}

// The command that continues this run, from the same folder.
std::string ResumeCommand(const RunOptions& options) {
  std::vector<std::string> words = {"medley", "run", options.file.string(), "--resume"};
  if (!options.folder_is_own) words.insert(words.end(), {"--folder", options.folder.string()});
  if (!options.model_is_default) words.insert(words.end(), {"--export", options.model.string()});
  if (options.plain) words.emplace_back("--plain");
  if (options.json) words.insert(words.end(), {"-o", "json"});
  return ShellCommand(words);
}

// Saves a checkpoint and says how the run continues. `stop`: the exit status of a run that can be continued. Returns
// that of this one.
int Stop(base::Clock& clock, LocalCluster& cluster, const RunOptions& options, RunKeeper& keeper,
         const std::filesystem::path& folder, int stop, Output& output, RunResult& result) {
  const auto volume = CheckpointFolderOf(keeper.run().job, ClaimsOf(folder));
  const StoppedRun stopped =
      StopAndSave(clock, cluster.client(), keeper.run().job.key(), volume.ok() ? *volume : worker::Volume());
  if (const absl::Status kept = keeper.Write(); !kept.ok()) Fail(kept, 1, result);
  if (stopped.complete) return GiveModel(cluster, keeper.run().job.key(), options.model, output, result) ? 0 : 1;
  for (const std::string& line : StopLines(stopped, ResumeCommand(options))) output.Say(line);
  return stop == kTimedOut && !stopped.checkpoint ? 1 : stop;
}

// `folder`: that of the run. `prepared` is moved from.
int RunIn(base::Clock& clock, const RunOptions& options, Manifests& manifests, const Scenario& scenario,
          const std::filesystem::path& folder, const PreparedFolder& prepared, RunResult& result) {
  std::unique_ptr<localcluster::EmulatedNetwork> network;
  if (options.emulate_network) {
    auto made = localcluster::EmulatedNetwork::Create(base::SystemSeed());  // before any thread is started
    if (!made.ok()) return Fail(base::Annotate(made.status(), "--emulate-network"), 1, result);
    network = *std::move(made);
  }
  const auto programs =
      options.programs.empty() ? std::filesystem::read_symlink("/proc/self/exe").parent_path() : options.programs;
  const localcluster::Machine machine = localcluster::ThisMachine();
  absl::StatusOr<bool> on_gpus = false;
  if (!machine.gpus.empty() && AnyForGpus(manifests.pools)) {
    on_gpus = WorkerUsesGpus(clock, programs / "medley-worker", folder);
    if (!on_gpus.ok()) return Fail(on_gpus.status(), 1, result);
  }
  const auto local = NodesFor(manifests.pools, machine, *on_gpus);
  if (!local.ok()) return Fail(base::Annotate(local.status(), options.file.string()), 2, result);
  if (*on_gpus) SimulateOnCpu(manifests.pools);
  Output output(!options.plain && isatty(STDOUT_FILENO) != 0, options.json);
  // Nobody knows which files a program is made of: it is always measured.
  const bool measure = options.measure || manifests.job.At("/spec/program").is_object();
  KeptProfiles profiles(clock, manifests, programs / "medley-worker", measure);
  LocalCluster cluster(clock, {.programs = programs,
                               .run_folder = folder,
                               .port = options.port,
                               .nodes = local->nodes,
                               .gpus = *on_gpus ? machine.gpus : std::vector<std::string>(),
                               .restored = profiles.TakeObjects(),
                               .prices = scenario.prices.empty() ? std::filesystem::path()
                                                                 : manifests.scenario.parent_path() / scenario.prices,
                               .network = network.get()});
  if (const absl::Status status = cluster.Start(); !status.ok()) return Fail(status, 1, result);
  const std::unique_ptr<Dashboard> page = OpenPage(cluster, clock, output);
  output.Say(fmt::format("API server, process node, scheduler and operator are running (KUBECONFIG={})",
                         cluster.kubeconfig().string()));
  std::vector<std::pair<std::string, std::string>> addresses = cluster.Addresses();
  if (page) addresses.insert(addresses.begin(), {"web page of the job", page->url()});
  for (const auto& [what, address] : addresses) output.Address(what, address);
  for (const auto* remarks :
       {&std::as_const(manifests.remarks), &local->remarks, &local->limits, &prepared.remarks, &profiles.remarks()}) {
    for (const std::string& remark : *remarks) output.Say(remark);
  }
  std::optional<kube::Object> restored;
  if (prepared.earlier) {
    restored = ResumedJob(*prepared.earlier, manifests.job, prepared.claimed_term, clock.Now());
  }
  if (const absl::Status status = ApplyAll(cluster, manifests, restored ? &*restored : nullptr); !status.ok()) {
    return Fail(status, 2, result);
  }
  RunKeeper keeper(cluster.client(), profiles, folder,
                   {std::filesystem::absolute(options.file), std::filesystem::absolute(options.model), manifests.job});
  if (const absl::Status kept = keeper.Write(); !kept.ok())
    return Fail(base::Annotate(kept, "keeping the run"), 1, result);
  RunRecord record;
  const absl::Status followed = Follow(clock, cluster, manifests, scenario, options, keeper, output, record);
  result.last = record.last;
  result.seconds = record.seconds;
  if (absl::IsDeadlineExceeded(followed) || (interrupted && !options.keep)) {
    output.Say(fmt::format("{}: saving a checkpoint (Ctrl-C ends at once)", base::Message(followed)));
    const int code =
        Stop(clock, cluster, options, keeper, folder, interrupted ? kInterrupted : kTimedOut, output, result);
    if (page) page->Stop();
    cluster.Stop();
    return code;
  }
  if (const absl::Status kept = keeper.Write(); !kept.ok()) Fail(kept, 1, result);
  const bool planned = !absl::IsFailedPrecondition(followed);
  const Summary summary = Summarise(record, scenario);
  output.Line("");
  for (const std::string& line : planned ? summary.lines : std::vector<std::string>()) output.Line(line);
  output.Line(fmt::format("{:<23} operator {:.0f} MiB, scheduler {:.0f} MiB", "peak memory",
                          static_cast<double>(cluster.operator_peak()) / (1 << 20),
                          static_cast<double>(cluster.scheduler_peak()) / (1 << 20)));
  result.failures = followed.ok() ? summary.failures : std::vector{base::Message(followed)};
  if (record.last.failed) result.logs = LogsOf(folder, record.last.problem);
  for (const std::string& line : FailureLines(result.failures, result.logs)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  int code = followed.ok() && summary.failures.empty() ? 0 : 1;
  if (followed.ok() && record.last.complete &&
      !GiveModel(cluster, manifests.job.key(), options.model, output, result)) {
    code = 1;
  }
  if (options.keep) KeepUp(clock, cluster, network != nullptr, addresses, output.json() ? stderr : stdout);
  if (page) page->Stop();
  cluster.Stop();
  return planned ? code : kNoPlan;
}

// Removes the folder of a run that is over, or of one that has written nothing from which it could continue.
void RemoveUnneeded(const std::filesystem::path& folder, bool complete, bool existed) {
  if (!complete) {
    const auto run = ReadSavedRun(folder);
    if (!run.ok() || (existed && !run->has_value())) return;
    if (run->has_value()) {
      const auto volume = CheckpointFolderOf((*run)->job, ClaimsOf(folder));
      if (!volume.ok() || volume->of_objects() || NewestCheckpoint(*volume)) return;
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

// The exit status; fills in the result, except for that.
int RunFile(RunOptions options, RunResult& result) {
  signal(SIGINT, OnSignal);
  signal(SIGTERM, OnSignal);
  signal(SIGPIPE, SIG_IGN);
  base::log::Configure("medley", base::log::Level::kWarn);
  auto manifests = LoadManifests(options.file);
  if (!manifests.ok()) return Fail(manifests.status(), 2, result);
  EnsureCheckpointVolume(manifests->job);
  options.model_is_default = options.model.empty();
  const char* const made = manifests->job.At("/spec/program").is_object() ? "-saved" : "-model";
  if (options.model_is_default) options.model = "./" + manifests->job.key().name + made;
  if (const absl::Status status = CheckModelFolder(options.model); !status.ok()) return Fail(status, 2, result);
  Scenario scenario;
  if (!manifests->scenario.empty()) {
    const auto text = base::ReadFile(manifests->scenario);
    if (!text.ok()) return Fail(text.status(), 2, result);
    auto parsed = ParseScenario(*text);
    if (!parsed.ok()) return Fail(base::Annotate(parsed.status(), manifests->scenario.string()), 2, result);
    scenario = *std::move(parsed);
    if (scenario.goal_percent > 0) AskForMost(manifests->job);
  }
  options.folder_is_own = options.folder.empty();
  if (options.folder_is_own) options.folder = DefaultRunFolder(options.model, manifests->job.key().name);
  const std::filesystem::path folder = std::filesystem::absolute(options.folder);
  auto prepared = PrepareRunFolder(
      {.folder = folder, .manifest = options.file, .resume = options.resume, .own = options.folder_is_own},
      manifests->job);
  if (!prepared.ok()) {
    const bool refused = absl::IsFailedPrecondition(prepared.status()) || absl::IsNotFound(prepared.status());
    return Fail(prepared.status(), refused ? 2 : 1, result);
  }
  base::SystemClock clock;
  const int code = RunIn(clock, options, *manifests, scenario, folder, *prepared, result);
  if (options.folder_is_own && code != 1) {
    RemoveUnneeded(folder, code == 0, prepared->existed);
  } else if (options.folder_is_own) {
    std::fprintf(stderr, "medley: logs are in %s\n", folder.c_str());
  }
  return code;
}

}  // namespace

int Run(const RunOptions& options) {
  RunResult result;
  result.exit_status = RunFile(options, result);
  if (options.json) {
    std::fputs(ResultJson(result).c_str(), stdout);
    std::fflush(stdout);
  }
  return result.exit_status;
}

}  // namespace medley::cli
