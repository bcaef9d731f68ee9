#include "worker/coordinator/server/step_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

constexpr std::streamoff kTail = 64 << 10;
constexpr size_t kLongestLine = size_t{1} << 20;    // far more than any line that is written
constexpr double kLatest = 4e9;                     // seconds; a time that the clock can represent
constexpr int64_t kMostOfAFile = int64_t{1} << 26;  // of a file whose end cannot be read alone

base::WallTime TimeOf(const nlohmann::json& line) {
  const auto seconds = line.find("unix_seconds");
  if (seconds == line.end() || !seconds->is_number()) return {};
  return base::WallTime(std::chrono::duration_cast<base::WallTime::duration>(
      base::FromSeconds(std::clamp(seconds->get<double>(), 0.0, kLatest))));
}

// Returns the last step after all rollbacks, and the length in bytes of the complete lines.
std::pair<CommittedStep, size_t> Scan(std::string_view text) {
  CommittedStep last;
  size_t whole = 0;
  while (whole < text.size()) {
    const size_t end = text.find('\n', whole);
    if (end == std::string_view::npos || end - whole > kLongestLine) break;
    const auto line = nlohmann::json::parse(text.substr(whole, end - whole), nullptr, false);
    if (!line.is_object()) break;
    if (line.contains("step") && line["step"].is_number_integer()) last = {line["step"].get<int64_t>(), TimeOf(line)};
    if (line.contains("drained") && line["drained"].is_number_integer()) last.step = line["drained"].get<int64_t>();
    if (line.contains("rollback_to") && line["rollback_to"].is_number_integer()) {
      last = {line["rollback_to"].get<int64_t>(), {}};  // smaller: see Rollback
    }
    whole = end + 1;
  }
  return {last, whole};
}

// The same from the end of a long file, of which only the last line matters. nullopt: read the whole file.
std::optional<std::pair<CommittedStep, size_t>> ScanTail(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file.tellg();
  if (!file || size <= kTail) return std::nullopt;
  std::string tail(static_cast<size_t>(kTail), '\0');
  if (!file.seekg(size - kTail).read(tail.data(), kTail)) return std::nullopt;
  const size_t end = tail.rfind('\n');
  const size_t before = end == std::string::npos || end == 0 ? end : tail.rfind('\n', end - 1);
  if (end == std::string::npos || before == std::string::npos) return std::nullopt;
  const auto [last, whole] = Scan(std::string_view(tail).substr(before + 1, end - before));
  if (whole != end - before) return std::nullopt;
  return std::pair(last, static_cast<size_t>(size - kTail) + end + 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepLog>> StepLog::Open(const std::filesystem::path& path, bool take_over) {
  std::pair<CommittedStep, size_t> state;
  if (const auto end = ScanTail(path)) {
    state = *end;
  } else {
    const absl::StatusOr<std::string> text = base::ReadFile(path, kMostOfAFile);
    if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
    if (text.ok()) state = Scan(*text);
  }
  if (take_over) {
    const absl::Status copied = base::CopyFileAtomic(path, static_cast<int64_t>(state.second), path);
    if (!copied.ok() && !absl::IsNotFound(copied)) return copied;
  }
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return base::ErrnoStatus(errno, "opening " + path.string());
  std::unique_ptr<StepLog> log(new StepLog(fd, path.filename().string(), state.first));
  if (ftruncate(fd, static_cast<off_t>(state.second)) != 0)
    return base::ErrnoStatus(errno, "truncating " + path.string());
  return log;
}

absl::StatusOr<std::unique_ptr<StepLog>> StepLog::Open(const Volume& volume, const std::string& name,
                                                       const std::string& writer, bool take_over) {
  if (!volume.of_objects()) return Open(volume / (name + ".jsonl"), take_over);
  std::unique_ptr<StepLog> log(new StepLog(-1, name, {}));
  log->objects_.emplace(volume, volume / name, writer);
  MEDLEY_ASSIGN_OR_RETURN(const std::string last, log->objects_->Last());
  if (last.empty()) return log;
  log->last_ = Scan(last).first;
  // What a former coordinator writes from now on does not count: its objects come before this line.
  MEDLEY_RETURN_IF_ERROR(log->Write(fmt::format("{{\"rollback_to\":{},\"generation\":0}}\n", log->last_.step)));
  return log;
}

StepLog::~StepLog() {
  (void)(objects_ ? objects_->Sync() : WritePending());
  if (fd_ >= 0) close(fd_);
}

absl::Status StepLog::Write(std::string_view line) {
  if (objects_) return objects_->Add(line);
  constexpr size_t kMostPending = size_t{64} << 20;
  if (pending_.size() + line.size() > kMostPending) {
    return base::ResourceExhausted("{}: lines are lost, because {} bytes wait for the volume", name_, pending_.size());
  }
  pending_ += line;
  return WritePending();
}

absl::Status StepLog::WritePending() {
  size_t written = 0;
  absl::Status status;
  while (written < pending_.size() && status.ok()) {
    const ssize_t n = write(fd_, pending_.data() + written, pending_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = base::ErrnoStatus(errno, "writing " + name_);
    if (n > 0) written += static_cast<size_t>(n);
  }
  pending_.erase(0, written);
  return status;
}

absl::Status StepLog::Sync() {
  if (objects_) return objects_->Sync();
  MEDLEY_RETURN_IF_ERROR(WritePending());
  return fdatasync(fd_) == 0 ? absl::OkStatus() : base::ErrnoStatus(errno, "fdatasync " + name_);
}

absl::Status StepLog::Add(const StepCommand& step) {
  if (step.range.step <= last_.step) return absl::OkStatus();
  last_ = {step.range.step, step.at};
  std::string more = step.agreed ? ",\"agreed\":true" : "";
  const auto add = [&more](std::string_view name, double seconds) {
    if (seconds > 0) more += fmt::format(",\"{}\":{:.3f}", name, seconds);
  };
  add("unix_seconds", base::ToSeconds(step.at.time_since_epoch()));
  add("data_seconds", step.data_seconds);
  add("checkpoint_seconds", step.checkpoint_seconds);
  const std::string loss = std::isfinite(step.loss) ? fmt::format("{:.9g}", step.loss) : "null";
  return Write(fmt::format(
      "{{\"step\":{},\"data_epoch\":{},\"first\":{},\"count\":{},\"generation\":{},\"loss\":{}{}}}\n", step.range.step,
      step.range.data_epoch, step.range.first, step.range.count, step.generation, loss, more));
}

absl::Status StepLog::Add(const EvaluationCommand& evaluation) {
  const job::v1::EvaluationRecord& record = evaluation.record;
  if (record.step() <= last_.step) return absl::OkStatus();
  last_ = {record.step(), {}};
  nlohmann::ordered_json line = {
      {"step", record.step()}, {"epochs", record.epochs()}, {"generation", evaluation.generation}};
  line["loss"] = record.has_loss() ? nlohmann::ordered_json(record.loss()) : nlohmann::ordered_json();
  const std::map<std::string, double> metrics(record.metrics().begin(), record.metrics().end());  // sorted by name
  for (const auto& [name, value] : metrics) line["metrics"][name] = value;
  line["unix_seconds"] = record.at().seconds();
  return Write(line.dump() + "\n");
}

absl::Status StepLog::Add(const DrainCommand& drain) {
  return Write(fmt::format("{{\"drained\":{},\"generation\":{}}}\n", drain.step, drain.generation));
}

absl::Status StepLog::Rollback(const RollbackCommand& rollback) {
  if (rollback.to_step >= last_.step) return absl::OkStatus();
  last_ = {rollback.to_step, {}};
  return Write(fmt::format("{{\"rollback_to\":{},\"generation\":{}}}\n", rollback.to_step, rollback.generation));
}

}  // namespace medley::worker
