#include "localcluster/node/process_node.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdlib>
#include <set>
#include <system_error>
#include <thread>

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "kube/cache/informer.h"
#include "kube/pod.h"
#include "kube/queue/delaying_queue.h"
#include "localcluster/node/binder.h"
#include "localcluster/node/gpu_pool.h"
#include "localcluster/node/log_files.h"
#include "localcluster/node/node_context.h"
#include "localcluster/node/node_registrar.h"
#include "localcluster/node/pod_worker.h"
#include "localcluster/node/scheduler.h"
#include "localcluster/node/unique_fd.h"

namespace medley::localcluster {
namespace {

namespace fs = std::filesystem;
constexpr base::seconds kSyncTimeout{60};
constexpr base::milliseconds kStopPoll{5};

absl::Status CheckOptions(const ProcessNodeOptions& options) {
  if (options.root.empty() || !options.root.is_absolute()) {
    return base::InvalidArgument("the process node's root '{}' must be absolute", options.root.string());
  }
  if (options.nodes.empty()) return base::InvalidArgument("the process node needs at least one virtual node");
  std::set<std::string> names;
  for (const VirtualNode& node : options.nodes) {
    if (node.name.empty() || !names.insert(node.name).second) {
      return base::InvalidArgument("node name '{}' is empty or appears twice", node.name);
    }
  }
  for (const auto& [image, program] : options.images) {
    if (!program.is_absolute()) {
      return base::InvalidArgument("program '{}' of image '{}' must be absolute", program.string(), image);
    }
  }
  const base::nanoseconds none{0};
  if (options.workers < 1 || options.restart_backoff <= none || options.cpu_period <= none ||
      options.heartbeat <= none || options.log_bytes <= 0) {
    return base::InvalidArgument("workers, restart_backoff, cpu_period, heartbeat and log_bytes must be positive");
  }
  return RoomOf(options.nodes, {}).status();
}

// Below the root no link is followed (file_access.h).
ProcessNodeOptions WithCanonicalRoot(ProcessNodeOptions options) {
  std::error_code error;
  fs::path root = options.root.is_absolute() ? fs::weakly_canonical(options.root, error) : options.root;
  if (!error) options.root = std::move(root);
  return options;
}

absl::StatusOr<UniqueFd> LockRoot(const fs::path& root) {
  std::error_code error;
  fs::create_directories(root, error);
  // The volumes and logs of pods are below it.
  if (!error) fs::permissions(root, fs::perms::owner_all, error);
  if (error) return base::ErrnoStatus(error.value(), "creating folder " + root.string());
  const fs::path path = root / "lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return base::ErrnoStatus(errno, "opening " + path.string());
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    return base::FailedPrecondition("root folder '{}' is used by another process node", root.string());
  }
  return fd;
}

}  // namespace

class ProcessNode::Core {
 public:
  Core(kube::Client& client, base::Clock& clock, ProcessNodeOptions options)
      : client_(client),
        clock_(clock),
        options_(WithCanonicalRoot(std::move(options))),
        records_(options_.root / "processes"),
        gpus_(options_.gpus) {}
  ~Core() { Stop(); }

  absl::Status Start();
  void Stop();
  absl::Status ReadLog(const kube::Key& pod, const LogOptions& options, std::stop_token stop,
                       const std::function<bool(std::string_view)>& sink);
  absl::Status Signal(const kube::Key& pod, int number);
  std::string enforcement() const { return enforcer_ == nullptr ? "" : enforcer_->name(); }

 private:
  absl::Status Prepare();
  void Watch();
  void Work(std::stop_token stop);
  // Returns when to reconcile the pod again. After an error the pod is requeued with a backoff.
  absl::StatusOr<std::optional<base::SteadyTime>> Reconcile(const kube::Key& key);
  absl::StatusOr<std::optional<base::SteadyTime>> Sync(const kube::Key& key, const kube::ObjectPtr& pod);
  PodWorker* FindWorker(const kube::Key& key);
  bool IsHere(const kube::Object& pod) const { return names_.contains(pod.String("/spec/nodeName")); }
  void RetryUnschedulable();
  void EndAll();
  bool AnyRunning();

  kube::Client& client_;
  base::Clock& clock_;
  const ProcessNodeOptions options_;
  const ProcessRecords records_;
  GpuPool gpus_;
  std::set<std::string> names_;
  UniqueFd lock_;
  std::unique_ptr<Enforcer> enforcer_;
  std::optional<AddressPool> addresses_;
  LogIndex logs_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<kube::RateLimitingQueue> queue_;
  std::unique_ptr<kube::Informer> informer_;
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<NodeRegistrar> registrar_;
  std::unique_ptr<NodeContext> context_;
  base::Mutex mutex_;
  // The queue never gives a key to two threads at once, so each worker is used by one thread at a time.
  std::map<kube::Key, std::unique_ptr<PodWorker>> workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;
  std::jthread heartbeat_;
  bool started_ = false;
};

absl::Status ProcessNode::Core::Start() {
  if (started_) return base::FailedPrecondition("the process node can be started only once");
  started_ = true;
  MEDLEY_RETURN_IF_ERROR(CheckOptions(options_));
  MEDLEY_RETURN_IF_ERROR(Prepare());
  MEDLEY_RETURN_IF_ERROR(registrar_->Register());
  Watch();
  MEDLEY_RETURN_IF_ERROR(informer_->WaitForSync(kSyncTimeout, std::stop_token()));
  for (int i = 0; i < options_.workers; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
  }
  heartbeat_ = std::jthread([this](std::stop_token stop) {
    while (clock_.SleepFor(options_.heartbeat, stop)) {
      const absl::Status beaten = registrar_->Beat(true);
      if (!beaten.ok()) base::log::Warn("node heartbeat failed", {{"error", base::ToString(beaten)}});
    }
  });
  return absl::OkStatus();
}

absl::Status ProcessNode::Core::Prepare() {
  for (const VirtualNode& node : options_.nodes) names_.insert(node.name);
  MEDLEY_ASSIGN_OR_RETURN(lock_, LockRoot(options_.root));
  MEDLEY_ASSIGN_OR_RETURN(const int killed, records_.KillLeftovers(clock_));
  if (killed > 0) base::log::Warn("killed processes of an earlier start", {{"processes", std::to_string(killed)}});
  const std::string instance = base::HashHex(fs::weakly_canonical(options_.root).string());
  MEDLEY_ASSIGN_OR_RETURN(AddressPool addresses, AddressPool::Parse(options_.pod_cidr, instance));
  addresses_.emplace(std::move(addresses));
  MEDLEY_ASSIGN_OR_RETURN(enforcer_, MakeEnforcer(options_.cgroups, instance, options_.cpu_period, clock_));
  base::log::Info("enforcing CPU and memory limits", {{"by", enforcer_->name()}});
  supervisor_ = std::make_unique<Supervisor>(clock_);
  MEDLEY_RETURN_IF_ERROR(supervisor_->Start());
  queue_ = std::make_unique<kube::RateLimitingQueue>(
      clock_, std::make_unique<kube::ExponentialRateLimiter>(base::milliseconds(20), base::seconds(10)));
  std::map<std::string, std::string> inherited = options_.environment;
  for (const std::string& name : options_.inherit_env) {
    if (const char* value = std::getenv(name.c_str()); value != nullptr) inherited[name] = value;
  }
  context_.reset(new NodeContext{client_, clock_, options_, *supervisor_, *enforcer_, *addresses_, gpus_, logs_,
                                 records_, std::move(inherited),
                                 [queue = queue_.get()](const kube::Key& key) { queue->Add(key); }});
  kube::Informer::Options informer;
  informer.reflector.resource = kube::resources::Pods();
  informer.reflector.seed = options_.seed;
  informer_ = std::make_unique<kube::Informer>(client_, clock_, informer);
  binder_ = std::make_unique<Binder>(client_, clock_, options_.nodes, informer_->store());
  registrar_ = std::make_unique<NodeRegistrar>(client_, clock_, options_.nodes);
  return absl::OkStatus();
}

void ProcessNode::Core::Watch() {
  kube::EventHandler handler;
  handler.on_add = [this](const kube::ObjectPtr& pod, bool) { queue_->Add(pod->key()); };
  handler.on_update = [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
    queue_->Add(now->key());
    if (!kube::HasEnded(*before) && kube::HasEnded(*now)) RetryUnschedulable();
  };
  handler.on_delete = [this](const kube::ObjectPtr& last, bool) {
    queue_->Add(last->key());
    RetryUnschedulable();
  };
  if (const auto added = informer_->AddHandler(std::move(handler)); !added.ok()) {
    base::log::Error("watching pods failed", {{"error", base::ToString(added.status())}});
  }
  informer_->Start();
}

void ProcessNode::Core::RetryUnschedulable() {
  for (const kube::Key& key : binder_->TakeUnschedulable()) queue_->Add(key);
}

void ProcessNode::Core::Work(std::stop_token stop) {
  while (const std::optional<kube::Key> key = queue_->Get(stop)) {
    const auto requeue_at = Reconcile(*key);
    if (!requeue_at.ok()) {
      base::log::Warn("reconciling a pod failed; retrying",
                      {{"pod", key->ToString()}, {"error", base::ToString(requeue_at.status())}});
      queue_->AddRateLimited(*key);
    } else {
      queue_->Forget(*key);
      if (*requeue_at) queue_->AddAfter(*key, **requeue_at - clock_.Steady());
    }
    queue_->Done(*key);
  }
}

PodWorker* ProcessNode::Core::FindWorker(const kube::Key& key) {
  base::MutexLock lock(mutex_);
  const auto it = workers_.find(key);
  return it == workers_.end() ? nullptr : it->second.get();
}

absl::StatusOr<std::optional<base::SteadyTime>> ProcessNode::Core::Reconcile(const kube::Key& key) {
  const kube::ObjectPtr pod = informer_->store().Get(key);
  if (pod == nullptr || !pod->String("/spec/nodeName").empty()) binder_->Forget(key);
  MEDLEY_ASSIGN_OR_RETURN(const auto requeue_at, Sync(key, pod));
  const bool unbound = pod != nullptr && pod->String("/spec/nodeName").empty() && !pod->deleting();
  if (unbound && Binder::IsOurs(*pod)) MEDLEY_RETURN_IF_ERROR(binder_->Place(pod));
  return requeue_at;
}

absl::StatusOr<std::optional<base::SteadyTime>> ProcessNode::Core::Sync(const kube::Key& key,
                                                                        const kube::ObjectPtr& pod) {
  PodWorker* worker = FindWorker(key);
  if (worker != nullptr) {
    MEDLEY_ASSIGN_OR_RETURN(const PodWorker::Outcome outcome, worker->Sync(pod));
    if (!outcome.finished) return outcome.requeue_at;
    base::MutexLock lock(mutex_);
    workers_.erase(key);
  }
  if (pod == nullptr || !IsHere(*pod)) return std::optional<base::SteadyTime>();
  auto made = std::make_unique<PodWorker>(*context_, *pod);
  worker = made.get();
  {
    base::MutexLock lock(mutex_);
    workers_[key] = std::move(made);
  }
  MEDLEY_ASSIGN_OR_RETURN(const PodWorker::Outcome outcome, worker->Sync(pod));
  return outcome.requeue_at;
}

// The threads have ended, so no other thread uses workers_.
void ProcessNode::Core::EndAll() {
  base::MutexLock lock(mutex_);
  for (const auto& [key, worker] : workers_) worker->Shutdown(SIGTERM);
}

bool ProcessNode::Core::AnyRunning() {
  base::MutexLock lock(mutex_);
  bool any = false;
  for (const auto& [key, worker] : workers_) {
    worker->NoteEnds();
    any |= worker->running();
  }
  return any;
}

void ProcessNode::Core::Stop() {
  heartbeat_ = std::jthread();
  if (queue_ != nullptr) queue_->ShutDown();
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
  if (supervisor_ == nullptr) return;
  EndAll();
  const base::SteadyTime deadline = clock_.Steady() + options_.stop_grace;
  while (AnyRunning() && clock_.Steady() < deadline) clock_.SleepFor(kStopPoll, std::stop_token());
  supervisor_->Stop();
  {
    base::MutexLock lock(mutex_);
    for (const auto& [key, worker] : workers_) {
      const absl::Status reported = worker->Report(informer_->store().Get(key));
      if (!reported.ok()) base::log::Warn("reporting a pod's end failed", {{"pod", key.ToString()}});
    }
    workers_.clear();
  }
  if (registrar_ != nullptr) {
    if (const absl::Status beaten = registrar_->Beat(false); !beaten.ok()) {
      base::log::Warn("marking the nodes stopped failed", {{"error", base::ToString(beaten)}});
    }
  }
  if (informer_ != nullptr) informer_->Stop();
  supervisor_.reset();
  enforcer_.reset();
  lock_.Reset();
}

absl::Status ProcessNode::Core::ReadLog(const kube::Key& pod, const LogOptions& options, std::stop_token stop,
                                        const std::function<bool(std::string_view)>& sink) {
  MEDLEY_ASSIGN_OR_RETURN(const auto found, logs_.Find(pod, options.container));
  const auto& [container, entry] = found;
  const int start = options.previous ? entry.start - 1 : entry.start;
  if (start < 0) {
    return base::InvalidArgument("previous terminated container '{}' in pod '{}' not found", container, pod.name);
  }
  const std::shared_ptr<Process> process = options.previous ? nullptr : entry.process;
  const auto ended = [&] { return process == nullptr || process->exit().has_value(); };
  return ReadLogFiles(LogPath(entry.folder, container, start), options, clock_, stop, ended, sink);
}

absl::Status ProcessNode::Core::Signal(const kube::Key& pod, int number) {
  MEDLEY_ASSIGN_OR_RETURN(const auto found, logs_.Find(pod, ""));
  const std::shared_ptr<Process>& process = found.second.process;
  if (process == nullptr || process->exit().has_value()) {
    return base::NotFound("signalling pod '{}': it is not running", pod.ToString());
  }
  process->Signal(number);
  return absl::OkStatus();
}

ProcessNode::ProcessNode(kube::Client& client, base::Clock& clock, ProcessNodeOptions options)
    : core_(std::make_unique<Core>(client, clock, std::move(options))) {}
ProcessNode::~ProcessNode() = default;
absl::Status ProcessNode::Start() { return core_->Start(); }
void ProcessNode::Stop() { core_->Stop(); }
absl::Status ProcessNode::Signal(const kube::Key& pod, int number) { return core_->Signal(pod, number); }
std::string ProcessNode::enforcement() const { return core_->enforcement(); }
absl::Status ProcessNode::ReadLog(const kube::Key& pod, const LogOptions& options, std::stop_token stop,
                                  const std::function<bool(std::string_view)>& sink) {
  return core_->ReadLog(pod, options, stop, sink);
}

}  // namespace medley::localcluster
