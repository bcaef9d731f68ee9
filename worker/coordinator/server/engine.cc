#include "worker/coordinator/server/engine.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "worker/checkpoint/job_settings.h"
#include "worker/coordinator/server/final_result.h"
#include "worker/coordinator/server/folder.h"
#include "worker/coordinator/server/hand_over.h"

namespace medley::worker {

using base::MutexLock;

namespace {

constexpr base::nanoseconds kLogInterval = base::milliseconds(500);  // between two writes of the log
constexpr base::nanoseconds kLogObjectInterval = base::seconds(15);  // where each writes it again, and costs money
constexpr size_t kMaxLines = size_t{1} << 16;                        // of steps.jsonl that wait for the volume

}  // namespace

Engine::Engine(CoordinatorOptions options, base::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      claims_(options_.checkpoint_root.empty() ? std::nullopt : std::optional<Claims>(options_.checkpoint_root)),
      journal_thread_({.grace = options_.volume_grace, .max_queue = kMaxLines}),
      checkpoint_thread_({.grace = options_.volume_grace}),
      claim_thread_({.grace = options_.volume_grace, .max_queue = 1}),
      log_thread_({.grace = options_.volume_grace, .max_queue = 2}) {
  if (claims_) log_copy_.emplace([lines = log_lines_](std::string_view line) { lines->Add(line); });
}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(CoordinatorOptions options, base::Clock& clock,
                                                      std::stop_token stop) {
  options.core.checkpoints = !options.checkpoint_root.empty() && options.keeps_state;
  options.core.exports = options.core.checkpoints && options.export_model != nullptr;
  options.core.term = options.term;
  std::unique_ptr<Engine> engine(new Engine(std::move(options), clock));
  Lead lead;
  if (engine->claims_) {
    MEDLEY_ASSIGN_OR_RETURN(lead, TakeLead(engine->journal_thread_, engine->options_, clock, stop));
  }
  {
    MutexLock lock(engine->mutex_);
    engine->claim_ = lead.claim;
    std::optional<job::v1::CoordinatorState> restored;
    if (!engine->options_.checkpoint_root.empty()) {
      MEDLEY_ASSIGN_OR_RETURN(restored, engine->OpenFolder(lead, std::move(stop)));
    }
    const CommittedStep line = restored ? engine->folder_->steps->last() : CommittedStep();
    engine->core_ = std::make_unique<CoordinatorCore>(engine->options_.core, engine->Now(), restored, line);
    engine->Carry();
  }
  Engine* const self = engine.get();
  engine->timer_ = std::jthread([self](std::stop_token end) {
    while (self->clock_.SleepFor(self->options_.tick, end)) self->Tick();
  });
  return engine;
}

absl::StatusOr<std::optional<job::v1::CoordinatorState>> Engine::OpenFolder(const Lead& lead, std::stop_token stop) {
  const Volume& root = options_.checkpoint_root;
  const CheckpointFilesOptions files{options_.core.job_uid,  options_.model_fingerprint, options_.keep_checkpoints,
                                     options_.continue_from, options_.core.epochs,       claim_,
                                     options_.model_settings};
  const auto folder = std::make_shared<Folder>();
  const auto open = [folder, root, files, lead, options = options_, now = clock_.Now()]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(folder->journal, Journal::Open(root, lead.claim));
    const auto& last = folder->journal->restored();
    const bool led_on = lead.handed_over && last && last->handed_over().term() != lead.claim.term;
    const bool take_over = lead.former_may_run || led_on;
    const std::string writer = ClaimName(lead.claim);
    MEDLEY_ASSIGN_OR_RETURN(folder->steps, StepLog::Open(root, "steps", writer, take_over));
    MEDLEY_ASSIGN_OR_RETURN(folder->evaluations, StepLog::Open(root, "metrics", writer, take_over));
    OpenRecords(options, now, *folder);
    folder->checkpoints = std::make_unique<CheckpointFiles>(files, root);
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(AwaitRoom(clock_, stop, [&] {
    return journal_thread_.Run("opening " + root.root().string(), options_.journal_timeout, stop, open);
  }));
  folder_ = folder;
  std::optional<job::v1::CoordinatorState> restored = folder->journal->restored();
  const std::string& uid = options_.core.job_uid;
  if (restored && !uid.empty() && !restored->desired().plan().job_uid().empty() &&
      restored->desired().plan().job_uid() != uid) {
    base::log::Warn("ignored the journal in the checkpoint folder: it belongs to another job",
                    {{"job_uid", restored->desired().plan().job_uid()}});
    restored.reset();
  }
  const std::string journal_digest = restored ? restored->job_digest() : "";
  const auto compare = [root, journal_digest, digest = options_.core.job_digest,
                        settings = options_.job_settings]() -> absl::Status {
    // Refuses a journal that tells of another training: its results would be reported as those of this job.
    MEDLEY_RETURN_IF_ERROR(CheckJobSettings(root, journal_digest, digest, settings));
    const absl::Status kept = KeepJobSettings(root, digest, settings);
    if (!kept.ok()) base::log::Warn("the job's settings are not kept in its folder", {{"error", base::Message(kept)}});
    return absl::OkStatus();
  };
  MEDLEY_RETURN_IF_ERROR(
      journal_thread_.Run("comparing the settings of the job", options_.journal_timeout, stop, compare));
  return restored;
}

void Engine::OpenRecords(const CoordinatorOptions& options, base::WallTime now, Folder& folder) {
  const Volume& root = options.checkpoint_root;
  absl::StatusOr<std::unique_ptr<LogFiles>> logs = LogFiles::Open(root, options.term);
  if (logs.ok()) folder.logs = *std::move(logs);
  if (!logs.ok()) base::log::Warn("the log is not kept in the job's folder", {{"error", base::Message(logs.status())}});
  if (!options.tensor_board) return;
  absl::StatusOr<std::unique_ptr<TensorBoard>> board =
      TensorBoard::Open(root, {fmt::format("medley-{}", options.term), options.learning_rate},
                        {folder.steps->last_step(), folder.evaluations->last_step()}, now);
  if (board.ok()) folder.board = *std::move(board);
  if (!board.ok())
    base::log::Warn("no event file for TensorBoard is written", {{"error", base::Message(board.status())}});
}

Engine::~Engine() { Stop(); }

void Engine::Stop() {
  stop_.request_stop();
  timer_.request_stop();
  if (timer_.joinable()) timer_.join();
  claim_thread_.Stop();
  checkpoint_thread_.Stop();
  journal_thread_.Stop();
  {
    MutexLock lock(mutex_);
    FlushLog();
  }
  log_thread_.Stop();
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
  MEDLEY_RETURN_IF_ERROR(Refusal());
  return generation;
}

absl::Status Engine::Drain(const std::vector<std::string>& members, int64_t leader_term) {
  MutexLock lock(mutex_);
  const absl::Status status = core_->Drain(members, leader_term, Now());
  Carry();
  MEDLEY_RETURN_IF_ERROR(Refusal());
  return status;
}

absl::Status Engine::Refusal() const {
  return ends_early() ? base::Unavailable("the coordinator is stopping") : absl::OkStatus();
}

absl::Status Engine::HandOver(const job::v1::HandOverRequest& to, const std::function<bool()>& cancelled) {
  MutexLock lock(mutex_);
  if (to.term() <= options_.term) {
    return base::FailedPrecondition("the coordinator of term {} leads; term {} is not newer", options_.term, to.term());
  }
  MEDLEY_RETURN_IF_ERROR(core_->HandOver(to, Now()));
  const int64_t call = ++hand_overs_;
  Carry();
  while (!core_->handed_over()) {
    MEDLEY_RETURN_IF_ERROR(Refusal());
    if (core_->over()) return base::FailedPrecondition("the job is over");
    if (core_->successor_term() != to.term()) return base::FailedPrecondition("the job is not handed over any more");
    if (stop_.stop_requested() || cancelled()) {
      // A later call may come from the same coordinator, started again, or from a newer one.
      if (call == hand_overs_) core_->CancelHandOver(Now());
      Carry();
      return base::Cancelled("the wait for the open steps was stopped");
    }
    changed_.WaitFor(mutex_, stop_.get_token(), base::milliseconds(50),
                     [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return core_->handed_over() || core_->over(); });
  }
  MEDLEY_RETURN_IF_ERROR(Refusal());  // the last record is not in the journal, or nobody reads it
  if (core_->successor_term() != to.term()) {
    return base::FailedPrecondition("the coordinator of term {} takes over", core_->successor_term());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Engine::Suspend(const std::string& reason, int64_t leader_term,
                                        const std::function<bool()>& cancelled) {
  MutexLock lock(mutex_);
  const absl::Status status = core_->Suspend(reason, leader_term, Now());
  Carry();
  if (!status.ok()) return status;
  while (!core_->over()) {
    MEDLEY_RETURN_IF_ERROR(Refusal());
    if (stop_.stop_requested() || cancelled()) return base::Cancelled("the wait for the job's suspension was stopped");
    changed_.WaitFor(mutex_, stop_.get_token(), base::milliseconds(50),
                     [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return core_->over(); });
  }
  MEDLEY_RETURN_IF_ERROR(Refusal());
  const job::v1::Observation last = core_->Observe(Now());
  if (last.phase() != job::v1::JOB_PHASE_SUSPENDED) {
    return base::FailedPrecondition("the job is over: {}", last.message());
  }
  return last.last_checkpoint_step();
}

job::v1::Observation Engine::Observe() {
  MutexLock lock(mutex_);
  job::v1::Observation observation = core_->Observe(Now());
  observation.set_coordinator_term(options_.term);
  if (journal_late_ && !journal_full_ && !observation.has_checkpoint_failure()) {
    job::v1::CheckpointFailure& failure = *observation.mutable_checkpoint_failure();
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(journal_late_->since.time_since_epoch());
    failure.mutable_since()->set_seconds(since.count());
    failure.set_message(base::Message(journal_late_->why));
  }
  if (journal_full_) {
    job::v1::CheckpointFailure& failure = *observation.mutable_checkpoint_failure();
    if (!failure.has_since()) {
      const auto since = std::chrono::duration_cast<std::chrono::seconds>(journal_full_->since.time_since_epoch());
      failure.mutable_since()->set_seconds(since.count());
    }
    failure.set_message(base::Message(journal_full_->why));
    failure.set_paused(true);
  }
  return observation;
}

bool Engine::gave_up() {
  MutexLock lock(mutex_);
  return ends_early();
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
  if (hello.hello().coordinator_term() > options_.term) {
    CheckClaim(Claim{.term = hello.hello().coordinator_term(), .address = "another address"});
  }
  if (stop_.stop_requested() || ends_early() || core_->handed_over()) return session->Cancel();
  if (options_.term > 0) {
    job::v1::SessionResponse welcome;
    welcome.mutable_welcome()->set_term(options_.term);
    session->Push(std::move(welcome));
  }
  Link& link = links_[session->member];
  if (link.session) link.session->Cancel();
  link = {session, session->instance, {}};
  base::log::Info("member connected", {{"member", session->member},
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
  if (claims_ && now >= next_claim_check_) {
    next_claim_check_ = now + options_.claim_interval;
    LookAtClaims();
  }
  for (auto at = links_.begin(); at != links_.end();) {
    if (at->second.session || now - at->second.broken_at < options_.session_grace) {
      ++at;
      continue;
    }
    const std::string member = at->first;
    const std::string instance = at->second.instance;
    at = links_.erase(at);
    base::log::Info("member did not reconnect in time and is lost", {{"member", member}});
    core_->OnLost(member, instance, Now());
  }
  LookAtRecord();
  if (journal_full_) RetryJournal();
  if (!journal_full_) core_->Tick(Now());  // its deadlines do not pass while nothing is carried out
  Carry();
  if (now >= next_log_flush_) {
    next_log_flush_ = now + (options_.checkpoint_root.of_objects() ? kLogObjectInterval : kLogInterval);
    FlushLog();
  }
}

int Engine::Wait(std::stop_token stop) {
  const std::stop_callback forward(stop, [this] { stop_.request_stop(); });
  {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, stop_.get_token(),
                  [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return exit_code_.has_value(); });
  }
  LeaveResult();
  return Linger();
}

// Before anybody is waited for: the process may be killed while it lingers.
void Engine::LeaveResult() {
  std::optional<job_result::JobResult> result;
  {
    MutexLock lock(mutex_);
    const bool is_final = exit_code_ && *exit_code_ != kSuperseded && !ends_early();
    if (is_final && !options_.result_file.empty()) result = ResultOf(core_->Observe(Now()), options_.core.job_uid);
  }
  if (!result) return;
  const absl::Status written = WriteResult(*result, options_.result_file);
  if (!written.ok())
    base::log::Warn("the job's result is not in the pod's status", {{"error", base::Message(written)}});
}

int Engine::Linger() {
  MutexLock lock(mutex_);
  const std::stop_token stopped = stop_.get_token();
  if (!exit_code_) return -1;
  if (*exit_code_ == kSuperseded) {  // members are redirected; nobody reads a last observation
    changed_.WaitFor(mutex_, stopped, std::min<base::nanoseconds>(options_.linger, base::seconds(1)),
                     [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return Quiet(); });
    return kSuperseded;
  }
  // Lets members receive their Release and the operator read the last observation.
  changed_.WaitFor(mutex_, stopped, options_.linger,
                   [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return Quiet() && final_read_; });
  return *exit_code_;
}

bool Engine::Quiet() const {
  return std::none_of(links_.begin(), links_.end(), [](const auto& at) { return at.second.session != nullptr; });
}

}  // namespace medley::worker
