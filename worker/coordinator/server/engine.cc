#include "worker/coordinator/server/engine.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/checkpoint/reader.h"
#include "worker/checkpoint/store.h"

namespace medley::worker {

using base::MutexLock;

Engine::Engine(CoordinatorOptions options, base::Clock& clock) : options_(std::move(options)), clock_(clock) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(CoordinatorOptions options, base::Clock& clock) {
  options.core.checkpoints = !options.checkpoint_root.empty();
  std::unique_ptr<Engine> engine(new Engine(std::move(options), clock));
  std::optional<job::v1::CoordinatorState> restored;
  {
    MutexLock lock(engine->mutex_);
    if (const auto& root = engine->options_.checkpoint_root; !root.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(engine->journal_, Journal::Open(root));
      MEDLEY_ASSIGN_OR_RETURN(engine->steps_, StepLog::Open(root / "steps.jsonl"));
      restored = engine->journal_->restored();
      const std::string& uid = engine->options_.core.job_uid;
      if (restored && !uid.empty() && !restored->desired().plan().job_uid().empty() &&
          restored->desired().plan().job_uid() != uid) {
        log::Warn("ignored the journal in the checkpoint folder: it belongs to another job",
                  {{"job_uid", restored->desired().plan().job_uid()}});
        restored.reset();
      }
    }
    engine->core_ = std::make_unique<CoordinatorCore>(engine->options_.core, engine->Now(), restored);
    engine->Carry();
  }
  Engine* const self = engine.get();
  engine->file_thread_ = std::jthread([self](std::stop_token stop) { self->RunFiles(stop); });
  engine->timer_ = std::jthread([self](std::stop_token stop) {
    while (self->clock_.SleepFor(self->options_.tick, stop)) self->Tick();
  });
  return engine;
}

Engine::~Engine() { Stop(); }

void Engine::Stop() {
  stop_.request_stop();
  timer_.request_stop();
  file_thread_.request_stop();
  if (timer_.joinable()) timer_.join();
  if (file_thread_.joinable()) file_thread_.join();
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
    if (!journal_) return;
    if (const absl::Status status = journal_->Append(journal->state); !status.ok()) Finish(1, status);
  } else if (auto* step = std::get_if<StepCommand>(&command)) {
    if (!steps_) return;
    if (const absl::Status status = steps_->Add(*step); !status.ok()) log::Error(base::Message(status));
  } else if (auto* rollback = std::get_if<RollbackCommand>(&command)) {
    if (!steps_) return;
    if (const absl::Status status = steps_->Rollback(*rollback); !status.ok()) log::Error(base::Message(status));
  } else if (std::holds_alternative<FindCheckpointCommand>(command)) {
    Later([this] { LookForCheckpoint(); });
  } else if (auto* manifest = std::get_if<WriteManifestCommand>(&command)) {
    Later([this, order = std::move(*manifest)] { CompleteManifest(order); });
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

void Engine::Later(std::function<void()> work) {
  files_.push_back(std::move(work));  // stays short: the core has at most one search and one manifest pending
  changed_.NotifyAll();
}

void Engine::RunFiles(std::stop_token stop) {
  while (!stop.stop_requested()) {
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      changed_.Wait(mutex_, stop, [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return !files_.empty(); });
      if (stop.stop_requested() || files_.empty()) return;
      work = std::move(files_.front());
      files_.pop_front();
    }
    work();
  }
}

void Engine::LookForCheckpoint() {
  std::optional<CheckpointPosition> position;
  absl::StatusOr<FoundCheckpoint> found =
      FindCheckpoint(options_.checkpoint_root, options_.core.job_uid, options_.model_fingerprint);
  if (!found.ok())
    log::Error("searching for a checkpoint failed, the job starts from the seed",
               {{"error", base::Message(found.status())}});
  if (found.ok()) {
    for (const RejectedCheckpoint& rejected : found->rejected) {
      log::Warn("skipped a checkpoint", {{"reason", rejected.reason}});
    }
    if (const auto& manifest = found->manifest) {
      position = CheckpointPosition{manifest->folder, manifest->step, {}};
      position->ledger.set_rows(manifest->rows);
      position->ledger.set_epochs(manifest->data_epochs);
      position->ledger.set_batch_size(manifest->batch_size);
      position->ledger.set_committed_step(manifest->step);
    }
  }
  MutexLock lock(mutex_);
  core_->OnCheckpointFound(position, Now());
  Carry();
}

void Engine::CompleteManifest(const WriteManifestCommand& command) {
  CheckpointManifest manifest;
  manifest.job_uid = options_.core.job_uid;
  manifest.model_fingerprint = options_.model_fingerprint;
  manifest.generation = command.generation;
  manifest.step = command.step;
  manifest.rows = command.ledger.rows();
  manifest.data_epochs = command.ledger.epochs();
  manifest.batch_size = command.ledger.batch_size();
  manifest.folder = command.folder;
  for (const job::v1::CheckpointFile& file : command.files) {
    manifest.files.push_back({file.name(), file.bytes(), file.crc32()});
  }
  const absl::Status status = CompleteCheckpoint(options_.checkpoint_root, manifest);
  if (status.ok()) {
    const absl::Status pruned = PruneCheckpoints(options_.checkpoint_root, options_.keep_checkpoints);
    if (!pruned.ok()) log::Warn("removing old checkpoints failed", {{"error", base::Message(pruned)}});
  }
  MutexLock lock(mutex_);
  core_->OnManifestWritten(command.step, status, Now());
  Carry();
}

}  // namespace medley::worker
