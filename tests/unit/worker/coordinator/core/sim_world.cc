#include "tests/unit/worker/coordinator/core/sim_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common/base/status.h"
#include "common/model/model.h"
#include "common/model/rows_member.h"

namespace medley::worker::sim {
namespace {

CoreOptions MakeOptions(const WorldOptions& world) {
  CoreOptions options;
  options.epochs = world.epochs;
  options.batch_size = world.batch;
  options.lease_ahead = 4;
  options.checkpoints = world.checkpoints;
  options.checkpoint_interval = base::seconds(2);
  options.evaluation.every_steps = world.evaluate_every;
  options.max_fruitless = world.max_fruitless;
  options.retry_wait = base::milliseconds(100);
  options.slow_for = base::milliseconds(200);
  options.standby = {.hold = base::milliseconds(200), .interval = base::milliseconds(50)};
  if (world.whole_tables) {
    options.model = std::make_shared<const model::Model>(model::Model{
        .layers = {{.name = "table", .weight_bytes = 4, .sparse = true}, {.name = "fc", .weight_bytes = 4}}});
  }
  if (world.keep_best) {
    options.selection = {.metric = "score", .validation = world.validation, .test = true};
    options.exports = true;
  }
  return options;
}

// No second of the job is counted twice, whichever coordinators led it.
std::string CheckUnits(const job::v1::UnitAccount& units, double passed) {
  for (const job::v1::PoolSeconds& pool : units.pools()) {
    double sum = 0;
    for (const auto& [category, seconds] : pool.seconds()) {
      if (seconds < 0) return fmt::format("{} s of {} in pool '{}'", seconds, category, pool.pool());
      sum += seconds;
    }
    if (pool.pool().empty() && sum > passed + 1e-6) {
      return fmt::format("{} s of the job are counted, and {} s have passed", sum, passed);
    }
  }
  return units.id().empty() ? "the units in force were not counted" : "";
}

}  // namespace

job::v1::ApplyPlanRequest MakePlan(int64_t generation, int stage0, int stage1, int servers, const std::string& pool) {
  job::v1::ApplyPlanRequest request;
  request.set_reason(fmt::format("plan {}", generation));
  plan::v1::ExecutionPlan& plan = *request.mutable_plan();
  plan.set_generation(generation);
  const int units[] = {stage0, stage1};
  for (int s = 0; s < 2; ++s) {
    plan::v1::Stage& stage = *plan.add_stages();
    stage.add_operations()->set_first(s);
    stage.mutable_operations(0)->set_end(s + 1);
    plan::v1::OperationSync& sync = *stage.add_syncs();
    *sync.add_operations() = stage.operations(0);
    sync.mutable_sync()->set_kind(s == 0 ? plan::v1::SYNC_KIND_PARAMETER_SERVER : plan::v1::SYNC_KIND_ALLREDUCE);
    plan::v1::Group& group = *stage.add_groups();
    group.set_pool(pool);
    group.set_units(units[s]);
    group.set_share(1);
    for (int i = 0; i < units[s]; ++i) {
      job::v1::MemberSlot& slot = *request.add_slots();
      slot.set_member(fmt::format("job-{}-{}-{}", s, pool, i));
      slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
      slot.set_pool(pool);
      slot.set_stage(s);
      slot.set_index(i);
    }
  }
  plan.mutable_servers()->set_pool("servers");
  plan.mutable_servers()->set_units(servers);
  for (int i = 0; i < servers; ++i) {
    job::v1::MemberSlot& slot = *request.add_slots();
    slot.set_member(fmt::format("job-server-{}", i));
    slot.set_role(job::v1::MEMBER_ROLE_SERVER);
    slot.set_pool("servers");
    slot.set_index(i);
  }
  (*request.mutable_usd_per_unit_hour())[pool] = 1;
  return request;
}

job::v1::ApplyPlanRequest MakePlanWithRows(int64_t generation, int stage0, int stage1, const std::string& pool) {
  job::v1::ApplyPlanRequest request = MakePlan(generation, stage0, stage1, 0, pool);
  request.mutable_plan()->mutable_servers()->clear_pool();
  request.mutable_plan()->mutable_servers()->set_units(stage0);
  request.mutable_plan()->mutable_servers()->set_in_trainers(true);
  return request;
}

job::v1::ApplyPlanRequest MakePlanWithTables(int64_t generation, int stage1, const std::string& pool) {
  job::v1::ApplyPlanRequest request = MakePlan(generation, 1, stage1, 0, pool);
  request.mutable_plan()->mutable_stages(0)->clear_syncs();
  request.mutable_plan()->clear_servers();
  return request;
}

job::v1::ApplyPlanRequest MakeReplicas(int64_t generation, int units, const std::string& pool,
                                       plan::v1::SyncMode mode) {
  job::v1::ApplyPlanRequest request;
  request.set_reason(fmt::format("plan {}", generation));
  request.mutable_plan()->set_generation(generation);
  plan::v1::Stage& stage = *request.mutable_plan()->add_stages();
  stage.add_operations()->set_end(1);
  plan::v1::OperationSync& sync = *stage.add_syncs();
  *sync.add_operations() = stage.operations(0);
  sync.mutable_sync()->set_kind(plan::v1::SYNC_KIND_ALLREDUCE);
  sync.mutable_sync()->set_mode(mode);
  if (mode == plan::v1::SYNC_MODE_PERCENTAGE) sync.mutable_sync()->set_fraction(1.0 / 3);
  plan::v1::Group& group = *stage.add_groups();
  group.set_pool(pool);
  group.set_units(units);
  group.set_share(1);
  for (int i = 0; i < units; ++i) {
    job::v1::MemberSlot& slot = *request.add_slots();
    slot.set_member(fmt::format("job-{}-{}", pool, i));
    slot.set_role(job::v1::MEMBER_ROLE_TRAINER);
    slot.set_pool(pool);
    slot.set_index(i);
  }
  (*request.mutable_usd_per_unit_hour())[pool] = 1;
  return request;
}

World::World(const WorldOptions& options)
    : options_(options), rng_(options.seed), disturbances_left_(options.disturbances) {
  shared_.rows = options.rows;
  shared_.epochs = options.epochs;
  shared_.lag = options.lag;
  shared_.separate_test = options.validation;
  shared_.without_undo = options.without_undo;
  shared_.kept_pushes = options.kept_pushes;
  shared_.averages = options.mode != plan::v1::SYNC_MODE_FULL;
  shared_.steps = Ledger::Create(options.rows, options.epochs, options.batch)->total_steps();
  StartCoordinator();
  NewPlan();
}

Instant World::Now() const {
  const auto since = std::chrono::duration_cast<base::WallTime::duration>(time_);
  return {base::SteadyTime(time_), base::WallTime(base::seconds(1'700'000'000) + since)};
}

void World::NewPlan() {
  ++plan_generation_;
  const auto some = [&](int n) { return 1 + static_cast<int>(rng_.Below(static_cast<uint64_t>(n))); };
  const std::string pool = rng_.Below(2) == 0 ? "a" : "b";
  plan_ = options_.mode == plan::v1::SYNC_MODE_FULL ? MakePlan(plan_generation_, some(3), some(3), some(2), pool)
                                                    : MakeReplicas(plan_generation_, 1 + some(3), pool, options_.mode);
  if (options_.rows_in_trainers && rng_.Below(2) == 0)
    plan_ = MakePlanWithRows(plan_generation_, some(3), some(3), pool);
  if (options_.whole_tables && rng_.Below(2) == 0) plan_ = MakePlanWithTables(plan_generation_, some(3), pool);
  if (options_.slow_members) DetectSlowMembers();
  if (!core_) return;
  const absl::StatusOr<int64_t> generation = core_->ApplyPlan(plan_, Now());
  if (!generation.ok() && !core_->over()) Violation(base::ToString(generation.status()));
  Execute();
}

void World::DetectSlowMembers() {
  for (plan::v1::Stage& stage : *plan_.mutable_plan()->mutable_stages()) {
    for (plan::v1::OperationSync& sync : *stage.mutable_syncs()) {
      plan::v1::AnomalyPolicy& policy = *sync.mutable_sync()->mutable_anomaly();
      policy.set_detector(options_.seed % 2 == 0 ? plan::v1::ANOMALY_DETECTOR_WINDOW
                                                 : plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN);
      policy.set_window(4);
      policy.set_threshold(3);
    }
  }
}

void World::ChangeSpeed() {
  const std::vector<std::shared_ptr<Member>> living = Living();
  if (living.empty()) return;
  Member& member = *living[rng_.Below(living.size())];
  member.slowness = member.slowness > 1 ? 1 : 6;
}

void World::StartCoordinator() {
  core_ = std::make_unique<CoordinatorCore>(MakeOptions(options_), Now(), journal_);
  finding_ = false;
  Execute();
  if (!core_) return;  // it was killed at once
  if (plan_generation_ > 0 && !core_->over()) {
    const absl::StatusOr<int64_t> generation = core_->ApplyPlan(plan_, Now());
    if (!generation.ok()) Violation(base::ToString(generation.status()));
    Execute();
  }
}

void World::KillCoordinator() {
  core_.reset();
  manifests_.clear();
  export_.reset();
  for (const auto& member : Living()) member->Disconnect();
}

// The other coordinator may have been replaced, or give up, before the job is handed over.
void World::AskForHandOver() {
  if (!core_) return;
  job::v1::HandOverRequest to;
  to.set_term(++term_);
  core_->HandOver(to, Now()).IgnoreError();  // the job may be over, or being suspended
  if (!options_.only_hand_overs && rng_.Below(8) == 0) core_->CancelHandOver(Now());
  Execute();
}

// The other coordinator starts later, from the last record. The members leave when they receive their Redirect, and the
// volume may still complete the checkpoints that it was asked to.
void World::HandOver() {
  ++hand_overs_;
  core_.reset();
  for (const WriteManifestCommand& manifest : manifests_) {
    if (rng_.Below(2) == 0) CompleteCheckpoint(manifest);
  }
  manifests_.clear();
  export_.reset();
}

std::vector<std::shared_ptr<Member>> World::Living() const {
  std::vector<std::shared_ptr<Member>> living;
  for (const auto& [instance, member] : shared_.by_instance) {
    if (member->alive) living.push_back(member);
  }
  return living;
}

std::shared_ptr<Member> World::LivingPod(const std::string& name) const {
  for (const auto& member : Living()) {
    if (member->slot.member() == name) return member;
  }
  return nullptr;
}

// All members of a process die together, and the coordinator learns of them in any order.
void World::Kill(Member& member) {
  std::vector<std::shared_ptr<Member>> process;
  for (const auto& one : Living()) {
    if (model::ProcessOf(one->slot.member()) == model::ProcessOf(member.slot.member())) process.push_back(one);
  }
  if (process.size() == 2 && rng_.Below(2) == 0) std::swap(process[0], process[1]);
  for (const auto& one : process) KillAlone(*one);
}

void World::KillAlone(Member& member) {
  ++kills_;
  const bool known = member.connected;
  member.Die(rng_.Below(2) == 0);
  if (core_ && known) {
    core_->OnLost(member.slot.member(), member.instance, Now());
    Execute();
  }
}

void World::ReplacePods() {
  for (const job::v1::MemberSlot& slot : plan_.slots()) {
    if (LivingPod(slot.member()) != nullptr) continue;
    const std::string instance = fmt::format("i{:05}", ++instances_);
    shared_.by_instance[instance] = std::make_shared<Member>(shared_, slot, instance);
    return;  // one at a time
  }
  if (!options_.rows_in_trainers) return;
  for (const auto& trainer : Living()) {
    const bool has_shard = trainer->slot.role() == job::v1::MEMBER_ROLE_TRAINER;
    job::v1::MemberSlot slot = trainer->slot;
    slot.set_member(model::RowsMember(slot.member()));
    slot.set_role(job::v1::MEMBER_ROLE_SERVER);
    if (!has_shard || LivingPod(slot.member()) != nullptr) continue;
    const std::string instance = fmt::format("i{:05}", ++instances_);
    shared_.by_instance[instance] = std::make_shared<Member>(shared_, slot, instance);
    return;
  }
}

void World::Deliver(Member& member) {
  if (!core_ || member.outbox.empty()) return;
  job::v1::SessionRequest message = std::move(member.outbox.front());
  member.outbox.pop_front();
  if (options_.speak) options_.speak(member.slot, message);
  message = Transmit(std::move(message));
  core_->OnMessage(member.slot.member(), member.instance, message, Now());
  Execute();
}

void World::Execute() {
  if (!core_) return;
  std::vector<Command> commands = core_->TakeCommands();
  for (const Command& command : commands) {
    // A crash between two commands: the remaining commands are lost.
    if (disturbances_left_ > 0 && !options_.only_hand_overs && rng_.Below(3000) == 0) {
      --disturbances_left_;
      return KillCoordinator();
    }
    if (std::holds_alternative<HandedOverCommand>(command)) return HandOver();
    Execute(command);
  }
}

void World::Execute(const Command& command) {
  if (const auto* send = std::get_if<SendCommand>(&command)) {
    if (send->message.has_prepare()) {
      const int64_t generation = send->message.prepare().generation();
      if (generation < newest_generation_)
        Violation(fmt::format("generation {} after generation {}", generation, newest_generation_));
      newest_generation_ = std::max(newest_generation_, generation);
      if (journal_->last_generation() < generation) Violation("a generation was announced before it was journaled");
    }
    const auto found = shared_.by_instance.find(send->instance);
    if (found != shared_.by_instance.end() && found->second->alive && found->second->connected) {
      found->second->inbox.push_back(Transmit(send->message));
    }
  } else if (const auto* journal = std::get_if<JournalCommand>(&command)) {
    journal_ = Transmit(journal->state);
  } else if (const auto* step = std::get_if<StepCommand>(&command)) {
    if (step->range.step > lines_ + 1) Violation(fmt::format("steps.jsonl: {} after {}", step->range.step, lines_));
    lines_ = std::max(lines_, step->range.step);
  } else if (const auto* rollback = std::get_if<RollbackCommand>(&command)) {
    lines_ = std::min(lines_, rollback->to_step);
  } else if (std::holds_alternative<FindCheckpointCommand>(command)) {
    finding_ = true;
  } else if (const auto* manifest = std::get_if<WriteManifestCommand>(&command)) {
    manifests_.push_back(*manifest);
  } else if (const auto* prune = std::get_if<PruneCommand>(&command)) {
    if (journal_->best().folder() != prune->best) Violation("checkpoints are pruned before the best one is journaled");
    Prune(prune->best);
  } else if (const auto* order = std::get_if<ExportCommand>(&command)) {
    export_ = *order;
  } else if (const auto* finish = std::get_if<FinishCommand>(&command)) {
    finished_ = finish->exit_code;
  }
}

void World::CompleteCheckpoint(const WriteManifestCommand& command) {
  Checkpoint checkpoint{command.folder, command.generation, command.step, {}};
  for (const job::v1::CheckpointFile& file : command.files) {
    const SavedPart& part = shared_.parts.at(command.folder + "/" + file.name());
    if (part.generation != command.generation || part.state.step != command.step)
      Violation("a checkpoint of mixed parts");
    if (!checkpoint.state.counts.empty() && !(checkpoint.state == part.state)) Violation("checkpoint parts differ");
    checkpoint.state = part.state;
  }
  const bool fails = disturbances_left_ > 0 && !options_.only_hand_overs && rng_.Below(10) == 0;
  if (!fails) shared_.checkpoints[command.folder] = checkpoint;
  if (!fails && options_.keep_best) Prune(command.best);
  if (!core_) return;
  core_->OnManifestWritten(command.folder, fails ? base::Internal("disk") : absl::OkStatus(), Now());
  Execute();
}

// Keeps the newest two, and the best.
void World::Prune(const std::string& best) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, std::string>> all;
  for (const auto& [folder, saved] : shared_.checkpoints) all.push_back({{saved.generation, saved.step}, folder});
  std::sort(all.rbegin(), all.rend());
  for (size_t i = 2; i < all.size(); ++i) {
    if (all[i].second != best) shared_.checkpoints.erase(all[i].second);
  }
  most_kept_ = std::max(most_kept_, std::ssize(shared_.checkpoints));
}

void World::Export() {
  const ExportCommand order = *std::exchange(export_, std::nullopt);
  const Checkpoint* from = nullptr;
  for (const auto& [folder, saved] : shared_.checkpoints) {
    const bool newer =
        from == nullptr || std::pair(from->generation, from->step) < std::pair(saved.generation, saved.step);
    if (order.folder.empty() ? newer : folder == order.folder) from = &saved;
  }
  if (from == nullptr || from->step != order.step) {
    return Violation(fmt::format("the checkpoint of the exported step {} is lost", order.step));
  }
  exported_ = order.step;
  core_->OnExported(order.step, absl::OkStatus(), Now());
  Execute();
}

void World::Disturb() {
  --disturbances_left_;
  if (options_.only_hand_overs) return AskForHandOver();
  const std::vector<std::shared_ptr<Member>> living = Living();
  const auto any = [&]() -> Member& { return *living[rng_.Below(living.size())]; };
  const uint64_t what = rng_.Below(15);
  if (what <= 4 && !living.empty()) {
    Kill(any());
    if (rng_.Below(4) == 0 && living.size() > 2) Kill(*living[rng_.Below(living.size())]);
  } else if (what <= 6) {
    NewPlan();
  } else if (what == 7) {
    KillCoordinator();
  } else if (what == 8 && !living.empty()) {
    any().Disconnect();  // the same process reconnects
  } else if (what == 9 && core_ && !living.empty()) {
    core_->Drain({any().slot.member()}, 0, Now()).IgnoreError();  // without a leader term
    Execute();
  } else if (what >= 12) {
    AskForHandOver();
  } else if (what == 10 && core_) {
    core_->Suspend("asked", 0, Now()).IgnoreError();
    Execute();
  } else if (!living.empty()) {
    Member& member = any();
    if (!member.connected || !member.held()) return;
    job::v1::SessionRequest fault;
    fault.mutable_fault()->set_generation(member.held()->generation);
    fault.mutable_fault()->set_message("a peer broke off");
    member.outbox.push_back(fault);
  }
}

void World::Event() {
  time_ += base::milliseconds(rng_.Below(8));
  if (options_.slow_members && rng_.Below(1000) == 0) return ChangeSpeed();
  if (disturbances_left_ > 0 && rng_.Below(300) == 0) return Disturb();
  const uint64_t what = rng_.Below(100);
  const std::vector<std::shared_ptr<Member>> living = Living();
  if (what < 2) return ReplacePods();
  if (what < 4) {
    if (!core_) StartCoordinator();
    if (finished_ || !core_) return;
    core_->Tick(Now());
    return Execute();
  }
  if (what < 6 && core_) {
    if (export_) return Export();
    if (finding_) {
      finding_ = false;
      if (disturbances_left_ > 0 && rng_.Below(10) == 0) {
        core_->OnCheckpointFound(base::Internal("listing: i/o error"), Now());
        return Execute();
      }
      CheckpointSearch search;
      for (const auto& [folder, checkpoint] : shared_.checkpoints) {
        if (search.newest && std::pair(search.newest->generation, search.newest->step) >
                                 std::pair(checkpoint.generation, checkpoint.step)) {
          continue;
        }
        Ledger ledger = *Ledger::Create(options_.rows, options_.epochs, options_.batch);
        (void)ledger.ResetTo(checkpoint.step);
        search.newest = CheckpointPosition{folder, checkpoint.generation, checkpoint.step, ledger.ToRecord()};
      }
      core_->OnCheckpointFound(search, Now());
      return Execute();
    }
    if (manifests_.empty()) return;
    const WriteManifestCommand command = manifests_.front();
    manifests_.erase(manifests_.begin());
    return CompleteCheckpoint(command);
  }
  if (living.empty()) return;
  Member& member = *living[rng_.Below(living.size())];
  if (!member.connected) {
    if (core_ && rng_.Below(8) == 0) member.Connect();
    if (rng_.Below(2) == 0) member.Work();
  } else if (what < 40) {
    Deliver(member);
  } else if (what < 70) {
    member.Receive();
    if (!member.alive && core_) {
      core_->OnLost(member.slot.member(), member.instance, Now());
      Execute();
    }
    // The shard ends with its trainer.
    if (const auto shard = LivingPod(model::RowsMember(member.slot.member())); !member.alive && shard)
      KillAlone(*shard);
  } else {
    member.Work();
  }
  if (!member.violation.empty()) Violation(member.violation);
}

std::string World::Run() {
  for (int event = 0; event < options_.max_events && violation_.empty(); ++event) {
    Event();
    if (!finished_) continue;
    if (core_) last_ = Transmit(core_->Observe(Now()));
    const job::v1::JobPhase outcome = journal_->outcome();
    if (*finished_ != 0) return fmt::format("the job failed: {}", journal_->message());
    if (outcome == job::v1::JOB_PHASE_COMPLETE) {
      const Ledger ledger = *Ledger::Create(options_.rows, options_.epochs, options_.batch);
      if (journal_->ledger().committed_step() != ledger.total_steps()) return "complete, but not all is committed";
      if (lines_ != ledger.total_steps()) return fmt::format("steps.jsonl has {} lines that count", lines_);
      return violation_.empty() ? CheckUnits(journal_->units(), base::ToSeconds(time_)) : violation_;
    }
    // The job is suspended; the operator resumes it with the same plan.
    finished_.reset();
    KillCoordinator();
    for (const auto& member : Living()) member->Die(true);
  }
  if (!violation_.empty()) return violation_;
  const job::v1::Observation seen = core_ ? core_->Observe(Now()) : job::v1::Observation();
  return "no end: " + seen.ShortDebugString();
}

}  // namespace medley::worker::sim
