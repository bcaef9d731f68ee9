#include "worker/trainer/trainer.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/base/processor_time.h"
#include "common/base/status.h"
#include "worker/trainer/background_writer.h"
#include "worker/trainer/evaluation_report.h"
#include "worker/trainer/generation_runtime.h"
#include "worker/trainer/rebuild.h"
#include "worker/trainer/table_report.h"
#include "worker/trainer/trainer_data.h"

namespace medley::worker {
namespace pb = ::medley::job::v1;
namespace {

pb::FittedTransform ToProto(const Transform& transform) {
  pb::FittedTransform message;
  for (const NumericTransform& column : transform.columns) {
    pb::FittedColumn& to = *message.add_columns();
    to.set_log(column.log);
    to.set_exact_mean(column.mean);
    to.set_exact_inverse_deviation(column.inverse_deviation);
    to.mutable_exact_edges()->Assign(column.edges.begin(), column.edges.end());
  }
  message.mutable_header()->Assign(transform.header.begin(), transform.header.end());
  message.set_double_precision(true);
  message.set_weight_mean(transform.weight_mean);
  message.mutable_label()->set_log(transform.label.log);
  message.mutable_label()->set_exact_mean(transform.label.mean);
  message.mutable_label()->set_exact_deviation(transform.label.deviation);
  message.mutable_label()->mutable_classes()->Assign(transform.label.classes.begin(), transform.label.classes.end());
  return message;
}

void ToProto(const ScoreSums& scores, pb::Evaluated& message) {
  message.set_samples(scores.samples);
  message.set_weight(scores.weight);
  message.mutable_right()->Assign(scores.classes.right.begin(), scores.classes.right.end());
  message.mutable_predicted()->Assign(scores.classes.predicted.begin(), scores.classes.predicted.end());
  message.mutable_actual()->Assign(scores.classes.actual.begin(), scores.classes.actual.end());
  message.mutable_sums()->insert(scores.sums.begin(), scores.sums.end());
  for (const ScoreHistogram& histogram : scores.histograms) {
    pb::ScoreHistogram& to = *message.add_histograms();
    to.mutable_positives()->Assign(histogram.positives.begin(), histogram.positives.end());
    to.mutable_negatives()->Assign(histogram.negatives.begin(), histogram.negatives.end());
  }
}

StepLease FromProto(const pb::StepLease& lease) {
  return {lease.step(), lease.data_epoch(), lease.first(), lease.count(), lease.agrees()};
}

}  // namespace

class Trainer::Rep {
 public:
  Rep(TrainerContext context, LoadOptions load, Send send)
      : data_(*context.spec, context.copy_data, std::move(load), *context.clock),
        context_(WithGraph(std::move(context), data_.graph())),
        send_(std::move(send)),
        writer_(context_.checkpoint_root) {}

  void Preload(const std::stop_token& stop) { (void)data_.Train(stop); }
  Held held() const { return {held_generation_, held_step_}; }
  absl::Status CheckDevice() const { return context_.device == nullptr ? absl::OkStatus() : context_.device->Check(); }

  absl::StatusOr<std::shared_ptr<PreparedGeneration>> Prepare(const pb::Prepare& order, std::stop_token stop) {
    if (order.origin() != pb::STATE_ORIGIN_PEERS) Abort();  // the current state will be replaced
    MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> data, data_.Train(stop));
    std::shared_ptr<TrainerState> state;
    {
      base::MutexLock lock(mutex_);
      for (const auto& runtime : {current_, previous_}) {
        if (runtime != nullptr && runtime->generation() == order.source_generation() && state == nullptr)
          state = runtime->state();
      }
    }
    ResentPushes pushes(order, context_.session, context_.push_log, *context_.clock);
    MEDLEY_ASSIGN_OR_RETURN(std::shared_ptr<GenerationRuntime> runtime,
                            GenerationRuntime::Build(order, context_, std::move(data), std::move(state), stop));
    MEDLEY_RETURN_IF_ERROR(pushes.Finish(stop));
    return std::shared_ptr<PreparedGeneration>(std::move(runtime));
  }

  absl::StatusOr<pb::Ready> Switch(const pb::Switch& order, const std::shared_ptr<GenerationRuntime>& next) {
    {
      base::MutexLock lock(mutex_);
      if (next == nullptr || next->generation() != order.generation()) {
        return base::FailedPrecondition("cannot switch to generation {}, because this trainer has not prepared it",
                                        order.generation());
      }
      switching_ = next;
    }
    const absl::Status taken = next->TakeState(order);
    {
      base::MutexLock lock(mutex_);
      switching_ = nullptr;
      MEDLEY_RETURN_IF_ERROR(taken);
      if (context_.push_log != nullptr) {
        next->continues() ? context_.push_log->CutAfter(order.step()) : context_.push_log->Clear();
      }
      if (next->trains()) {
        previous_ = std::exchange(current_, next);
        held_generation_ = next->generation();
      }
    }
    failed_ = false;
    processor_.reset();
    checkpoint_.reset();
    begun_step_ = order.step();
    pb::Ready ready;
    ready.set_generation(order.generation());
    ready.set_step(order.step());
    const std::shared_ptr<TrainerState> state = next->trains() ? next->state() : current_->state();
    ready.set_state_samples(state->samples());
    held_step_ = order.step();
    return ready;
  }

  absl::Status Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease* ahead) {
    if (current_ == nullptr || current_->generation() != generation || failed_) return absl::OkStatus();
    ForgetPrevious();
    StepLease next;
    if (ahead != nullptr) next = FromProto(*ahead);
    if (context_.push_log != nullptr) context_.push_log->DropThrough(lease.saved_step());
    begun_step_ = lease.step();
    return Report(current_->RunStep(FromProto(lease), ahead != nullptr ? &next : nullptr)).status();
  }

  absl::Status Drain(const pb::Drain& order) {
    while (current_ != nullptr && current_->generation() == order.generation() && !failed_) {
      MEDLEY_ASSIGN_OR_RETURN(const bool completed, Report(current_->Drain()));
      if (!completed) break;
    }
    return absl::OkStatus();
  }

  // With an asynchronous schedule, steps may be open: the checkpoint is then written when its step has ended.
  absl::Status Checkpoint(const pb::Checkpoint& order, BackgroundWriter::Done done) {
    if (current_ == nullptr || current_->generation() != order.generation() || failed_) return absl::OkStatus();
    if (current_->state()->AppliedStep() < order.step() && order.step() <= begun_step_) {
      checkpoint_ = {order, std::move(done)};
      return absl::OkStatus();
    }
    MEDLEY_RETURN_IF_ERROR(CheckAppliedStep(order.step()));
    WriteCheckpoint(order, std::move(done));
    return absl::OkStatus();
  }

  absl::StatusOr<pb::Evaluated> Evaluate(const pb::Evaluate& order) {
    pb::Evaluated evaluated;
    processor_.reset();
    if (current_ == nullptr || current_->generation() != order.generation()) return evaluated;
    MEDLEY_RETURN_IF_ERROR(CheckAppliedStep(order.step()));
    const bool validation = order.data() == pb::EVALUATION_DATA_VALIDATION;
    const model::DataSpec& spec = context_.spec->data;
    if ((validation ? spec.validation.has_value() : spec.test.has_value()) && !order.only_transform()) {
      EvaluationReport report(order, *context_.clock, send_);
      const auto progressed = [&report] { report.Progressed(); };
      MEDLEY_ASSIGN_OR_RETURN(
          const std::shared_ptr<const Dataset> data,
          validation ? data_.Validation(current_->aborted(), progressed) : data_.Test(current_->aborted(), progressed));
      MEDLEY_ASSIGN_OR_RETURN(
          const ScoreSums scores,
          current_->Evaluate(*data, validation ? "validation-data" : "test-data", order.step(), progressed));
      ToProto(scores, evaluated);
      evaluated.set_test_digest(data->digest());
    }
    if (current_->device() == 0) {
      MEDLEY_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> train, data_.Train({}));
      *evaluated.mutable_transform() = ToProto(train->transform());
    }
    return evaluated;
  }

  // The links of the generation that it held are of no use any more.
  absl::StatusOr<double> Probe(const pb::Probe& order) {
    if (current_ == nullptr) return base::FailedPrecondition("this trainer has not trained yet");
    current_->Abort();
    processor_.reset();
    ForgetPrevious();
    const double pause = std::isfinite(order.pause_seconds()) ? order.pause_seconds() : 0;
    return current_->Probe(order.count(), base::FromSeconds(std::clamp(pause, 0.0, 1.0)));
  }

  void Abort() {
    base::MutexLock lock(mutex_);
    for (const auto& runtime : {current_, previous_, switching_}) {
      if (runtime != nullptr) runtime->Abort();
    }
  }

  pb::Halted Halt(int64_t generation) {
    checkpoint_.reset();
    if (current_ != nullptr) current_->LoseOpenSteps();
    writer_.Cancel();  // the coordinator gives up the checkpoint of a generation that it halts
    {
      base::MutexLock lock(mutex_);
      if (current_ != nullptr && current_->generation() > generation && previous_ != nullptr) {
        current_ = std::exchange(previous_, nullptr);
      }
    }
    pb::Halted halted;
    halted.set_generation(generation);
    if (current_ == nullptr) return halted;
    held_generation_ = current_->generation();
    held_step_ = current_->state()->AgreedStep();
    halted.set_applied_step(held_step_);
    halted.set_undo_to_step(current_->state()->UndoLimit());
    if (context_.push_log != nullptr) ReportPushes(*context_.push_log, halted);
    return halted;
  }

 private:
  struct DueCheckpoint {
    pb::Checkpoint order;
    BackgroundWriter::Done done;
  };

  // Sends the progress of a step that has ended. Returns whether one has.
  absl::StatusOr<bool> Report(const absl::StatusOr<std::optional<StepResult>>& ended) {
    failed_ = !ended.ok();
    MEDLEY_RETURN_IF_ERROR(ended.status());
    if (!ended->has_value()) return false;
    const StepResult& result = **ended;
    held_step_ = result.step;
    if (!std::isfinite(result.loss_sum)) {
      failed_ = true;
      return base::OutOfRange("the loss of step {} is not finite: the training diverged", result.step);
    }
    if (checkpoint_ && checkpoint_->order.step() == result.step) {
      const DueCheckpoint due = *std::exchange(checkpoint_, std::nullopt);
      WriteCheckpoint(due.order, due.done);
    }
    pb::SessionRequest request;
    pb::Progress& progress = *request.mutable_progress();
    progress.set_generation(current_->generation());
    progress.set_step(result.step);
    progress.set_loss_sum(result.loss_sum);
    progress.set_loss_samples(result.loss_samples);
    progress.set_compute_seconds(result.compute_seconds);
    progress.set_comm_seconds(result.comm_seconds);
    progress.set_data_seconds(result.data_seconds);
    progress.set_state_samples(current_->state()->samples());
    const double processor = base::ProcessorSeconds();
    if (processor_) progress.set_processor_seconds(processor - *processor_);
    processor_ = processor;
    progress.set_checkpoint_seconds(std::exchange(checkpoint_seconds_, 0));
    tables_.Fill(*current_->state(), progress);
    progress.set_wants_checkpoint(context_.push_log != nullptr && context_.push_log->IsShort());
    send_(std::move(request));
    return true;
  }

  void WriteCheckpoint(const pb::Checkpoint& order, BackgroundWriter::Done done) {
    const base::SteadyTime begin = context_.clock->Steady();
    CopyState(order, std::move(done));
    checkpoint_seconds_ += base::ToSeconds(context_.clock->Steady() - begin);
  }

  void CopyState(const pb::Checkpoint& order, BackgroundWriter::Done done) {
    processor_.reset();
    std::set<int> operations = current_->Writes();
    std::erase_if(operations,
                  [held = current_->state()->Holds()](int op) { return !std::ranges::binary_search(held, op); });
    if (!operations.empty()) {
      absl::StatusOr<BackgroundWriter::File> file = Save(order.folder(), operations);
      if (!file.ok()) return done(file.status());
      return writer_.Write(order.step(), *std::move(file), std::move(done));
    }
    pb::Checkpointed nothing;
    nothing.set_step(order.step());
    done(std::move(nothing));
  }

  absl::Status CheckAppliedStep(int64_t step) const {
    const int64_t at = current_->state()->AppliedStep();
    if (at == step) return absl::OkStatus();
    return base::FailedPrecondition("the order is for step {}, but the trainer has applied step {}", step, at);
  }

  // Copies the state of these operations, and says how to write it.
  absl::StatusOr<BackgroundWriter::File> Save(const std::string& folder, const std::set<int>& operations) {
    MEDLEY_ASSIGN_OR_RETURN(TrainerSnapshot copy, current_->state()->Snapshot(operations));
    const auto snapshot = std::make_shared<const TrainerSnapshot>(std::move(copy));
    const auto add = [snapshot](CheckpointWriter& writer, const FileProgress&) { return snapshot->Write(writer); };
    return BackgroundWriter::File{folder,
                                  {context_.owner, current_->generation(), current_->state()->AppliedStep(),
                                   CheckpointFileKind::kDense, current_->device()},
                                  add};
  }

  void ForgetPrevious() {
    std::shared_ptr<GenerationRuntime> dropped;
    base::MutexLock lock(mutex_);
    dropped = std::exchange(previous_, nullptr);
  }

  // The graph of the context follows from the training data. TrainerData sets it before anything reads it.
  static TrainerContext WithGraph(TrainerContext context, const Graph& graph) {
    context.graph = &graph;
    return context;
  }

  TrainerData data_;
  const TrainerContext context_;
  const Send send_;
  std::atomic<int64_t> held_generation_ = 0;
  std::atomic<int64_t> held_step_ = 0;
  // Only the worker thread writes these, under mutex_; so it reads them without the lock.
  base::Mutex mutex_;
  std::shared_ptr<GenerationRuntime> current_;
  std::shared_ptr<GenerationRuntime> previous_;  // until the first lease of current_
  std::shared_ptr<GenerationRuntime> switching_;
  bool failed_ = false;                      // a step of current_ failed; ignores leases until Halt
  int64_t begun_step_ = 0;                   // the last step that began
  std::optional<double> processor_;          // time at the end of the last step; nullopt: other work came after it
  std::optional<DueCheckpoint> checkpoint_;  // of a step that is open
  double checkpoint_seconds_ = 0;            // that training stood still for one, since the last report
  TableReport tables_;
  BackgroundWriter writer_;
};

Trainer::Trainer(TrainerContext context, LoadOptions load, Send send)
    : rep_(std::make_unique<Rep>(std::move(context), load, std::move(send))) {}
Trainer::~Trainer() = default;
void Trainer::Preload(std::stop_token stop) { rep_->Preload(std::move(stop)); }
absl::Status Trainer::CheckDevice() { return rep_->CheckDevice(); }
Held Trainer::held() const { return rep_->held(); }
absl::StatusOr<std::shared_ptr<PreparedGeneration>> Trainer::Prepare(const pb::Prepare& order, std::stop_token stop) {
  return rep_->Prepare(order, std::move(stop));
}
absl::StatusOr<pb::Ready> Trainer::Switch(const pb::Switch& order, std::shared_ptr<PreparedGeneration> next) {
  return rep_->Switch(order, std::dynamic_pointer_cast<GenerationRuntime>(std::move(next)));
}
absl::Status Trainer::Train(int64_t generation, const pb::StepLease& lease, const pb::StepLease* ahead) {
  return rep_->Train(generation, lease, ahead);
}
absl::Status Trainer::Drain(const pb::Drain& order) { return rep_->Drain(order); }
absl::Status Trainer::Checkpoint(const pb::Checkpoint& order, BackgroundWriter::Done done) {
  return rep_->Checkpoint(order, std::move(done));
}
absl::StatusOr<pb::Evaluated> Trainer::Evaluate(const pb::Evaluate& order) { return rep_->Evaluate(order); }
absl::StatusOr<double> Trainer::Probe(const pb::Probe& order) { return rep_->Probe(order); }
void Trainer::Abort() { rep_->Abort(); }
pb::Halted Trainer::Halt(int64_t generation) { return rep_->Halt(generation); }

}  // namespace medley::worker
