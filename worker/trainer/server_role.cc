#include "worker/trainer/server_role.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "worker/trainer/background_writer.h"
#include "worker/trainer/server_generation.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;

namespace {

// At each checkpoint.
void LogTiers(const RowTierCounts& tiers) {
  const double uses = static_cast<double>(std::max<int64_t>(1, tiers.uses));
  base::log::Info("rows of embedding tables",
                  {{"in_memory", std::to_string(tiers.hot)},
                   {"on_disk", std::to_string(tiers.cold)},
                   {"hit_rate", fmt::format("{:.3f}", std::max(0.0, 1 - static_cast<double>(tiers.loads) / uses))},
                   {"read_ahead", std::to_string(tiers.ahead)},
                   {"disk_bytes", std::to_string(tiers.disk_bytes)}});
}

// What has changed since `before`.
pb::RowTiers TiersSince(const RowTierCounts& now, const RowTierCounts& before) {
  pb::RowTiers tiers;
  tiers.set_memory_rows(now.hot);
  tiers.set_disk_rows(now.cold);
  tiers.set_memory_bytes(now.memory_bytes);
  tiers.set_disk_bytes(now.disk_bytes);
  tiers.set_pulled_rows(now.uses - before.uses);
  tiers.set_loaded_rows(now.loads - before.loads);
  tiers.set_ahead_rows(now.ahead - before.ahead);
  tiers.set_left_rows(now.cooled - before.cooled);
  tiers.set_wait_seconds(now.wait_seconds - before.wait_seconds);
  return tiers;
}

}  // namespace

class ServerRole::Rep {
 public:
  Rep(ServerContext context, ParameterServer& server, Send send)
      : context_(std::move(context)), server_(server), send_(std::move(send)), writer_(context_.checkpoint_root) {}
  ~Rep() { EndSnapshot(); }

  Held held() const {
    const int64_t generation = current_;
    const auto shard = server_.Find(generation);
    return shard == nullptr ? Held{} : Held{generation, shard->store().AppliedStep()};
  }

  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const pb::Prepare& order, std::stop_token stop) {
    if (order.origin() != pb::STATE_ORIGIN_PEERS) Abort();  // the current state will be replaced
    const auto shard = server_.Find(order.source_generation());
    MEDLEY_ASSIGN_OR_RETURN(
        std::shared_ptr<ServerGeneration> generation,
        ServerGeneration::Build(order, context_, shard == nullptr ? nullptr : shard->shared_store(), server_, stop));
    return std::shared_ptr<PreparedGeneration>(std::move(generation));
  }

  absl::StatusOr<pb::Ready> Switch(const pb::Switch& order, const std::shared_ptr<ServerGeneration>& next) {
    if (next == nullptr || next->generation() != order.generation()) {
      return base::FailedPrecondition("cannot switch to generation {}, because this server has not prepared it",
                                      order.generation());
    }
    {
      base::MutexLock lock(mutex_);
      switching_ = next;
    }
    const absl::Status taken = next->TakeState(order);
    {
      base::MutexLock lock(mutex_);
      switching_ = nullptr;
    }
    MEDLEY_RETURN_IF_ERROR(taken);
    pb::Ready ready;
    ready.set_generation(order.generation());
    ready.set_step(order.step());
    if (next->serves()) {
      Install(*next);
      ready.set_state_samples(next->store()->StateSamples());
    } else {
      const auto shard = server_.Find(current_);
      ready.set_state_samples(shard == nullptr ? order.state_samples() : shard->store().StateSamples());
    }
    return ready;
  }

  absl::Status Train(int64_t generation, const pb::StepLease& lease) {
    if (generation != current_) return absl::OkStatus();
    const auto shard = server_.Find(generation);
    if (shard == nullptr) return absl::OkStatus();
    server_.Retain(generation, generation);
    return shard->Allow(lease.step());
  }

  absl::Status Checkpoint(const pb::Checkpoint& order, BackgroundWriter::Done done) {
    if (order.generation() != current_) return absl::OkStatus();
    MEDLEY_ASSIGN_OR_RETURN(BackgroundWriter::File file, Save(order.generation(), order.step(), order.folder()));
    writer_.Write(order.step(), std::move(file), std::move(done));
    return absl::OkStatus();
  }

  void Abort() {
    std::shared_ptr<ServerGeneration> switching;
    {
      base::MutexLock lock(mutex_);
      switching = switching_;
      abort_.request_stop();
      abort_ = std::stop_source();
    }
    if (switching != nullptr) switching->Abort();
    for (const int64_t generation : {current_.load(), previous_.load()}) {
      if (const auto shard = server_.Find(generation)) shard->Close();
    }
  }

  pb::Halted Halt(int64_t generation) {
    writer_.Cancel();  // the coordinator gives up the checkpoint of a generation that it halts
    EndSnapshot();
    if (current_ > generation && server_.Find(previous_) != nullptr) {
      current_ = previous_.load();
      shard_ = previous_shard_;
    }
    pb::Halted halted;
    halted.set_generation(generation);
    if (const auto shard = server_.Find(current_)) {
      halted.set_applied_step(shard->store().AppliedStep());
      halted.set_undo_to_step(shard->store().UndoLimit());
    }
    return halted;
  }

 private:
  void Install(const ServerGeneration& next) {
    const int64_t generation = next.generation();
    ShardGenerationOptions options{
        .generation = generation, .trainers = next.trainers(), .wait = context_.step_timeout};
    options.on_applied = [this, generation, store = next.store(),
                          counted = next.store()->TierCounts()](int64_t step) mutable {
      pb::SessionRequest request;
      pb::Progress& progress = *request.mutable_progress();
      progress.set_generation(generation);
      progress.set_step(step);
      progress.set_state_samples(store->StateSamples());
      if (const auto now = store->TierCounts()) {
        *progress.mutable_row_tiers() = TiersSince(*now, *counted);
        counted = now;
      }
      send_(std::move(request));
    };
    if (const auto old = server_.Find(current_))
      old->Close();  // refuses pulls and pushes; other servers may still copy its rows
    server_.Install(std::make_shared<ShardGeneration>(std::move(options), next.store()));
    previous_ = current_.exchange(generation);
    previous_shard_ = std::exchange(shard_, next.shard());
  }

  std::stop_token StopToken() {
    base::MutexLock lock(mutex_);
    return abort_.get_token();
  }

  // Frees the copies of the last snapshot, also when its file hangs.
  void EndSnapshot() {
    if (snapshot_ != nullptr) snapshot_store_->EndSnapshot(*snapshot_);
    snapshot_.reset();
    snapshot_store_.reset();
  }

  // Takes a snapshot of all rows of the shard at `step`, and says how to write it.
  absl::StatusOr<BackgroundWriter::File> Save(int64_t generation, int64_t step, const std::string& folder) {
    const auto shard = server_.Find(generation);
    if (shard == nullptr)
      return base::FailedPrecondition("this parameter server has no shard of generation {}", generation);
    writer_.Cancel();
    EndSnapshot();
    const std::shared_ptr<RowStore> store = shard->shared_store();
    MEDLEY_RETURN_IF_ERROR(store->WaitApplied(step, {StopToken(), context_.clock->Steady() + context_.step_timeout}));
    if (const auto tiers = store->TierCounts()) LogTiers(*tiers);
    const std::shared_ptr<RowSnapshot> snapshot = store->TakeSnapshot();
    snapshot_ = snapshot;
    snapshot_store_ = store;
    if (snapshot->step() != step) {
      return base::FailedPrecondition("the checkpoint is of step {1}, but the shard has applied step {0}",
                                      snapshot->step(), step);
    }
    const auto add = [store, snapshot](CheckpointWriter& writer, const FileProgress& progress) -> absl::Status {
      const absl::Status status = store->ExportSnapshot(*snapshot, [&](const RowPiece& piece) -> absl::Status {
        if (progress.cancelled()) return base::Cancelled("the checkpoint was given up");
        const auto width = static_cast<int32_t>(piece.values.size() / piece.keys.size());
        return writer.AddRows(piece.table, width, piece.keys, piece.values);
      });
      store->EndSnapshot(*snapshot);
      return status;
    };
    return BackgroundWriter::File{folder, {context_.owner, generation, step, CheckpointFileKind::kRows, shard_}, add};
  }

  const ServerContext context_;
  ParameterServer& server_;
  const Send send_;
  std::atomic<int64_t> current_ = 0;
  std::atomic<int64_t> previous_ = 0;
  int shard_ = 0;  // index of this server in current_; used only by the worker thread
  int previous_shard_ = 0;
  base::Mutex mutex_;
  std::shared_ptr<ServerGeneration> switching_ ABSL_GUARDED_BY(mutex_);
  std::stop_source abort_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<RowSnapshot> snapshot_;  // the last one; used only by the worker thread
  std::shared_ptr<RowStore> snapshot_store_;
  BackgroundWriter writer_;
};

ServerRole::ServerRole(ServerContext context, ParameterServer& server, Send send)
    : rep_(std::make_unique<Rep>(std::move(context), server, std::move(send))) {}
ServerRole::~ServerRole() = default;
Held ServerRole::held() const { return rep_->held(); }
absl::StatusOr<std::shared_ptr<PreparedGeneration>> ServerRole::Prepare(const pb::Prepare& order,
                                                                        std::stop_token stop) {
  return rep_->Prepare(order, std::move(stop));
}
absl::StatusOr<pb::Ready> ServerRole::Switch(const pb::Switch& order, std::shared_ptr<PreparedGeneration> next) {
  return rep_->Switch(order, std::dynamic_pointer_cast<ServerGeneration>(std::move(next)));
}
absl::Status ServerRole::Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease*) {
  return rep_->Train(generation, lease);
}
// Only synchronous plans have servers: no step is open.
absl::Status ServerRole::Drain(const pb::Drain&) { return absl::OkStatus(); }
absl::Status ServerRole::Checkpoint(const pb::Checkpoint& order, BackgroundWriter::Done done) {
  return rep_->Checkpoint(order, std::move(done));
}
absl::StatusOr<pb::Evaluated> ServerRole::Evaluate(const pb::Evaluate&) { return pb::Evaluated(); }
absl::StatusOr<double> ServerRole::Probe(const pb::Probe&) {
  return base::FailedPrecondition("a parameter server never stands by");
}
void ServerRole::Abort() { rep_->Abort(); }
pb::Halted ServerRole::Halt(int64_t generation) { return rep_->Halt(generation); }

}  // namespace medley::worker
