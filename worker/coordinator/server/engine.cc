#include "worker/coordinator/server/engine.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/coordinator/server/checkpoint_files.h"
#include "worker/coordinator/server/journal.h"

namespace medley::worker {

using base::MutexLock;

namespace {

constexpr size_t kMaxLines = size_t{1} << 16;  // of steps.jsonl that wait for the volume

// Refuses a journal that tells of another training: its results would be reported as those of this job.
absl::Status CheckDigest(const job::v1::CoordinatorState& journal, const std::string& digest,
                         const std::string& folder) {
  if (digest.empty() || journal.job_digest().empty() || journal.job_digest() == digest) return absl::OkStatus();
  return base::InvalidArgument(
      "the journal in {} belongs to a job with another model, schema, data or training (its digest is {}, this job's "
      "is "
      "{}): empty the folder, or use another one",
      folder, journal.job_digest(), digest);
}

}  // namespace

struct Engine::Folder {
  std::unique_ptr<Journal> journal;
  std::unique_ptr<StepLog> steps;
  std::optional<FolderOwner> owner;
  std::unique_ptr<CheckpointFiles> checkpoints;
};

Engine::Engine(CoordinatorOptions options, base::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      journal_thread_({.grace = options_.volume_grace, .max_queue = kMaxLines}),
      checkpoint_thread_({.grace = options_.volume_grace}) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(CoordinatorOptions options, base::Clock& clock) {
  options.core.checkpoints = !options.checkpoint_root.empty();
  std::unique_ptr<Engine> engine(new Engine(std::move(options), clock));
  {
    MutexLock lock(engine->mutex_);
    std::optional<job::v1::CoordinatorState> restored;
    if (engine->options_.core.checkpoints) {
      MEDLEY_ASSIGN_OR_RETURN(restored, engine->OpenFolder());
    }
    engine->core_ = std::make_unique<CoordinatorCore>(engine->options_.core, engine->Now(), restored);
    engine->Carry();
  }
  Engine* const self = engine.get();
  engine->timer_ = std::jthread([self](std::stop_token stop) {
    while (self->clock_.SleepFor(self->options_.tick, stop)) self->Tick();
  });
  return engine;
}

absl::StatusOr<std::optional<job::v1::CoordinatorState>> Engine::OpenFolder() {
  const Volume& root = options_.checkpoint_root;
  const CheckpointFilesOptions files{options_.core.job_uid, options_.model_fingerprint, options_.keep_checkpoints};
  const auto folder = std::make_shared<Folder>();
  const auto open = [folder, root, files, instance = options_.instance]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(FolderOwner owner, FolderOwner::Claim(root, instance));
    MEDLEY_ASSIGN_OR_RETURN(folder->journal, Journal::Open(root));
    MEDLEY_ASSIGN_OR_RETURN(folder->steps, StepLog::Open(root / "steps.jsonl"));
    folder->checkpoints = std::make_unique<CheckpointFiles>(files, root, owner);
    folder->owner = std::move(owner);
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(
      journal_thread_.Run("opening " + root.root().string(), options_.journal_timeout, stop_.get_token(), open));
  folder_ = folder;
  std::optional<job::v1::CoordinatorState> restored = folder->journal->restored();
  const std::string& uid = options_.core.job_uid;
  if (restored && !uid.empty() && !restored->desired().plan().job_uid().empty() &&
      restored->desired().plan().job_uid() != uid) {
    log::Warn("ignored the journal in the checkpoint folder: it belongs to another job",
              {{"job_uid", restored->desired().plan().job_uid()}});
    restored.reset();
  }
  if (restored) MEDLEY_RETURN_IF_ERROR(CheckDigest(*restored, options_.core.job_digest, root.root().string()));
  return restored;
}

Engine::~Engine() { Stop(); }

void Engine::Stop() {
  stop_.request_stop();
  timer_.request_stop();
  if (timer_.joinable()) timer_.join();
  checkpoint_thread_.Stop();
  journal_thread_.Stop();
  MutexLock lock(mutex_);
  for (auto& [name, link] : links_) {
    if (link.session) link.session->Cancel();
  }
  changed_.NotifyAll();
}

absl::StatusOr<int64_t> Engine::ApplyPlan(const job::v1::ApplyPlanRequest& request) {
  MutexLock lock(mutex_);
  const absl::StatusOr<int64_t> generation = core_->ApplyPlan(request, Now());
  Carry();
  return generation;
}

absl::Status Engine::Drain(const std::vector<std::string>& members, int64_t leader_term) {
  MutexLock lock(mutex_);
  const absl::Status status = core_->Drain(members, leader_term, Now());
  Carry();
  return status;
}

absl::StatusOr<int64_t> Engine::Suspend(const std::string& reason, int64_t leader_term,
                                        const std::function<bool()>& cancelled) {
  MutexLock lock(mutex_);
  const absl::Status status = core_->Suspend(reason, leader_term, Now());
  Carry();
  if (!status.ok()) return status;
  while (!core_->over()) {
    if (stop_.stop_requested() || cancelled()) return base::Cancelled("the wait for the job's suspension was stopped");
    changed_.WaitFor(mutex_, stop_.get_token(), base::milliseconds(50),
                     [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return core_->over(); });
  }
  const job::v1::Observation last = core_->Observe(Now());
  if (last.phase() != job::v1::JOB_PHASE_SUSPENDED) {
    return base::FailedPrecondition("the job is over: {}", last.message());
  }
  return last.last_checkpoint_step();
}

job::v1::Observation Engine::Observe() {
  MutexLock lock(mutex_);
  return core_->Observe(Now());
}

bool Engine::over() {
  MutexLock lock(mutex_);
  return core_->over();
}

void Engine::FinalObservationRead() {
  MutexLock lock(mutex_);
  final_read_ = true;
  changed_.NotifyAll();
}

void Engine::Open(const std::shared_ptr<Session>& session, const job::v1::SessionRequest& hello) {
  MutexLock lock(mutex_);
  if (stop_.stop_requested()) return session->Cancel();
  Link& link = links_[session->member];
  if (link.session) link.session->Cancel();
  link = {session, session->instance, {}};
  log::Info("member connected", {{"member", session->member},
                                 {"held_generation", std::to_string(hello.hello().held_generation())},
                                 {"held_step", std::to_string(hello.hello().held_step())}});
  if (core_->over()) {
    job::v1::SessionResponse release;
    release.mutable_release()->set_exit_code(exit_code_.value_or(0) == 0 ? 0 : 1);
    release.mutable_release()->set_reason("the job is over");
    session->Push(std::move(release));
    return;
  }
  core_->OnMessage(session->member, session->instance, hello, Now());
  Carry();
}

void Engine::Receive(const std::shared_ptr<Session>& session, const job::v1::SessionRequest& message) {
  MutexLock lock(mutex_);
  const auto link = links_.find(session->member);
  if (link == links_.end() || link->second.session != session)
    return;  // a newer session replaced this one, or it was dropped
  core_->OnMessage(session->member, session->instance, message, Now());
  Carry();
}

void Engine::Close(const std::shared_ptr<Session>& session) {
  MutexLock lock(mutex_);
  const auto link = links_.find(session->member);
  if (link == links_.end() || link->second.session != session) return;
  link->second.session.reset();
  link->second.broken_at = clock_.Steady();
  changed_.NotifyAll();
}

void Engine::Tick() {
  MutexLock lock(mutex_);
  const base::SteadyTime now = clock_.Steady();
  for (auto at = links_.begin(); at != links_.end();) {
    if (at->second.session || now - at->second.broken_at < options_.session_grace) {
      ++at;
      continue;
    }
    const std::string member = at->first;
    const std::string instance = at->second.instance;
    at = links_.erase(at);
    log::Info("member did not reconnect in time and is lost", {{"member", member}});
    core_->OnLost(member, instance, Now());
  }
  core_->Tick(Now());
  Carry();
}

void Engine::Carry() {
  for (std::vector<Command> commands = core_->TakeCommands(); !commands.empty(); commands = core_->TakeCommands()) {
    for (Command& command : commands) {
      // No later command may be carried out when a journal record could not be written.
      if (stop_.stop_requested()) return;
      if (exit_code_ && *exit_code_ != 0 && !core_->over()) return;
      Carry(command);
    }
    changed_.NotifyAll();
  }
}

void Engine::Carry(Command& command) {
  if (auto* send = std::get_if<SendCommand>(&command)) {
    const auto link = links_.find(send->member);
    if (link == links_.end() || link->second.instance != send->instance || !link->second.session) return;
    if (!link->second.session->Push(std::move(send->message))) link->second.session->Cancel();
  } else if (auto* journal = std::get_if<JournalCommand>(&command)) {
    Append(std::move(journal->state));
  } else if (auto* step = std::get_if<StepCommand>(&command)) {
    WriteStep([order = *step](StepLog& steps) { return steps.Add(order); });
  } else if (auto* rollback = std::get_if<RollbackCommand>(&command)) {
    WriteStep([order = *rollback](StepLog& steps) { return steps.Rollback(order); });
  } else if (auto* find = std::get_if<FindCheckpointCommand>(&command)) {
    LookForCheckpoint(*find);
  } else if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) {
    CompleteManifest(std::move(*manifest));
  } else if (auto* drop = std::get_if<DropCommand>(&command)) {
    const auto link = links_.find(drop->member);
    if (link == links_.end() || link->second.instance != drop->instance) return;
    if (link->second.session) link->second.session->Cancel();
    links_.erase(link);
  } else if (auto* fence = std::get_if<FenceCommand>(&command)) {
    rendezvous_.Fence(fence->oldest);
  } else if (auto* line = std::get_if<LogCommand>(&command)) {
    log::Write(line->warning ? log::Level::kWarn : log::Level::kInfo, line->message, {});
  } else if (auto* finish = std::get_if<FinishCommand>(&command)) {
    Finish(finish->exit_code, absl::OkStatus());
  }
}

void Engine::Finish(int exit_code, const absl::Status& why) {
  if (!why.ok()) log::Error("the coordinator cannot continue and exits", {{"error", base::Message(why)}});
  if (!exit_code_ || *exit_code_ == 0) exit_code_ = exit_code;
  changed_.NotifyAll();
}

int Engine::Wait(std::stop_token stop) {
  const std::stop_callback forward(stop, [this] { stop_.request_stop(); });
  MutexLock lock(mutex_);
  const std::stop_token stopped = stop_.get_token();
  changed_.Wait(mutex_, stopped, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return exit_code_.has_value(); });
  if (!exit_code_) return -1;
  // Lets members receive their Release and the operator read the last observation.
  changed_.WaitFor(mutex_, stopped, options_.linger, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const bool quiet = std::none_of(links_.begin(), links_.end(), [](const auto& at) { return at.second.session; });
    return quiet && final_read_;
  });
  return *exit_code_;
}

void Engine::Append(job::v1::CoordinatorState state) {
  if (!folder_) return;
  const auto append = [folder = folder_, state = std::move(state)]() -> absl::Status {
    MEDLEY_RETURN_IF_ERROR(folder->owner->Check());
    return folder->journal->Append(state);
  };
  const absl::Status status =
      journal_thread_.Run("writing the journal", options_.journal_timeout, stop_.get_token(), append);
  if (!status.ok() && !stop_.stop_requested()) Finish(1, status);
}

void Engine::WriteStep(std::function<absl::Status(StepLog&)> write) {
  if (!folder_) return;
  const bool posted = journal_thread_.Post([folder = folder_, write = std::move(write)]() -> VolumeThread::Deliver {
    if (const absl::Status status = write(*folder->steps); !status.ok()) log::Error(base::Message(status));
    return {};
  });
  if (!posted && !stop_.stop_requested()) {
    Finish(1, base::Unavailable("steps.jsonl: too many lines wait for the volume, which does not answer"));
  }
}

void Engine::LookForCheckpoint(const FindCheckpointCommand& command) {
  const bool posted = checkpoint_thread_.Post([this, folder = folder_, command]() -> VolumeThread::Deliver {
    absl::StatusOr<CheckpointSearch> found = folder->checkpoints->Search(command);
    return [this, found = std::move(found)] {
      MutexLock lock(mutex_);
      core_->OnCheckpointFound(found, Now());
      Carry();
    };
  });
  if (!posted) log::Warn("cannot search for a checkpoint: too many operations wait for the volume");
}

void Engine::CompleteManifest(WriteManifestCommand command) {
  const bool posted =
      checkpoint_thread_.Post([this, folder = folder_, order = std::move(command)]() -> VolumeThread::Deliver {
        const absl::Status status = folder->checkpoints->Publish(order);
        return [this, name = order.folder, status] {
          MutexLock lock(mutex_);
          core_->OnManifestWritten(name, status, Now());
          Carry();
        };
      });
  if (!posted) log::Warn("cannot complete a checkpoint: too many operations wait for the volume");
}

}  // namespace medley::worker
