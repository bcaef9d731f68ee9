// The agent of operation-level plans by the simulator (HeteroG, sections 4.1.3 and 6.5):
//   train   learns on the paper's models and writes weights
//   search  equal numbers of simulations: the agent with and without local search, local search, random draws
//   unseen  simulations until the agent is within 1 % of the best that it finds from random weights, with weights that
//           never saw the model (Table 6)
// docs/graph-planning.md has the figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/base/status.h"
#include "reproductions/heterog/agent.h"
#include "reproductions/heterog/bench/graph/asked.h"
#include "reproductions/heterog/bench/graph/testbed.h"
#include "reproductions/heterog/searches.h"

namespace medley::reproductions::heterog {
namespace {

using sched::DeviceProblem;
using sched::kForever;

struct Flags {
  std::string part;
  std::string folder = "examples/graphs";
  std::vector<std::string> models;   // empty: all
  std::vector<std::string> without;  // of train
  std::string weights;               // written by train; read by others; empty: those that are shipped
  int64_t calls = 1000;
  int groups = 48;
  int seeds = 5;
  int first_seed = 1;
  int rounds = 1500;  // of train
  int questions = 3;  // of a round
  int draws = 8;
  double rate = AgentSettings{}.learning_rate;
  double entropy = AgentSettings{}.entropy;
  double logit = AgentSettings{}.most_logit;
};

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// By datasheets, without fitted constants.
constexpr Roofline kDatasheets = {1, 1e-5, 1};

// A question that is trained on, and what has been learned about it.
struct Question {
  Question(std::string label, DeviceProblem asked_about, const Flags& flags, AgentPolicy& policy)
      : name(std::move(label)), problem(std::move(asked_about)), asked(problem, flags.groups, 1, int64_t{1} << 40) {
    TryBaselines(asked.q);
    baseline = asked.timer.best_seconds();
    learner = std::make_unique<AgentLearner>(policy, asked.q, flags.draws);
  }
  const std::string name;
  const DeviceProblem problem;
  Asked asked;
  double baseline = kForever;
  std::unique_ptr<AgentLearner> learner;
};

class AgentBench {
 public:
  explicit AgentBench(const Flags& flags) : flags_(flags) {
    settings_.learning_rate = flags.rate;
    settings_.entropy = flags.entropy;
    settings_.most_logit = flags.logit;
  }
  absl::Status Train();
  absl::Status Search();
  absl::Status Unseen();

 private:
  absl::StatusOr<DeviceProblem> Problem(const PaperRow& row, size_t size, const Roofline& roofline) const {
    MEDLEY_ASSIGN_OR_RETURN(const model::Model model, ReadGraph(flags_.folder, row.model));
    return OnTestbed(model, row.batch[size], size == 1, roofline);
  }
  bool Wanted(const std::string& model) const { return flags_.models.empty() || Has(flags_.models, model); }
  absl::StatusOr<std::string> Weights() const {
    if (flags_.weights.empty()) return std::string(ShippedAgentWeights());
    return base::ReadFile(flags_.weights, int64_t{64} << 20);
  }
  absl::StatusOr<double> CallsUntil(const DeviceProblem& problem, uint64_t seed, const std::string& weights,
                                    double seconds, double& best) const;

  const Flags flags_;
  AgentSettings settings_;
};

absl::Status AgentBench::Train() {
  AgentPolicy policy(settings_, static_cast<uint64_t>(flags_.first_seed));
  base::Rng rng(static_cast<uint64_t>(flags_.first_seed));
  std::vector<std::unique_ptr<Question>> questions;
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(row.model) || Has(flags_.without, row.model)) continue;
    for (size_t size = 0; size < 2; ++size) {
      for (const bool random : {false, true}) {
        Roofline roofline = kDatasheets;
        if (random) {
          roofline.link_efficiency = std::exp(rng.Uniform(std::log(0.2), std::log(3)));
          roofline.launch_seconds = std::exp(rng.Uniform(std::log(2e-6), std::log(3e-4)));
        }
        MEDLEY_ASSIGN_OR_RETURN(DeviceProblem problem, Problem(row, size, roofline));
        auto question = std::make_unique<Question>(
            fmt::format("{} {} GPUs{}", row.model, size == 0 ? 8 : 12, random ? ", random" : ""), std::move(problem),
            flags_, policy);
        if (question->baseline < kForever) questions.push_back(std::move(question));
      }
    }
  }
  if (questions.empty()) return base::InvalidArgument("no model of examples/graphs fits");
  const auto begin = std::chrono::steady_clock::now();
  double mean = 0;
  for (int round = 1; round <= flags_.rounds; ++round) {
    for (int i = 0; i < flags_.questions; ++i) {
      mean += questions[rng.Below(questions.size())]->learner->Round().mean_reward / flags_.questions;
    }
    policy.Step();
    if (round % 50 != 0) continue;
    std::fprintf(stderr, "round %d, %.0f s: mean reward %.4f\n", round,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), mean / 50);
    mean = 0;
    MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags_.weights, policy.Save()));
  }
  MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(flags_.weights, policy.Save()));
  fmt::print("| question | most likely / best baseline | best drawn / best baseline |\n|---|---|---|\n");
  for (const auto& question : questions) {
    const double likely = question->learner->TryMostLikely();
    fmt::print("| {} | {:.3f} | {:.3f} |\n", question->name, likely / question->baseline,
               question->asked.timer.best_seconds() / question->baseline);
  }
  return absl::OkStatus();
}

absl::Status AgentBench::Search() {
  MEDLEY_ASSIGN_OR_RETURN(const std::string weights, Weights());
  const auto agent = [&](double polish, const std::string& start) {
    return [this, polish, &start](const sched::GraphQuestion& q) -> absl::Status {
      return SearchGraphByAgent(
          q, q.rng.Next(), {.settings = settings_, .draws_a_round = flags_.draws, .polish = polish, .weights = start});
    };
  };
  const auto simple = [](void (*search)(const sched::GraphQuestion&)) {
    return [search](const sched::GraphQuestion& q) -> absl::Status {
      search(q);
      return absl::OkStatus();
    };
  };
  const std::string none;
  const std::vector<std::pair<const char*, std::function<absl::Status(const sched::GraphQuestion&)>>> searches = {
      {"agent, local search", agent(0.5, weights)},    {"agent alone", agent(0, weights)},
      {"agent alone, random weights", agent(0, none)}, {"local search", simple(sched::SearchGraph)},
      {"Metropolis", simple(SearchByMetropolis)},      {"random draws", simple(SearchRandomly)}};
  fmt::print("{} simulations, {} seeds; medians (worst), relative to the best baseline with either order\n\n| model |",
             flags_.calls, flags_.seeds);
  for (const auto& [name, search] : searches) fmt::print(" {} |", name);
  fmt::print(" seconds of the first |\n|---|---|---|---|---|---|---|---|\n");
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(row.model)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, Problem(row, 1, kDatasheets));
    fmt::print("| {} |", row.model);
    Asked first(problem, flags_.groups, static_cast<uint64_t>(flags_.first_seed), flags_.calls);
    TryBaselines(first.q);
    if (first.timer.best_seconds() >= kForever) {
      fmt::print(" no baseline fits |\n");
      continue;
    }
    double longest = 0;
    for (const auto& [name, search] : searches) {
      std::vector<double> found;
      for (int seed = flags_.first_seed; seed < flags_.first_seed + flags_.seeds; ++seed) {
        Asked asked(problem, flags_.groups, static_cast<uint64_t>(seed), flags_.calls);
        const auto begin = std::chrono::steady_clock::now();
        TryBaselines(asked.q);
        const double baseline = asked.timer.best_seconds();
        MEDLEY_RETURN_IF_ERROR(search(asked.q));
        found.push_back(asked.timer.best_seconds() / baseline);
        if (&search != &searches.front().second) continue;
        longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      fmt::print(" {:.3f} ({:.3f}) |", Middle(found), std::ranges::max(found));
      std::fflush(stdout);
    }
    fmt::print(" {:.0f} |\n", longest);
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

// Simulations of the agent until what it drew itself takes at most `seconds`, or kForever if all were not enough.
// `best`: the least seconds of what it drew.
absl::StatusOr<double> AgentBench::CallsUntil(const DeviceProblem& problem, uint64_t seed, const std::string& weights,
                                              double seconds, double& best) const {
  Asked asked(problem, flags_.groups, seed, int64_t{1} << 40);
  TryBaselines(asked.q);
  AgentPolicy policy(settings_, seed);
  if (!weights.empty()) MEDLEY_RETURN_IF_ERROR(policy.Load(weights));
  AgentLearner learner(policy, asked.q, flags_.draws);
  const int64_t before = asked.timer.calls();
  double calls = kForever;
  best = learner.TryMostLikely();
  for (int round = 0; round <= flags_.calls / flags_.draws; ++round) {
    if (best <= seconds && calls == kForever) calls = static_cast<double>(asked.timer.calls() - before);
    best = std::min(best, learner.Round().best_seconds);
    policy.Step();
  }
  return calls;
}

absl::Status AgentBench::Unseen() {
  MEDLEY_ASSIGN_OR_RETURN(const std::string weights, Weights());
  fmt::print(
      "{} simulations, 12 GPUs\n\n| model | seed | best of random weights / baseline | simulations until 1 %: "
      "random weights | trained on other models | ratio |\n|---|---|---|---|---|---|\n",
      flags_.calls);
  std::vector<double> ratios;
  for (const PaperRow& row : PaperRows()) {
    if (!Wanted(row.model)) continue;
    MEDLEY_ASSIGN_OR_RETURN(const DeviceProblem problem, Problem(row, 1, kDatasheets));
    Asked asked(problem, flags_.groups, 1, flags_.calls);
    TryBaselines(asked.q);
    const double baseline = asked.timer.best_seconds();
    for (int seed = flags_.first_seed; seed < flags_.first_seed + flags_.seeds; ++seed) {
      const auto own = static_cast<uint64_t>(seed);
      double best = kForever, again = kForever;
      MEDLEY_RETURN_IF_ERROR(CallsUntil(problem, own, "", 0, best).status());
      MEDLEY_ASSIGN_OR_RETURN(const double scratch, CallsUntil(problem, own, "", 1.01 * best, again));
      MEDLEY_ASSIGN_OR_RETURN(const double tuned, CallsUntil(problem, own, weights, 1.01 * best, again));
      ratios.push_back(std::max(tuned, 1.0) / std::max(scratch, 1.0));
      fmt::print("| {} | {} | {:.3f} | {} | {} | {:.3f} |\n", row.model, seed, best / baseline, scratch, tuned,
                 ratios.back());
      std::fflush(stdout);
    }
  }
  fmt::print("\nmedian ratio {:.3f}\n", Middle(ratios));
  return absl::OkStatus();
}

int Main(const Flags& flags) {
  AgentBench bench(flags);
  const std::map<std::string, absl::Status (AgentBench::*)()> parts = {
      {"train", &AgentBench::Train}, {"search", &AgentBench::Search}, {"unseen", &AgentBench::Unseen}};
  const absl::Status status = (bench.*parts.at(flags.part))();
  if (status.ok()) return 0;
  std::fprintf(stderr, "agent_bench: %s: %s\n", flags.part.c_str(), base::ToString(status).c_str());
  return 1;
}

}  // namespace
}  // namespace medley::reproductions::heterog

int main(int argc, char** argv) {
  CLI::App app{"The agent of operation-level plans by the simulator"};
  medley::reproductions::heterog::Flags flags;
  app.add_option("part", flags.part, "train, search, unseen")
      ->required()
      ->check(CLI::IsMember({"train", "search", "unseen"}));
  app.add_option("--graphs", flags.folder, "folder of the graphs");
  app.add_option("--models", flags.models, "names, with commas between them; default: all")->delimiter(',');
  app.add_option("--without", flags.without, "models that are not trained on")->delimiter(',');
  app.add_option("--weights", flags.weights, "file that train writes and others read; default: the shipped weights");
  app.add_option("--calls", flags.calls, "simulations of a search");
  app.add_option("--groups", flags.groups, "of operations, at most");
  app.add_option("--seeds", flags.seeds);
  app.add_option("--first-seed", flags.first_seed);
  app.add_option("--rounds", flags.rounds, "of train");
  app.add_option("--questions", flags.questions, "of a round of train");
  app.add_option("--draws", flags.draws, "of a round, for each question")->check(CLI::Range(2, 1000));
  app.add_option("--rate", flags.rate, "of Adam");
  app.add_option("--entropy", flags.entropy, "weight of the entropy");
  app.add_option("--logit", flags.logit, "the largest");
  CLI11_PARSE(app, argc, argv);
  if (flags.part == "train" && flags.weights.empty()) {
    std::fprintf(stderr, "agent_bench: train needs --weights FILE\n");
    return 1;
  }
  return medley::reproductions::heterog::Main(flags);
}
