#include "worker/pipeline/step_executor.h"

#include <algorithm>
#include <utility>

#include "common/base/status.h"
#include "worker/pipeline/batch_assembler.h"
#include "worker/pipeline/prefetcher.h"
#include "worker/pipeline/reshard.h"
#include "worker/pipeline/schedule.h"

namespace medley::worker {

StagePlace PlaceOf(const model::ExecutionPlan& plan, int stage, int replica, uint64_t seed) {
  StagePlace place;
  place.stage = stage;
  place.replica = replica;
  for (const model::Stage& other : plan.stages) place.shares.push_back(ReplicaShares(other));
  place.schedule = plan.schedule.kind;
  place.micro_batches = plan.schedule.micro_batches;
  place.seed = seed;
  return place;
}

class StepExecutor::Rep {
 public:
  Rep(StagePlace place, StepParts parts, Optimizer optimizer)
      : place_(std::move(place)),
        parts_(parts),
        optimizer_(optimizer),
        evaluator_(place_, *parts.data, parts.compute->Tables()),
        prefetcher_(BatchAssembler(place_, *parts.data, parts.compute->Tables()), parts.sparse) {}

  absl::StatusOr<StepResult> RunStep(const StepLease& lease, const WaitLimit& limit);
  absl::StatusOr<ScoreSums> Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options);
  Prefetcher& prefetcher() { return prefetcher_; }

 private:
  // The samples of this replica's micro-batch that one replica of a neighbouring stage holds.
  struct Piece {
    int peer = 0;
    SampleRange range;
  };

  // Runs `work` and adds its duration to the step's communication time.
  template <typename Work>
  auto Timed(const Work& work) {
    const base::SteadyTime start = parts_.clock->Steady();
    auto result = work();
    comm_ += parts_.clock->Steady() - start;
    return result;
  }

  int stages() const { return static_cast<int>(place_.shares.size()); }
  bool first_stage() const { return place_.stage == 0; }
  bool last_stage() const { return place_.stage + 1 == stages(); }
  std::vector<Piece> PiecesFrom(int count) const;
  std::vector<Piece> PiecesTo(int count) const;
  absl::Status Receive(const Tag& tag, std::span<const Piece> pieces, int width, int samples, std::vector<float>& data,
                       const WaitLimit& limit);
  absl::Status Send(const Tag& tag, std::span<const Piece> pieces, int width, std::span<const float> data,
                    const WaitLimit& limit);
  absl::Status Forward(const PreparedStep& step, int micro, const WaitLimit& limit);
  absl::Status Backward(const PreparedStep& step, int micro, const WaitLimit& limit);
  absl::Status Synchronize(const PreparedStep& step, const WaitLimit& limit);
  absl::Status EvaluateChunk(const Dataset& test, int64_t step, int number, SampleRange chunk, Scorer& scorer,
                             const WaitLimit& limit);

  const StagePlace place_;
  const StepParts parts_;
  const Optimizer optimizer_;
  base::nanoseconds comm_{0};
  std::vector<std::vector<float>> inputs_;  // one per micro-batch
  std::vector<float> gradient_;
  PreparedStep chunk_;
  BatchAssembler evaluator_;
  Prefetcher prefetcher_;
};

// Returns which part of this replica's samples each replica of the previous stage holds, for a micro-batch of `count`
// samples over all replicas.
std::vector<StepExecutor::Rep::Piece> StepExecutor::Rep::PiecesFrom(int count) const {
  std::vector<Piece> pieces;
  if (first_stage()) return pieces;
  const size_t stage = static_cast<size_t>(place_.stage);
  const int begin = Split(count, place_.shares[stage])[static_cast<size_t>(place_.replica)].first;
  for (const Transfer& transfer : Reshard(count, place_.shares[stage - 1], place_.shares[stage])) {
    if (transfer.to == place_.replica) {
      pieces.push_back({transfer.from, {transfer.range.first - begin, transfer.range.count}});
    }
  }
  return pieces;
}

// The same for the next stage.
std::vector<StepExecutor::Rep::Piece> StepExecutor::Rep::PiecesTo(int count) const {
  std::vector<Piece> pieces;
  if (last_stage()) return pieces;
  const size_t stage = static_cast<size_t>(place_.stage);
  const int begin = Split(count, place_.shares[stage])[static_cast<size_t>(place_.replica)].first;
  for (const Transfer& transfer : Reshard(count, place_.shares[stage], place_.shares[stage + 1])) {
    if (transfer.from == place_.replica) {
      pieces.push_back({transfer.to, {transfer.range.first - begin, transfer.range.count}});
    }
  }
  return pieces;
}

absl::Status StepExecutor::Rep::Receive(const Tag& tag, std::span<const Piece> pieces, int width, int samples,
                                        std::vector<float>& data, const WaitLimit& limit) {
  data.resize(static_cast<size_t>(samples) * static_cast<size_t>(width));
  for (const Piece& piece : pieces) {
    const size_t at = static_cast<size_t>(piece.range.first) * static_cast<size_t>(width);
    const size_t size = static_cast<size_t>(piece.range.count) * static_cast<size_t>(width);
    MEDLEY_RETURN_IF_ERROR(
        Timed([&] { return parts_.channel->Recv(tag, piece.peer, std::span(data).subspan(at, size), limit); }));
  }
  return absl::OkStatus();
}

absl::Status StepExecutor::Rep::Send(const Tag& tag, std::span<const Piece> pieces, int width,
                                     std::span<const float> data, const WaitLimit& limit) {
  for (const Piece& piece : pieces) {
    const size_t at = static_cast<size_t>(piece.range.first) * static_cast<size_t>(width);
    const size_t size = static_cast<size_t>(piece.range.count) * static_cast<size_t>(width);
    MEDLEY_RETURN_IF_ERROR(Timed([&] { return parts_.channel->Send(tag, piece.peer, data.subspan(at, size), limit); }));
  }
  return absl::OkStatus();
}

absl::Status StepExecutor::Rep::Forward(const PreparedStep& step, int micro, const WaitLimit& limit) {
  const int count = MicroBatch(step.lease.count, micro, static_cast<int>(step.micros.size())).count;
  const SampleRange mine = step.micros[static_cast<size_t>(micro)];
  std::vector<float>& input = inputs_[static_cast<size_t>(micro)];
  const Tag tag{Direction::kForward, step.lease.step, micro};
  MEDLEY_RETURN_IF_ERROR(Receive(tag, PiecesFrom(count), parts_.compute->InputWidth(), mine.count, input, limit));
  MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> output,
                          parts_.compute->Forward(micro, step.batch.View(mine.first, mine.count), input));
  return Send(tag, PiecesTo(count), parts_.compute->OutputWidth(), output, limit);
}

absl::Status StepExecutor::Rep::Backward(const PreparedStep& step, int micro, const WaitLimit& limit) {
  const int count = MicroBatch(step.lease.count, micro, static_cast<int>(step.micros.size())).count;
  const SampleRange mine = step.micros[static_cast<size_t>(micro)];
  const Tag tag{Direction::kBackward, step.lease.step, micro};
  MEDLEY_RETURN_IF_ERROR(Receive(tag, PiecesTo(count), parts_.compute->OutputWidth(), mine.count, gradient_, limit));
  MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> input_gradient, parts_.compute->Backward(micro, gradient_));
  return Send(tag, PiecesFrom(count), parts_.compute->InputWidth(), input_gradient, limit);
}

// Pushes row gradients to the owner of the rows and sums dense gradients over the replicas, then updates this replica.
absl::Status StepExecutor::Rep::Synchronize(const PreparedStep& step, const WaitLimit& limit) {
  if (!step.tables.empty()) {
    std::vector<std::span<const float>> gradients;
    for (size_t table = 0; table < step.tables.size(); ++table) {
      gradients.push_back(parts_.compute->RowGradients(static_cast<int>(table)));
    }
    MEDLEY_RETURN_IF_ERROR(
        Timed([&] { return parts_.sparse->Push(step.lease.step, step.tables, gradients, step.lease.count, limit); }));
  }
  const std::span<float> dense = parts_.compute->Gradients();
  if (parts_.reducer != nullptr && !dense.empty()) {
    MEDLEY_RETURN_IF_ERROR(Timed([&] { return parts_.reducer->SumAll(step.lease.step, dense, limit); }));
  }
  return parts_.compute->ApplyUpdate(optimizer_.AtStep(step.lease.step));
}

absl::StatusOr<StepResult> StepExecutor::Rep::RunStep(const StepLease& lease, const WaitLimit& limit) {
  if (place_.schedule == model::ScheduleKind::kAsync1F1B) {
    return base::InvalidArgument(
        "plan.schedule.kind: this runtime executes only synchronous schedules, not ASYNC_1F1B");
  }
  if (lease.step != parts_.compute->AppliedStep() + 1) {
    return base::FailedPrecondition("got the lease of step {}, but the parameters have applied step {}", lease.step,
                                    parts_.compute->AppliedStep());
  }
  comm_ = {};
  const base::SteadyTime start = parts_.clock->Steady();
  auto taken = Timed([&] { return prefetcher_.Take(lease, limit); });
  if (!taken.ok()) return taken.status();
  std::unique_ptr<PreparedStep> step = *std::move(taken);

  const int micros = static_cast<int>(step->micros.size());
  inputs_.resize(std::max(inputs_.size(), step->micros.size()));
  parts_.compute->BeginStep({lease.step, micros, lease.count});
  for (size_t table = 0; table < step->tables.size(); ++table) {
    parts_.compute->SetRows(static_cast<int>(table), step->rows[table]);
  }
  for (const Action& action : StageActions(place_.schedule, place_.stage, stages(), micros)) {
    if (limit.stop.stop_requested()) return base::Cancelled("step {} was stopped", lease.step);
    MEDLEY_RETURN_IF_ERROR(action.kind == Action::Kind::kForward ? Forward(*step, action.micro, limit)
                                                                 : Backward(*step, action.micro, limit));
  }
  MEDLEY_RETURN_IF_ERROR(Synchronize(*step, limit));
  prefetcher_.Recycle(std::move(step));

  StepResult result;
  result.step = lease.step;
  result.loss_sum = parts_.compute->LossSum();
  result.loss_samples = parts_.compute->LossSamples();
  result.comm_seconds = base::ToSeconds(comm_);
  result.compute_seconds = base::ToSeconds(parts_.clock->Steady() - start) - result.comm_seconds;
  return result;
}

absl::Status StepExecutor::Rep::EvaluateChunk(const Dataset& test, int64_t step, int number, SampleRange chunk,
                                              Scorer& scorer, const WaitLimit& limit) {
  const SampleRange mine =
      Split(chunk.count, place_.shares[static_cast<size_t>(place_.stage)])[static_cast<size_t>(place_.replica)];
  evaluator_.AssembleRange(test, chunk.first + mine.first, mine.count, chunk_);
  if (!chunk_.tables.empty()) {
    MEDLEY_RETURN_IF_ERROR(parts_.sparse->Pull(step + 1, chunk_.tables, chunk_.rows, limit));
    for (size_t table = 0; table < chunk_.tables.size(); ++table) {
      parts_.compute->SetRows(static_cast<int>(table), chunk_.rows[table]);
    }
  }
  const Tag tag{Direction::kEvaluate, step, number};
  MEDLEY_RETURN_IF_ERROR(
      Receive(tag, PiecesFrom(chunk.count), parts_.compute->InputWidth(), mine.count, gradient_, limit));
  const BatchView view = chunk_.batch.View(0, mine.count);
  MEDLEY_ASSIGN_OR_RETURN(const std::span<const float> output, parts_.compute->Infer(view, gradient_));
  if (parts_.compute->IsLast()) {
    scorer.Add(output, view.labels);
    return absl::OkStatus();
  }
  return Send(tag, PiecesTo(chunk.count), parts_.compute->OutputWidth(), output, limit);
}

absl::StatusOr<ScoreSums> StepExecutor::Rep::Evaluate(const Dataset& test, int64_t step,
                                                      const EvaluationOptions& options) {
  if (!(test.shape() == parts_.data->shape()) || options.chunk <= 0) {
    return base::InvalidArgument(
        "the test data has {} fields and {} numeric columns per sample, the training data {} and {}",
        test.shape().fields, test.shape().numerics, parts_.data->shape().fields, parts_.data->shape().numerics);
  }
  inputs_.resize(std::max<size_t>(inputs_.size(), 1));
  Scorer scorer(options.scoring);
  int number = 0;
  for (int64_t first = 0; first < test.rows(); first += options.chunk, ++number) {
    if (options.stop.stop_requested()) return base::Cancelled("the evaluation at step {} was stopped", step);
    const int count = static_cast<int>(std::min<int64_t>(options.chunk, test.rows() - first));
    const WaitLimit limit{options.stop, parts_.clock->Steady() + options.chunk_timeout};
    MEDLEY_RETURN_IF_ERROR(EvaluateChunk(test, step, number, {static_cast<int>(first), count}, scorer, limit));
    if (options.on_chunk) options.on_chunk();
  }
  return parts_.compute->IsLast() ? scorer.scores() : ScoreSums();
}

StepExecutor::StepExecutor(StagePlace place, StepParts parts, Optimizer optimizer)
    : rep_(std::make_unique<Rep>(std::move(place), parts, optimizer)) {}
StepExecutor::~StepExecutor() = default;
void StepExecutor::Prefetch(const StepLease& lease) { rep_->prefetcher().Add(lease); }
absl::StatusOr<StepResult> StepExecutor::RunStep(const StepLease& lease, const WaitLimit& limit) {
  return rep_->RunStep(lease, limit);
}
absl::StatusOr<ScoreSums> StepExecutor::Evaluate(const Dataset& test, int64_t step, const EvaluationOptions& options) {
  return rep_->Evaluate(test, step, options);
}
void StepExecutor::DropPrefetched() { rep_->prefetcher().Drop(); }

}  // namespace medley::worker
