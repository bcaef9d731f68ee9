// Observes one job of a local run: takes Snapshots of the API's objects, turns new Events into messages, and carries
// out each step of the scenario when the job reaches its progress. Not thread-safe.
#pragma once

#include <absl/status/status.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/local_cluster.h"
#include "cli/run/messages.h"
#include "cli/run/mix_goal.h"
#include "cli/run/scenario.h"
#include "cli/run/summary.h"

namespace medley::cli {

class Observer {
 public:
  Observer(base::Clock& clock, LocalCluster& cluster, kube::Key job, const Scenario& scenario,
           std::filesystem::path scenario_folder);

  // Reads the API once and carries out due steps. Errors: those of the API server, and a step that failed.
  absl::Status Step(RunRecord& record);
  // What the run says when it ends is not said before, from now on.
  void SaidAtTheEnd(const std::string& message) { messages_.SaidElsewhere(message); }
  // `over`: the run ends, so nothing is held back any more.
  std::vector<std::string> TakeMessages(bool over);

 private:
  absl::Status ReadEvents();
  // What the machines reach at most, where the scenario asks for it; nullopt: this message does not say it.
  std::optional<double> Answer(std::string_view reason, std::string_view message) const;
  // Sets the goal of such a scenario, once, and notes where the machine cannot show a move.
  absl::Status SetGoal(double most, RunRecord& record);
  absl::StatusOr<MixGoal> FindMix(double most) const;
  absl::Status Act(const Snapshot& view, RunRecord& record);
  absl::Status KillOne(const KillStep& step, RunRecord& record);
  void NotePlan(const Snapshot& view);
  void NoteCurve(const Snapshot& view);
  void NoteMoves(const Snapshot& view, RunRecord& record);
  // How far the data are read, before the first step.
  void NoteReading(const Snapshot& view);
  void Say(std::string line);
  double Seconds() const;

  base::Clock& clock_;
  LocalCluster& cluster_;
  const kube::Key job_;
  const Scenario& scenario_;
  const std::filesystem::path folder_;
  const base::SteadyTime start_;
  bool goal_set_ = false;
  size_t next_step_ = 0;
  int64_t plan_generation_ = -1;
  std::string plan_shown_;
  int64_t last_generation_ = 0;
  int64_t last_evaluation_ = 0;  // its step
  base::SteadyTime next_look_;   // into the logs
  std::string reading_;          // the last line that was shown
  std::string problem_;
  std::set<std::string> seen_events_;
  Messages messages_;
};

}  // namespace medley::cli
