#include "worker/trainer/server_generation.h"

#include <algorithm>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/placement.h"
#include "worker/checkpoint/reader.h"
#include "worker/ps/sharding.h"
#include "worker/trainer/background_writer.h"
#include "worker/trainer/rebuild.h"
#include "worker/trainer/trainer_state.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;

absl::StatusOr<std::shared_ptr<ServerGeneration>> ServerGeneration::Build(const pb::Prepare& order,
                                                                          const ServerContext& context,
                                                                          std::shared_ptr<RowStore> held,
                                                                          ParameterServer& server,
                                                                          std::stop_token stop) {
  std::shared_ptr<ServerGeneration> generation(new ServerGeneration(order, context));
  if (order.origin() == pb::STATE_ORIGIN_PEERS) generation->held_ = std::move(held);
  MEDLEY_RETURN_IF_ERROR(generation->FindPlace());
  if (!generation->serves()) return generation;
  MEDLEY_ASSIGN_OR_RETURN(generation->store_,
                          RowStore::Make(context.tables, context.optimizer, context.seed, context.tiers));
  if (order.origin() == pb::STATE_ORIGIN_CHECKPOINT) MEDLEY_RETURN_IF_ERROR(generation->Load(stop));
  if (order.origin() != pb::STATE_ORIGIN_PEERS) return generation;
  if (Rebuilds(order, generation->shard())) {
    if (order.rebuild().after_step() > 0) MEDLEY_RETURN_IF_ERROR(generation->Load(stop));
    MEDLEY_RETURN_IF_ERROR(TakePushes(order, generation->store_, server, *context.clock, stop));
    generation->rebuilt_ = true;
    return generation;
  }
  generation->FindSources();
  for (Source& source : generation->sources_) {
    MEDLEY_ASSIGN_OR_RETURN(const RowsCopied copied,
                            generation->Fetch(source, {stop, context.clock->Steady() + base::seconds(120)}));
    source.since_step = std::max<int64_t>(0, copied.first_step - 1);  // the source may undo one step
  }
  return generation;
}

absl::Status ServerGeneration::FindPlace() {
  MEDLEY_ASSIGN_OR_RETURN(const model::ExecutionPlan plan, model::FromProto(order_.plan()));
  MEDLEY_RETURN_IF_ERROR(model::CheckUnits(plan));
  const std::vector<std::vector<model::OperationRange>> runs = model::OperationsByDevice(plan);
  size_t trainer = 0;  // peers are in the order of the devices
  for (const pb::Peer& peer : order_.peers()) {
    if (peer.slot().role() == pb::MEMBER_ROLE_SERVER) {
      ++shards_;
      const bool me = peer.slot().member() == context_.session.member && peer.instance() == context_.session.instance;
      if (me) shard_ = peer.slot().index();
      continue;
    }
    if (trainer == runs.size()) {
      return base::InvalidArgument("generation {} has more trainers than the {} devices of its plan", generation(),
                                   runs.size());
    }
    const std::vector<model::OperationRange>& ranges = runs[trainer++];
    const bool pushes = std::any_of(context_.tables.begin(), context_.tables.end(), [&](const ParameterSpec& table) {
      return std::any_of(ranges.begin(), ranges.end(),
                         [&](const model::OperationRange& range) { return range.Contains(table.operation); });
    });
    if (pushes) ++trainers_;
  }
  return absl::OkStatus();
}

namespace {

// Reads the rows of one shard into `store`.
absl::Status LoadShard(const Volume& volume, const std::string& folder, int shard, int shards, RowStore& store) {
  MEDLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(volume, folder));
  CheckpointHandlers handlers;
  handlers.rows = [&](int32_t table, int32_t width, std::span<const uint64_t> keys, std::span<const float> values) {
    std::vector<uint64_t> mine;
    std::vector<float> rows;
    const auto stride = static_cast<size_t>(width);
    for (size_t k = 0; k < keys.size(); ++k) {
      if (ShardOf(table, keys[k], shards) != shard) continue;
      mine.push_back(keys[k]);
      const auto row = values.subspan(k * stride, stride);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    return store.Import(table, mine, rows);
  };
  MEDLEY_RETURN_IF_ERROR(ReadCheckpoint(volume, manifest, std::move(handlers)));
  store.SetApplied(manifest.step, SamplesAt(manifest));
  return absl::OkStatus();
}

}  // namespace

absl::Status ServerGeneration::Load(std::stop_token stop) {
  return ReadBounded("reading checkpoint " + order_.checkpoint(), std::move(stop),
                     [store = store_, volume = context_.checkpoint_root, folder = order_.checkpoint(), shard = shard_,
                      shards = shards_] { return LoadShard(volume, folder, shard, shards, *store); });
}

void ServerGeneration::FindSources() {
  std::vector<pb::Peer> servers;
  for (const pb::Peer& peer : order_.sources()) {
    if (peer.slot().role() == pb::MEMBER_ROLE_SERVER) servers.push_back(peer);
  }
  const bool same_map = order_.has_rebuild() || static_cast<int>(servers.size()) == shards_;
  for (const pb::Peer& peer : servers) {
    // With the same number of shards, only the old shard with this index has rows for this one.
    if (same_map && peer.slot().index() != shard_) continue;
    const bool me = peer.slot().member() == context_.session.member && peer.instance() == context_.session.instance;
    if (same_map && me && held_ != nullptr) {
      store_ = held_;
      return;
    }
    sources_.push_back({peer.address(), 0});
  }
}

absl::StatusOr<RowsCopied> ServerGeneration::Fetch(const Source& source, const WaitLimit& limit) {
  return FetchRows({.address = source.address,
                    .token = context_.session.token,
                    .tls = context_.session.tls,
                    .source_generation = order_.source_generation(),
                    .since_step = source.since_step,
                    .shard = shard_,
                    .shards = shards_},
                   *store_, *context_.clock, limit);
}

pb::Warmed ServerGeneration::warmed() const {
  pb::Warmed warmed;
  warmed.set_generation(generation());
  return warmed;
}

absl::Status ServerGeneration::TakeState(const pb::Switch& order) {
  if (held_ != nullptr) MEDLEY_RETURN_IF_ERROR(held_->UndoTo(order.step()));
  if (serves()) store_->SetKeepsUndo(!order_.plan().schedule().without_undo());
  if (!serves() || store_ == held_) return absl::OkStatus();
  switch (order_.origin()) {
    case pb::STATE_ORIGIN_INITIAL:
      store_->SetApplied(0, 0);
      break;
    case pb::STATE_ORIGIN_CHECKPOINT:
      break;
    default: {
      if (rebuilt_) break;
      if (sources_.empty())
        return base::FailedPrecondition("no parameter server holds the rows of generation {}",
                                        order_.source_generation());
      const WaitLimit limit{abort_.get_token(), context_.clock->Steady() + context_.step_timeout};
      base::Backoff backoff({.first = base::milliseconds(2), .max = base::milliseconds(100)}, context_.seed);
      int64_t samples = 0;
      for (const Source& source : sources_) {
        while (true) {  // until the source itself has rolled back
          MEDLEY_ASSIGN_OR_RETURN(const RowsCopied copied, Fetch(source, limit));
          samples = copied.state_samples;
          if (copied.first_step == order.step() && copied.last_step == order.step()) break;
          if (limit.stop.stop_requested() || context_.clock->Steady() >= limit.deadline) {
            return base::DeadlineExceeded("parameter server {} is at step {}, but the switch is at step {}",
                                          source.address, copied.last_step, order.step());
          }
          base::Mutex mutex;
          base::CondVar never;
          base::MutexLock lock(mutex);
          never.WaitFor(mutex, limit.stop, backoff.Next(), [] { return false; });
        }
      }
      store_->SetApplied(order.step(), samples);
    }
  }
  if (store_->AppliedStep() != order.step()) {
    return base::DataLoss("the shard's rows are of step {}, but the switch is at step {}", store_->AppliedStep(),
                          order.step());
  }
  return absl::OkStatus();
}

}  // namespace medley::worker
