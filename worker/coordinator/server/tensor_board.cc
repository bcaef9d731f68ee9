#include "worker/coordinator/server/tensor_board.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "common/base/status.h"
#include "common/model/task.h"
#include "common/tf_record/tf_record.h"
#include "medley/tensorboard/v1/event.pb.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::tensorboard::v1;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr base::nanoseconds kLeastInterval = base::seconds(1);
constexpr int64_t kPointsOfAll = 2000;  // a point is written when this part of the time so far has passed

// The number in the name of an event file, by which TensorBoard orders them; 0: another file.
int64_t NumberOf(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  int64_t number = 0;
  std::from_chars(name.data(), name.data() + name.size(), number);
  return number;
}

int64_t UnixSeconds(base::WallTime at) { return static_cast<int64_t>(base::ToSeconds(at.time_since_epoch())); }

absl::StatusOr<std::string> NewName(const Volume& volume, const std::string& writer, base::WallTime now) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<std::string> names, volume.files().List(volume / kTensorBoardFolder));
  int64_t number = UnixSeconds(now);
  for (const std::string& name : names) number = std::max(number, NumberOf(name) + 1);
  return fmt::format("{}{:010}.{}", kPrefix, number, writer);
}

}  // namespace

class TensorBoard::Event {
 public:
  Event(int64_t step, double seconds) {
    event_.set_step(step);
    event_.set_wall_time(seconds);
  }
  pb::Event& message() { return event_; }
  void Scalar(std::string tag, double value) {
    pb::Value& added = *event_.mutable_summary()->add_values();
    added.set_tag(std::move(tag));
    added.set_simple_value(static_cast<float>(value));
  }
  std::string Record() const { return tf_record::TfRecord(event_.SerializeAsString()); }

 private:
  pb::Event event_;
};

TensorBoard::TensorBoard(Options options, Files& files, int fd, base::WallTime now)
    : options_(std::move(options)), files_(files), fd_(fd), opened_at_(now), written_at_(now) {}

TensorBoard::~TensorBoard() { files_.Close(fd_); }

absl::StatusOr<std::unique_ptr<TensorBoard>> TensorBoard::Open(const Volume& volume, Options options, Position position,
                                                               base::WallTime now) {
  MEDLEY_RETURN_IF_ERROR(volume.files().CreateFolder(volume / kTensorBoardFolder));
  MEDLEY_ASSIGN_OR_RETURN(const std::string name, NewName(volume, options.writer, now));
  MEDLEY_ASSIGN_OR_RETURN(const int fd, volume.files().Create(volume / kTensorBoardFolder / name));
  std::unique_ptr<TensorBoard> board(new TensorBoard(std::move(options), volume.files(), fd, now));
  Event version(0, board->Seconds(now));
  version.message().set_file_version("brain.Event:2");
  MEDLEY_RETURN_IF_ERROR(board->Write(version));
  board->last_step_ = position.step;
  board->last_evaluation_ = position.evaluation;
  MEDLEY_RETURN_IF_ERROR(board->Begin(position.step + 1));
  return board;
}

double TensorBoard::Seconds(base::WallTime now) {
  return last_seconds_ = std::max(last_seconds_, base::ToSeconds(now.time_since_epoch()));
}

absl::Status TensorBoard::Write(const Event& event) { return files_.Write(fd_, event.Record()); }

absl::Status TensorBoard::Begin(int64_t step) {
  Event start(step, last_seconds_);
  start.message().mutable_session_log()->set_status(pb::SESSION_STATUS_START);
  return Write(start);
}

absl::Status TensorBoard::Add(const StepCommand& step, base::WallTime now) {
  if (step.range.step <= last_step_) return absl::OkStatus();
  last_step_ = step.range.step;
  ++steps_;
  if (std::isfinite(step.loss)) {
    loss_sum_ += step.loss;
    ++losses_;
  }
  if (rate_since_) {
    samples_ += step.range.count;
  } else {
    rate_since_ = now;
  }
  if (now - written_at_ < std::max<base::nanoseconds>(kLeastInterval, (now - opened_at_) / kPointsOfAll)) {
    return absl::OkStatus();
  }
  return Flush(now);
}

absl::Status TensorBoard::Flush(base::WallTime now) {
  if (steps_ == 0) return absl::OkStatus();
  Event event(last_step_, Seconds(now));
  if (losses_ > 0) event.Scalar("training/loss", loss_sum_ / static_cast<double>(losses_));
  if (options_.learning_rate) event.Scalar("training/learning_rate", options_.learning_rate(last_step_));
  if (rate_since_ && samples_ > 0 && now > *rate_since_) {
    event.Scalar("training/samples_per_second", static_cast<double>(samples_) / base::ToSeconds(now - *rate_since_));
  }
  loss_sum_ = 0;
  losses_ = steps_ = samples_ = 0;
  if (rate_since_) rate_since_ = now;
  written_at_ = now;
  return Write(event);
}

absl::Status TensorBoard::Sync() { return files_.Sync(fd_); }

absl::Status TensorBoard::Add(const EvaluationCommand& evaluation, base::WallTime now) {
  const job::v1::EvaluationRecord& record = evaluation.record;
  if (record.step() <= last_evaluation_) return absl::OkStatus();
  last_evaluation_ = record.step();
  MEDLEY_RETURN_IF_ERROR(Flush(now));
  rate_since_.reset();  // training has waited for the evaluation
  Event event(record.step(), Seconds(now));
  if (record.has_loss()) event.Scalar("training/loss_between_evaluations", record.loss());
  const std::map<std::string, double> metrics(record.metrics().begin(), record.metrics().end());  // sorted by name
  for (const auto& [name, value] : metrics) {
    if (!model::IsSampleCount(name)) event.Scalar("validation/" + name, value);
  }
  MEDLEY_RETURN_IF_ERROR(Write(event));
  return files_.Sync(fd_);
}

absl::Status TensorBoard::Rollback(const RollbackCommand& rollback, base::WallTime now) {
  if (rollback.to_step >= last_step_) return absl::OkStatus();
  last_step_ = rollback.to_step;
  last_evaluation_ = std::min(last_evaluation_, rollback.to_step);
  loss_sum_ = 0;
  losses_ = steps_ = samples_ = 0;
  rate_since_.reset();
  Seconds(now);
  return Begin(rollback.to_step + 1);
}

}  // namespace medley::worker
