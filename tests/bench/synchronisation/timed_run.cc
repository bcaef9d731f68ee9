#include "tests/bench/synchronisation/timed_run.h"

#include <absl/cleanup/cleanup.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace medley::bench {
namespace {

namespace pb = ::medley::job::v1;
constexpr size_t kMeanOf = 50;  // steps, of a loss
constexpr auto kPatience = base::seconds(240);

// The complete lines that a file has got since the last call.
class Tail {
 public:
  explicit Tail(std::filesystem::path path) : path_(std::move(path)) {}

  std::vector<nlohmann::json> Next() {
    std::vector<nlohmann::json> lines;
    std::ifstream file(path_, std::ios::binary);
    file.seekg(read_);
    for (std::string line; std::getline(file, line) && !file.eof();) {
      read_ += static_cast<std::streamoff>(line.size()) + 1;
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }

 private:
  const std::filesystem::path path_;
  std::streamoff read_ = 0;
};

class Recorder {
 public:
  Recorder(const RunSettings& settings, const worker::JobHarness& job)
      : settings_(settings), steps_(job.checkpoints() / "steps.jsonl"), metrics_(job.checkpoints() / "metrics.jsonl") {}

  // Returns whether there was anything new.
  bool Look() {
    const base::SteadyTime now = clock_.Steady();
    const std::vector<nlohmann::json> evaluations = metrics_.Next();
    for (const nlohmann::json& line : evaluations) {
      if (!line.contains("metrics")) continue;
      timeline_.accuracies[line["step"].get<int64_t>()] = line["metrics"].value("accuracy", 0.0);
      if (stepped_) evaluating_ += base::ToSeconds(now - *stepped_);  // training waited for it
    }
    const std::vector<nlohmann::json> steps = steps_.Next();
    for (const nlohmann::json& line : steps) {
      if (!line.contains("loss")) continue;
      // With an unknown loss no mean over it reaches anything.
      timeline_.losses.push_back(line["loss"].is_number() ? line["loss"].get<double>() : std::nan(""));
      timeline_.agreements += line.contains("agreed") ? 1 : 0;
      if (!begin_ && std::ssize(timeline_.losses) >= settings_.warm_up) {
        begin_ = now;
        evaluating_ = 0;
      }
      timeline_.seconds.push_back(Since(now));
      stepped_ = now;
    }
    return !steps.empty() || !evaluations.empty();
  }
  // For training, since the warm-up.
  double Since(base::SteadyTime now) const { return begin_ ? base::ToSeconds(now - *begin_) - evaluating_ : -1; }
  Timeline& timeline() { return timeline_; }
  bool begun() const { return begin_.has_value(); }

 private:
  const RunSettings& settings_;
  base::SystemClock clock_;
  Tail steps_, metrics_;
  Timeline timeline_;
  std::optional<base::SteadyTime> begin_, stepped_;
  double evaluating_ = 0;
};

}  // namespace

double Timeline::SecondsToLoss(double loss) const {
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    sum += losses[i] - (i >= kMeanOf ? losses[i - kMeanOf] : 0);
    if (i + 1 >= kMeanOf && sum / static_cast<double>(kMeanOf) <= loss) return seconds[i];
  }
  return -1;
}

double Timeline::SecondsToAccuracy(double accuracy) const {
  double before = 0, before_at = 0;
  for (const auto& [step, reached] : accuracies) {
    if (step > std::ssize(seconds)) break;
    const double at = seconds[static_cast<size_t>(step - 1)];
    if (reached >= accuracy) return before_at + (at - before_at) * (accuracy - before) / (reached - before);
    before = reached;
    before_at = at;
  }
  return -1;
}

double Timeline::best_accuracy() const {
  double best = 0;
  for (const auto& [step, reached] : accuracies) best = std::max(best, reached);
  return best;
}

absl::StatusOr<Timeline> Run(const RunSettings& settings) {
  worker::JobHarness job(settings.options);
  const absl::Cleanup end = [&] {
    if (settings.ended) settings.ended();
  };
  base::SystemClock clock;
  job.StartCoordinator();
  job.Apply(settings.shape, "bench");
  Recorder recorder(settings, job);
  base::SteadyTime progress = clock.Steady(), asked = progress;
  while (true) {
    const base::SteadyTime now = clock.Steady();
    if (recorder.Look()) progress = now;
    Timeline& timeline = recorder.timeline();
    if (recorder.begun() && settings.during) settings.during(job, recorder.Since(now));
    const bool done = recorder.begun() &&
                      ((settings.done && settings.done(timeline)) || recorder.Since(now) >= settings.most_seconds);
    if (done || now - asked > base::seconds(1)) {
      asked = now;
      job.Poll();
      const pb::Observation seen = job.Observe();
      if (testing::Test::HasFailure() || seen.phase() == pb::JOB_PHASE_FAILED || seen.restarts() > 0) {
        return base::FailedPrecondition("the job failed: {}{}", seen.ShortDebugString(), job.AllLogs());
      }
      if (seen.has_agreement()) {
        timeline.ratio = seen.agreement().ratio();
        timeline.fraction = seen.agreement().fraction();
      }
      timeline.left_out = std::max(timeline.left_out, seen.left_out_size());
      timeline.complete = seen.phase() == pb::JOB_PHASE_COMPLETE;
      if (timeline.complete) {
        recorder.Look();
        for (const auto& [name, value] : seen.metrics()) {
          if (name == "accuracy") timeline.accuracies[std::ssize(timeline.losses)] = value;
        }
      }
    }
    if (done || timeline.complete) return timeline;
    if (now - progress > kPatience) return base::DeadlineExceeded("no step for 240 s{}", job.AllLogs());
    clock.SleepFor(base::milliseconds(4), {});
  }
}

}  // namespace medley::bench
