#include "worker/trainer/generation_runtime.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/log.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "common/model/model.h"
#include "common/model/placement.h"
#include "common/program/compile.h"
#include "common/program/text.h"
#include "worker/checkpoint/reader.h"
#include "worker/device/gpu_group.h"
#include "worker/model/block_shape.h"
#include "worker/trainer/background_writer.h"
#include "worker/trainer/rebuild.h"
#include "worker/trainer/send_values.h"
#include "worker/trainer/shard_links.h"
#include "worker/trainer/trainer_data.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

constexpr uint64_t kHeaderTag = uint64_t{1} << 40;  // larger than the tag of any operation

int RankIn(const std::vector<std::string>& members, const std::string& name) {
  const auto it = std::find(members.begin(), members.end(), name);
  return it == members.end() ? -1 : static_cast<int>(it - members.begin());
}

}  // namespace

GenerationRuntime::GenerationRuntime(pb::Prepare order, const TrainerContext& context)
    : order_(std::move(order)), context_(context) {}

absl::StatusOr<std::shared_ptr<GenerationRuntime>> GenerationRuntime::Build(const pb::Prepare& order,
                                                                            const TrainerContext& context,
                                                                            std::shared_ptr<const Dataset> data,
                                                                            std::shared_ptr<TrainerState> held,
                                                                            std::stop_token stop) {
  std::shared_ptr<GenerationRuntime> runtime(new GenerationRuntime(order, context));
  runtime->data_ = std::move(data);
  runtime->blocks_ = BlockOrderOf(context.spec->data, runtime->data_->rows());
  if (order.origin() == pb::STATE_ORIGIN_PEERS) runtime->held_ = std::move(held);
  MEDLEY_ASSIGN_OR_RETURN(runtime->plan_, model::FromProto(order.plan()));
  runtime->FindDevice();
  if (runtime->trains()) MEDLEY_RETURN_IF_ERROR(runtime->Compile());
  MEDLEY_RETURN_IF_ERROR(runtime->MakeState(stop));
  const auto store = MakeRendezvousStore(context.session, order.generation());
  if (order.origin() == pb::STATE_ORIGIN_PEERS) MEDLEY_RETURN_IF_ERROR(runtime->AgreeOnMoves(*store, stop));
  if (!runtime->trains()) return runtime;
  MEDLEY_RETURN_IF_ERROR(runtime->ConnectGroups(*store, stop));
  MEDLEY_RETURN_IF_ERROR(runtime->ConnectServers(stop));
  SparseParameters* sparse = runtime->servers_.get();
  if (sparse == nullptr) sparse = runtime->state_->tables();
  ExecutorParts parts{.blocks = std::vector<BlockCompute*>(runtime->programs_.training.blocks.size(), nullptr),
                      .data = runtime->data_.get(),
                      .channel = runtime->channel_.get(),
                      .sparse = sparse,
                      .reducer = runtime->reducer_.get(),
                      .clock = context.clock,
                      .blocks_of_data = runtime->blocks_};
  parts.reads = kNoParts;
  parts.drawn = context.graph->operations.back().negatives;
  for (size_t model = 0; const int block : runtime->sequence_.blocks) {
    parts.blocks[static_cast<size_t>(block)] = runtime->state_->models()[model++].get();
    parts.reads |= ReadsOf(*context.graph, runtime->programs_.training.blocks[static_cast<size_t>(block)].operations);
  }
  MEDLEY_ASSIGN_OR_RETURN(runtime->executor_, Executor::Create(runtime->programs_, runtime->device(), std::move(parts),
                                                               context.optimizer, context.spec->training.seed));
  return runtime;
}

// Peers are in the order of the program's devices.
void GenerationRuntime::FindDevice() {
  for (const pb::Peer& peer : order_.peers()) {
    if (peer.slot().role() != pb::MEMBER_ROLE_TRAINER) continue;
    if (peer.slot().member() == context_.session.member && peer.instance() == context_.session.instance) {
      device_ = static_cast<int>(trainers_.size());
    }
    trainers_.push_back(peer);
  }
}

absl::Status GenerationRuntime::Compile() {
  const model::Model model = context_.graph->ToModel();
  MEDLEY_ASSIGN_OR_RETURN(programs_.training, program::Compile(plan_, model));
  MEDLEY_ASSIGN_OR_RETURN(programs_.evaluation, program::CompileEvaluation(plan_, model));
  const program::Program& program = programs_.training;
  if (program.flows.size() > kMaxFlows || program.micro_batches > model::kMaxMicroBatches) {
    return base::Unimplemented("the plan moves {} values in {} micro-batches: this runtime numbers {} and {}",
                               program.flows.size(), program.micro_batches, kMaxFlows, model::kMaxMicroBatches);
  }
  const auto trainers = std::ranges::count_if(program.devices, [](const auto& device) { return !device.server; });
  if (trainers != std::ssize(trainers_)) {
    return base::InvalidArgument("generation {} has {} trainers, its plan has {} devices for them", generation(),
                                 trainers_.size(), trainers);
  }
  const std::vector<ParameterSpec> dense = context_.graph->Parameters(/*sparse=*/false);
  const bool statistics = std::ranges::find(dense, ParameterRole::kStatistic, &ParameterSpec::role) != dense.end();
  if (program.lag > 1 && statistics) {
    base::log::Warn(
        fmt::format("batch norm in an asynchronous plan: its running statistics are those of up to {} steps before, as "
                    "parameters are",
                    program.lag - 1));
  }
  MEDLEY_ASSIGN_OR_RETURN(sequence_, SequenceOf(program, device_));
  program_hash_ = program::Hash(program);
  return absl::OkStatus();
}

std::set<int> GenerationRuntime::Writes() const {
  std::set<int> operations;
  for (const int index : sequence_.blocks) {
    const program::Block& block = programs_.training.blocks[static_cast<size_t>(index)];
    if (programs_.training.layouts[static_cast<size_t>(block.layout)].devices.front() != device_) continue;
    for (int op = block.operations.first; op < block.operations.end; ++op) operations.insert(op);
  }
  return operations;
}

bool GenerationRuntime::HasTables(int device) const {
  const program::Program& program = programs_.training;
  return std::ranges::any_of(program.blocks, [&](const program::Block& block) {
    const std::vector<int>& devices = program.layouts[static_cast<size_t>(block.layout)].devices;
    return !block.tables.empty() && std::ranges::find(devices, device) != devices.end();
  });
}

int GenerationRuntime::TableRank(int of) const {
  int rank = 0;
  for (int device = 0; device < of; ++device) rank += HasTables(device) ? 1 : 0;
  return rank;
}

bool GenerationRuntime::NeedsServers() const { return plan_.servers.has_value() && HasTables(device_); }

absl::Status GenerationRuntime::MakeState(std::stop_token stop) {
  if (!trains()) return absl::OkStatus();
  TrainerState::Options options{
      .blocks = {},
      .local_tables = !NeedsServers(),
      .settings = {.optimizer = context_.optimizer,
                   .seed = context_.spec->training.seed,
                   .threads = context_.threads,
                   .kept_updates = plan_.schedule.without_undo ? sequence_.lag - 1 : programs_.training.lag,
                   .device = context_.device,
                   .precision = PrecisionOf(context_.spec->training.precision),
                   .tables = model::TablesOf(plan_, device_)},
      .make_block = context_.make_block};
  for (const int block : sequence_.blocks) {
    options.blocks.push_back(programs_.training.blocks[static_cast<size_t>(block)].operations);
  }
  if (held_ != nullptr && held_->options().Keeps(options)) {
    state_ = held_;
    return absl::OkStatus();
  }
  MEDLEY_ASSIGN_OR_RETURN(state_, TrainerState::Create(*context_.graph, options));
  if (stop.stop_requested()) return base::Cancelled("preparing generation {} was stopped", generation());
  if (order_.origin() != pb::STATE_ORIGIN_CHECKPOINT) return absl::OkStatus();
  const auto load = [state = state_, volume = context_.checkpoint_root,
                     folder = order_.checkpoint()]() -> absl::Status {
    MEDLEY_ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(volume, folder));
    return state->Load(volume, manifest);
  };
  return ReadBounded("reading checkpoint " + order_.checkpoint(), stop, load);
}

absl::Status GenerationRuntime::AgreeOnMoves(KeyValueStore& store, std::stop_token stop) {
  const auto add = [&](const pb::Peer& peer) {
    if (peer.slot().role() != pb::MEMBER_ROLE_TRAINER) return;
    if (RankIn(transfer_members_, peer.slot().member()) < 0) transfer_members_.push_back(peer.slot().member());
  };
  for (const pb::Peer& peer : order_.sources()) add(peer);
  for (const pb::Peer& peer : order_.peers()) add(peer);
  transfer_rank_ = RankIn(transfer_members_, context_.session.member);
  Holding mine;
  if (held_ != nullptr) mine.holds = held_->Holds();
  if (trains()) {
    for (const int operation : state_->Holds()) {
      if (!std::binary_search(mine.holds.begin(), mine.holds.end(), operation)) mine.needs.push_back(operation);
    }
  }
  MEDLEY_RETURN_IF_ERROR(store.Put("holding/" + context_.session.member, FormatHolding(mine)));
  std::vector<std::string> keys;
  for (const std::string& member : transfer_members_) keys.push_back("holding/" + member);
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> texts, store.Get(keys, base::seconds(120), stop));
  std::vector<Holding> all;
  for (const std::string& text : texts) {
    MEDLEY_ASSIGN_OR_RETURN(Holding holding, ParseHolding(text));
    all.push_back(std::move(holding));
  }
  MEDLEY_ASSIGN_OR_RETURN(moves_, PlanMoves(all));
  if (moves_.empty()) return absl::OkStatus();
  MEDLEY_ASSIGN_OR_RETURN(transfer_, Connect("transfer", transfer_members_, store, stop, false));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Group>> GenerationRuntime::Connect(const std::string& name,
                                                                  const std::vector<std::string>& members,
                                                                  KeyValueStore& store, std::stop_token stop,
                                                                  bool adds) {
  GroupOptions options{
      .name = name, .rank = RankIn(members, context_.session.member), .members = members, .address = context_.ip};
  options.tls = context_.tensor_tls;
  options.timeout = std::chrono::duration_cast<base::milliseconds>(context_.step_timeout);
  options.share_memory = adds;
  options.may_share_memory = context_.share_memory;
  if (!adds) return Group::Connect(options, store, std::move(stop));
  MEDLEY_ASSIGN_OR_RETURN(auto group, Group::Connect(options, store, stop));
  return device::JoinGpus(std::move(group), options, {context_.device, context_.plain_nccl}, std::move(stop));
}

absl::Status GenerationRuntime::ConnectGroups(KeyValueStore& store, std::stop_token stop) {
  std::vector<std::string> trainers;
  for (const pb::Peer& peer : trainers_) trainers.push_back(peer.slot().member());
  if (programs_.training.flows.size() > 0) {
    MEDLEY_ASSIGN_OR_RETURN(world_, Connect("world", trainers, store, stop, false));
    channel_ = std::make_unique<GroupChannel>(*world_);
  }
  return ConnectReducers(trainers, store, std::move(stop));
}

// One group for each set of devices that reduce together. All trainers connect them in the same order, so none waits in
// a circle.
absl::Status GenerationRuntime::ConnectReducers(const std::vector<std::string>& trainers, KeyValueStore& store,
                                                std::stop_token stop) {
  std::vector<GroupReducer::Route> routes(programs_.training.layouts.size());
  for (const ReducingDevices& devices : DevicesThatReduce(programs_.training)) {
    if (std::ranges::find(devices.members, device_) == devices.members.end()) continue;
    std::vector<std::string> members;
    for (const int device : devices.members) members.push_back(trainers[static_cast<size_t>(device)]);
    const std::string name = fmt::format("reduce-{}", devices.layouts.front());
    MEDLEY_ASSIGN_OR_RETURN(reducing_.emplace_back(), Connect(name, members, store, stop, true));
    for (const int layout : devices.layouts) {
      routes[static_cast<size_t>(layout)] =
          RouteOver(*reducing_.back(), devices.members, programs_.training.layouts[static_cast<size_t>(layout)]);
    }
  }
  if (!reducing_.empty()) reducer_ = std::make_unique<GroupReducer>(std::move(routes));
  return absl::OkStatus();
}

absl::Status GenerationRuntime::ConnectServers(std::stop_token stop) {
  if (!NeedsServers()) return absl::OkStatus();
  const int ranks = TableRank(static_cast<int>(trainers_.size()));
  servers_ = std::make_unique<PsClient>(ShardsOf(order_, context_, {TableRank(device_), ranks}), *context_.clock);
  return servers_->Connect({stop, context_.clock->Steady() + base::seconds(30)});
}

pb::Warmed GenerationRuntime::warmed() const {
  pb::Warmed warmed;
  warmed.set_generation(generation());
  if (trains()) {
    warmed.set_rows(data_->rows());
    warmed.set_data_digest(TrainedDigest(*data_, *context_.graph, blocks_));
    warmed.set_program(program_hash_);
    warmed.set_lag(std::max(programs_.training.lag, sequence_.depth));
    warmed.set_averages(Averages());
    warmed.set_bad_rows(data_->bad_rows());
  }
  return warmed;
}

void GenerationRuntime::Abort() {
  abort_.request_stop();
  const std::string why = fmt::format("generation {} is halted", generation());
  for (const auto* group : {&transfer_, &world_}) {
    if (*group != nullptr) (*group)->Close(why);
  }
  for (const std::unique_ptr<Group>& group : reducing_) group->Close(why);
}

WaitLimit GenerationRuntime::Limit() const {
  return {abort_.get_token(), context_.clock->Steady() + context_.step_timeout};
}

bool GenerationRuntime::Averages() const {
  return std::ranges::any_of(programs_.training.blocks, [](const program::Block& block) { return block.average >= 0; });
}

absl::Status GenerationRuntime::TakeState(const pb::Switch& order) {
  MEDLEY_RETURN_IF_ERROR(Transfer(order));
  return state_ == nullptr ? absl::OkStatus() : state_->SetDiffers(Averages());
}

absl::Status GenerationRuntime::Transfer(const pb::Switch& order) {
  if (held_ != nullptr) MEDLEY_RETURN_IF_ERROR(held_->UndoTo(order.step()));
  int64_t samples = held_ != nullptr && !held_->Holds().empty() ? held_->samples() : order.state_samples();
  if (!moves_.empty()) MEDLEY_RETURN_IF_ERROR(SendAndReceive(order, samples));
  if (!trains() || state_ == held_) {
    if (state_ != nullptr && state_->Holds().empty()) state_->SetApplied(order.step(), samples);
    return absl::OkStatus();
  }
  if (held_ != nullptr) {  // copy the operations that this trainer also held at its former place
    for (const int operation : state_->Holds()) {
      const auto from = held_->Values(operation), to = state_->Values(operation);
      for (size_t i = 0; i < from.size(); ++i) MEDLEY_RETURN_IF_ERROR(CopyValues(from[i], to[i]));
    }
  }
  if (order_.origin() == pb::STATE_ORIGIN_CHECKPOINT) {
    if (state_->AppliedStep() != order.step()) {
      return base::DataLoss("checkpoint {} is of step {}, but the switch is at step {}", order_.checkpoint(),
                            state_->AppliedStep(), order.step());
    }
    return absl::OkStatus();
  }
  state_->SetApplied(order.step(), order_.origin() == pb::STATE_ORIGIN_INITIAL ? 0 : samples);
  return absl::OkStatus();
}

// Both at once: two trainers that exchange more than a group holds would wait for each other otherwise.
absl::Status GenerationRuntime::SendAndReceive(const pb::Switch& order, int64_t& samples) {
  absl::Status sent, received;
  {
    const std::jthread sending([&] {
      sent = SendState(order);
      if (!sent.ok()) transfer_->Close(base::Message(sent));
    });
    received = ReceiveState(order, samples);
    if (!received.ok()) transfer_->Close(base::Message(received));
  }
  if (!received.ok() && !absl::IsAborted(received)) return received;
  MEDLEY_RETURN_IF_ERROR(sent);
  MEDLEY_RETURN_IF_ERROR(received);
  return transfer_->Flush();
}

absl::Status GenerationRuntime::SendState(const pb::Switch& order) {
  for (const Move& move : moves_) {
    if (move.from != transfer_rank_) continue;
    const std::array<int64_t, 2> header{order.step(), held_->samples()};
    MEDLEY_RETURN_IF_ERROR(transfer_->Send(move.to, kHeaderTag, std::as_bytes(std::span(header))));
    uint64_t tag = static_cast<uint64_t>(move.operation) << 8;
    for (const DenseValues& values : held_->Values(move.operation)) {
      MEDLEY_RETURN_IF_ERROR(SendValues(*transfer_, move.to, tag++, values));
    }
  }
  return absl::OkStatus();
}

absl::Status GenerationRuntime::ReceiveState(const pb::Switch& order, int64_t& samples) {
  for (const Move& move : moves_) {
    if (move.to != transfer_rank_) continue;
    std::array<int64_t, 2> header{};
    MEDLEY_RETURN_IF_ERROR(transfer_->Recv(move.from, kHeaderTag, std::as_writable_bytes(std::span(header))));
    if (header[0] != order.step()) {
      return base::Internal("{} sent its state of step {}, but the switch is at step {}",
                            transfer_members_[static_cast<size_t>(move.from)], header[0], order.step());
    }
    samples = header[1];
    uint64_t tag = static_cast<uint64_t>(move.operation) << 8;
    for (const DenseValues& values : state_->Values(move.operation)) {
      MEDLEY_RETURN_IF_ERROR(ReceiveValues(*transfer_, move.from, tag++, values));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<StepResult>> GenerationRuntime::RunStep(const StepLease& lease, const StepLease* ahead) {
  held_ = nullptr;  // after the first step no Halt returns to the previous generation
  executor_->Prefetch(lease);
  if (ahead != nullptr) executor_->Prefetch(*ahead);
  state_->BeginStep(lease.step, lease.count);
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<StepResult> result, executor_->RunStep(lease, Limit()));
  // Peers may need messages of an open step only after a later lease.
  if (world_ != nullptr && programs_.training.lag == 1) MEDLEY_RETURN_IF_ERROR(world_->Flush());
  return result;
}

absl::StatusOr<std::optional<StepResult>> GenerationRuntime::Drain() {
  MEDLEY_ASSIGN_OR_RETURN(const std::optional<StepResult> result, executor_->Drain(Limit()));
  if (world_ != nullptr && !result) MEDLEY_RETURN_IF_ERROR(world_->Flush());
  return result;
}

void GenerationRuntime::LoseOpenSteps() {
  if (executor_ != nullptr) executor_->DropPrefetched();
}

absl::StatusOr<double> GenerationRuntime::Probe(int count, base::nanoseconds pause) {
  if (executor_ == nullptr) return base::FailedPrecondition("generation {} has no place for this one", generation());
  return executor_->Probe(count, pause);
}

// Reading the data takes the trainers different times, which are no part of a chunk's time. Each says when it has
// read. The coordinator halts the generation, which ends this wait, when no member makes progress.
absl::Status GenerationRuntime::AwaitData(const std::string& name, int64_t step) {
  const auto store = MakeRendezvousStore(context_.session, generation());
  const auto key = [&](const std::string& member) { return name + "/" + member; };
  MEDLEY_RETURN_IF_ERROR(store->Put(key(context_.session.member), "read"));
  std::vector<std::string> keys;
  for (const pb::Peer& peer : trainers_) keys.push_back(key(peer.slot().member()));
  while (!abort_.stop_requested()) {
    const absl::Status status = store->Get(keys, base::seconds(60), abort_.get_token()).status();
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return status;
  }
  return base::Cancelled("the evaluation at step {} was stopped", step);
}

absl::StatusOr<ScoreSums> GenerationRuntime::Evaluate(const Dataset& data, const std::string& name, int64_t step,
                                                      std::function<void()> progressed) {
  if (data_read_.insert(name).second && world_ != nullptr) MEDLEY_RETURN_IF_ERROR(AwaitData(name, step));
  const EvaluationOptions options{.scoring = {.task = context_.spec->data.schema.task,
                                              .outputs = context_.graph->Outputs(),
                                              .tokens = context_.graph->shape.labels,
                                              .deviation = data_->transform().label.deviation,
                                              .mean = data_->transform().label.mean,
                                              .log = data_->transform().label.log},
                                  .chunk_timeout = context_.step_timeout,
                                  .stop = abort_.get_token(),
                                  .on_chunk = std::move(progressed)};
  MEDLEY_ASSIGN_OR_RETURN(ScoreSums result, executor_->Evaluate(data, step, options));
  if (world_ != nullptr) MEDLEY_RETURN_IF_ERROR(world_->Flush());
  return result;
}

}  // namespace medley::worker
