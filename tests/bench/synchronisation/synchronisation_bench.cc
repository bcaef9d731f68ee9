// The thesis' experiments with modes of synchronisation (sections 4.3 and 4.4), and accuracy by mode and by schedule,
// with real processes: LeNet on MNIST.
//
//   synchronisation_bench delays|changing|slow|groups|gpus|accuracy|asynchronous [--seeds 5] [--first-seed 1]
//   [--seconds 60]
//
// Links are those of an emulated network (localcluster/node/emulated_network.h). Prints a line of JSON for each
// run; summary.py beside this file makes tables of them. Needs root; groups and gpus also cgroups.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status.h"
#include "common/base/testing/temp_dir.h"
#include "tests/bench/pool_quotas.h"
#include "tests/bench/synchronisation/digits.h"
#include "tests/bench/synchronisation/timed_run.h"
#include "tests/bench/synchronisation/unlike.h"
#include "tests/integration/worker/slowed.h"

namespace medley::bench {
namespace {

using localcluster::EmulatedNetwork;
using worker::JobHarness;
using worker::JobShape;
using Json = nlohmann::ordered_json;

struct Flags {
  std::vector<std::string> parts;
  std::string archive;  // of a model; empty: LeNet
  int operations = 4;   // of it
  int side = 28;
  int channels = 1;
  int seeds = 5;
  uint64_t first_seed = 1;
  double seconds = 60;
  int batch = 48;
  int64_t steps = 600;
  std::string optimizer = "adam";
  double learning_rate = 0.001;
  std::vector<double> delays = {0.1, 1, 10, 100};        // in steps
  std::vector<std::string> kinds = {"fixed", "random"};  // of delays
  std::vector<double> fractions = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};
  std::vector<double> ratios = {0.02};
  std::vector<std::string> settings;  // by name; empty: all
  int test_rows = 2000;
  int evaluate_every = 100;
  int warm_up = 10;                                     // steps of groups before members and links get their speeds
  std::vector<double> accuracies = {0.9, 0.95, 0.985};  // of groups
};

constexpr char kFastGroup[] = "fast group only";

// How replicas synchronise: the mode of `shape`, which has no stages yet.
struct Setting {
  std::string name;
  JobShape shape = {};
  bool proportional = false;  // shares of the batch by speed; else equal ones
};

std::vector<Setting> SettingsOf(const Flags& flags) {
  std::vector<Setting> settings;
  for (const double fraction : flags.fractions) {
    if (fraction == 1) {
      settings.push_back({"full"});
    } else {
      settings.push_back(
          {fmt::format("{} %", fraction * 100), {.mode = plan::v1::SYNC_MODE_PERCENTAGE, .fraction = fraction}});
    }
  }
  for (const double ratio : flags.ratios) {
    settings.push_back(
        {fmt::format("flexible {}", ratio), {.mode = plan::v1::SYNC_MODE_FLEXIBLE, .target_ratio = ratio}});
  }
  return settings;
}

class Bench {
 public:
  explicit Bench(const Flags& flags) : flags_(flags), folder_(base::MakeTempDir("medley-digits").value()) {
    const std::filesystem::path examples = worker::ExampleData("").parent_path().parent_path() / "lenet";
    archive_ = flags.archive.empty() ? examples / "lenet.pt2" : std::filesystem::path(flags.archive);
    train_ = Read(examples / "train");
    test_ = Read(examples / "t10k");
  }
  ~Bench() { base::RemoveTempDir(folder_); }

  absl::Status Delays();
  absl::Status Changing();
  absl::Status Slow();
  absl::Status Groups();
  absl::Status Gpus();
  absl::Status Accuracy();
  absl::Status Asynchronous();
  bool any_wanted() const { return any_wanted_; }

 private:
  static Digits Read(const std::filesystem::path& prefix) {
    auto digits = ReadDigits(prefix);
    if (digits.ok()) return *std::move(digits);
    std::fprintf(stderr, "%s\n", base::ToString(digits.status()).c_str());
    std::exit(1);
  }

  // Writes the data of a seed. `steps`: of the single epoch; 0: all images, for many epochs.
  void Write(uint64_t seed, int64_t steps, const Holdings& holdings) {
    const Canvas canvas{flags_.side, flags_.channels};
    const Digits train = steps > 0 ? Arrange(train_, holdings, steps * flags_.batch, flags_.batch, seed) : train_;
    Digits test = test_;
    test.images.resize(static_cast<size_t>(flags_.test_rows));
    test.labels.resize(static_cast<size_t>(flags_.test_rows));
    for (const auto& [digits, name] : {std::pair(&train, "train"), {&test, "test"}}) {
      const absl::Status written = WriteDigits(*digits, canvas, folder_, name);
      ASSERT_TRUE(written.ok()) << written;
    }
  }

  worker::JobOptions Options(uint64_t seed, int epochs, int evaluate_every, EmulatedNetwork* network) const {
    const auto data = [&](const char* name) {
      const std::string file = "file://" + (folder_ / name).string();
      return Json{{"format", "idx"}, {"uri", file + "-images"}, {"labels", file + "-labels"}};
    };
    Json classes = Json::array();
    for (int digit = 0; digit < 10; ++digit) classes.push_back(std::to_string(digit));
    Json spec;
    spec["model"] = {{"exported", {{"uri", "file://" + archive_.string()}}}, {"cut", {{"depth", 1}}}};
    spec["model"]["task"] = "multiClass";
    spec["data"] = {{"train", data("train")}, {"test", data("test")}};
    spec["data"]["inputs"] =
        Json::array({{{"name", "image"},
                      {"type", "float32"},
                      {"shape", {flags_.channels, flags_.side, flags_.side}},
                      {"scale", 1 / 255.0},
                      {"mean", std::vector<double>(static_cast<size_t>(flags_.channels), 0.1307)},
                      {"std", std::vector<double>(static_cast<size_t>(flags_.channels), 0.3081)}}});
    spec["data"]["schema"] = {{"label", {{"classes", classes}}}};
    spec["training"] = {{"epochs", epochs}, {"batchSize", flags_.batch}, {"microBatches", 1}, {"seed", seed}};
    spec["training"]["optimizer"] = {{"name", flags_.optimizer}, {"learningRate", flags_.learning_rate}};
    if (evaluate_every > 0) spec["training"]["evaluation"] = {{"everySteps", evaluate_every}};
    spec["checkpoint"] = {{"interval", "3600s"}, {"keep", 3}};
    worker::JobOptions options;
    options.spec_json = spec.dump();
    options.operations = flags_.operations;
    options.tables = {};
    options.share_memory = false;
    options.network = network;
    return options;
  }

  // Replicas of the whole model. With `group` = 2 of three, the first two add in every step.
  JobShape Replicas(int units, int group, const Setting& setting) const {
    JobShape shape = setting.shape;
    shape.stages = {{.end = flags_.operations, .units = units, .group = group}};
    shape.micro_batches = 1;
    return shape;
  }

  // The links of the third trainer.
  static void SlowLink(EmulatedNetwork& network, const localcluster::LinkState& state) {
    for (const char* other : {"t0-0", "t0-1"}) {
      const absl::Status set = network.SetLink("t0-2", other, state);
      ASSERT_TRUE(set.ok()) << set;
    }
  }

  // Seconds of a step of three replicas that do not wait for one another.
  absl::StatusOr<double> StepSeconds(uint64_t seed) {
    MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
    RunSettings run{.options = Options(seed, 50, 0, network.get()),
                    .shape = Replicas(3, 2, {"", {.mode = plan::v1::SYNC_MODE_PERCENTAGE, .fraction = 0.05}})};
    run.warm_up = 40;
    run.done = [](const Timeline& timeline) { return timeline.losses.size() >= 240; };
    MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
    return timeline.now() / static_cast<double>(std::ssize(timeline.losses) - run.warm_up);
  }

  // Trains to the highest of the accuracies with members of these speeds, which they have after the warm-up.
  // `state`: of all links between groups.
  absl::Status TrainGroups(const Json& what, uint64_t seed, const std::vector<MemberGroup>& groups,
                           const Setting& setting, const localcluster::LinkState& state,
                           const std::vector<double>& accuracies) const {
    base::SystemClock clock;
    PoolQuotas quotas(CoresOf(groups), base::milliseconds(50), clock);
    MEDLEY_RETURN_IF_ERROR(quotas.status());
    MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
    RunSettings run{.options = Options(seed, 1000, flags_.evaluate_every, network.get())};
    // Slow members are left out of plans with stages only, whose groups are equally large.
    run.shape = setting.shape.anomaly.window() > 0
                    ? Replicas(CountMembers(groups), groups[0].members, setting)
                    : ReplicasInGroups(groups, flags_.operations, setting.proportional, setting.shape);
    run.most_seconds = flags_.seconds;
    run.warm_up = flags_.warm_up;
    std::vector<pid_t> processes;  // the coordinator, then members by name
    run.options.place = [&](const std::string&, pid_t process) { processes.push_back(process); };
    run.during = [&](JobHarness&, double) {
      if (processes.empty()) return;
      const std::vector<std::string> pools = PoolsByName(groups);
      for (size_t m = 0; m < pools.size(); ++m) quotas.Place(pools[m], processes.at(m + 1));
      processes.clear();
      for (const auto& [a, b] : LinksBetween(groups)) {
        const absl::Status set = network->SetLink(a, b, state);
        ASSERT_TRUE(set.ok()) << set;
      }
    };
    run.done = [&](const Timeline& timeline) { return timeline.best_accuracy() >= accuracies.back(); };
    MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
    Json line = what;
    line["seed"] = seed;
    line["setting"] = setting.name;
    for (const double accuracy : accuracies) {
      line[fmt::format("accuracy {}", accuracy)] = timeline.SecondsToAccuracy(accuracy);
    }
    line["best"] = timeline.best_accuracy();
    Print(line, timeline);
    return absl::OkStatus();
  }

  static void Print(Json line, const Timeline& timeline) {
    line["steps"] = timeline.losses.size();
    line["seconds"] = timeline.now();
    line["agreements"] = timeline.agreements;
    line["ratio"] = timeline.ratio;
    line["fraction"] = timeline.fraction;
    line["left out"] = timeline.left_out;
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
  }

  // Trains `steps` steps in whole epochs, at least one, and prints the accuracy.
  absl::Status TrainToTheEnd(const char* part, const std::string& setting, uint64_t seed, const JobShape& shape,
                             EmulatedNetwork* network) const {
    const auto epochs = static_cast<int>(std::max<int64_t>(1, flags_.steps * flags_.batch / std::ssize(train_.labels)));
    RunSettings run{.options = Options(seed, epochs, 0, network), .shape = shape};
    run.most_seconds = 3600;
    MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
    if (!timeline.complete) return base::DeadlineExceeded("{}: not trained to the end within an hour", setting);
    Print({{"part", part}, {"seed", seed}, {"setting", setting}, {"accuracy", timeline.best_accuracy()}}, timeline);
    return absl::OkStatus();
  }

  bool Wanted(const Setting& setting) {
    const bool wanted =
        flags_.settings.empty() || std::ranges::find(flags_.settings, setting.name) != flags_.settings.end();
    any_wanted_ = any_wanted_ || wanted;
    return wanted;
  }

  template <typename F>
  absl::Status EachSeed(const F& run) {
    for (int i = 0; i < flags_.seeds; ++i) MEDLEY_RETURN_IF_ERROR(run(flags_.first_seed + static_cast<uint64_t>(i)));
    return absl::OkStatus();
  }

  const Flags flags_;
  bool any_wanted_ = false;  // some setting is one of --settings
  const std::filesystem::path folder_;
  std::filesystem::path archive_;
  Digits train_, test_;
};

// Figures 4.5 and 4.6: three members, one with a slow link; seconds to a loss of 0.1 and of 0.05. Beside them the first
// two alone.
absl::Status Bench::Delays() {
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    MEDLEY_ASSIGN_OR_RETURN(const double step, StepSeconds(seed));
    for (const double spread : {0.0, 1.0}) {
      const char* kind = spread == 0 ? "fixed" : "random";
      if (std::ranges::find(flags_.kinds, kind) == flags_.kinds.end()) continue;
      for (const double delay : flags_.delays) {
        std::vector<Setting> settings = SettingsOf(flags_);
        settings.push_back({kFastGroup});
        for (const Setting& setting : settings) {
          if (!Wanted(setting)) continue;
          MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
          RunSettings run{.options = Options(seed, 100, 0, network.get()),
                          .shape = setting.name == kFastGroup ? Replicas(2, 0, setting) : Replicas(3, 2, setting)};
          run.most_seconds = flags_.seconds;
          bool slow = false;
          run.during = [&](JobHarness&, double) {
            if (!slow) SlowLink(*network, {base::nanoseconds(static_cast<int64_t>(delay * step * 1e9)), spread});
            slow = true;
          };
          run.done = [](const Timeline& timeline) { return timeline.SecondsToLoss(0.05) >= 0; };
          MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
          Print({{"part", "delays"},
                 {"seed", seed},
                 {"step", step},
                 {"kind", kind},
                 {"delay", delay},
                 {"setting", setting.name},
                 {"loss 0.1", timeline.SecondsToLoss(0.1)},
                 {"loss 0.05", timeline.SecondsToLoss(0.05)}},
                timeline);
        }
      }
    }
    return absl::OkStatus();
  });
}

// Each member holds some of the digits, and the link is slow in the first and the last third.
absl::Status Bench::Changing() {
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, flags_.steps, {{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {6, 7, 8, 9}});
    MEDLEY_ASSIGN_OR_RETURN(const double step, StepSeconds(seed));
    for (const double delay : flags_.delays) {
      for (const Setting& setting : SettingsOf(flags_)) {
        MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
        RunSettings run{.options = Options(seed, 1, flags_.evaluate_every, network.get()),
                        .shape = Replicas(3, 2, setting)};
        run.most_seconds = flags_.seconds;
        std::optional<bool> slow;
        run.during = [&](JobHarness&, double now) {
          const bool on = now < flags_.seconds / 3 || now > flags_.seconds * 2 / 3;
          if (slow == on) return;
          slow = on;
          SlowLink(*network, {base::nanoseconds(on ? static_cast<int64_t>(delay * step * 1e9) : 0)});
        };
        MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
        Json line{{"part", "changing"}, {"seed", seed}, {"step", step}, {"delay", delay}, {"setting", setting.name}};
        for (const double accuracy : {0.8, 0.9, 0.95, 0.97}) {
          line[fmt::format("accuracy {}", accuracy)] = timeline.SecondsToAccuracy(accuracy);
        }
        line["best"] = timeline.best_accuracy();
        Print(line, timeline);
      }
    }
    return absl::OkStatus();
  });
}

// One of four members is ten times slower from two seconds on: seconds to a number of steps.
absl::Status Bench::Slow() {
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    for (const char* name : {"full", "left out when slow", "left out from the start"}) {
      const bool detects = std::string_view(name) == "left out when slow";
      const bool all = std::string_view(name) != "left out from the start";
      MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
      RunSettings run{.options = Options(seed, 1000, 0, network.get()), .shape = Replicas(all ? 4 : 3, 0, {})};
      run.most_seconds = flags_.seconds * 4;
      run.warm_up = 200;
      if (detects) {
        run.shape.anomaly.set_detector(plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN);
        run.shape.anomaly.set_window(16);
        run.shape.anomaly.set_threshold(3);
      }
      std::unique_ptr<worker::Slowed> slower;
      run.during = [&](JobHarness& job, double now) {
        if (all && slower == nullptr && now > 2) slower = std::make_unique<worker::Slowed>(job, "t0-3");
      };
      run.done = [&](const Timeline& timeline) { return std::ssize(timeline.losses) >= flags_.steps + run.warm_up; };
      run.ended = [&] { slower.reset(); };
      MEDLEY_ASSIGN_OR_RETURN(const Timeline timeline, bench::Run(run));
      const auto done = std::min(std::ssize(timeline.seconds), flags_.steps + run.warm_up);
      Print({{"part", "slow"},
             {"seed", seed},
             {"setting", name},
             {"measured steps", done - run.warm_up},
             {"measured seconds", timeline.seconds[static_cast<size_t>(done - 1)]}},
            timeline);
    }
    return absl::OkStatus();
  });
}

// Figure 4.8: the groups of Table 4.1, of which two are ten times slower than the others; seconds to the accuracies.
// With variance, messages between groups take a random time of up to twice the mean.
absl::Status Bench::Groups() {
  const std::vector<MemberGroup> all = {{"g1", 4, 0.2}, {"g2", 4, 0.16}, {"g3", 3, 0.02}, {"g4", 3, 0.016}};
  const std::vector<MemberGroup> fast = {all[0], all[1]};
  std::vector<Setting> settings = SettingsOf(flags_);
  settings.push_back({"none", {.mode = plan::v1::SYNC_MODE_NONE}});
  const size_t equal = settings.size();
  for (size_t i = 0; i < equal; ++i) {
    settings.push_back({settings[i].name + ", shares by speed", settings[i].shape, true});
  }
  Setting drops{"full, slow members left out"};
  drops.shape.anomaly.set_detector(plan::v1::ANOMALY_DETECTOR_RUNNING_MEAN);
  drops.shape.anomaly.set_window(4);  // 24 steps until something is usual: it needs a longer warm-up
  drops.shape.anomaly.set_threshold(3);
  settings.push_back(drops);
  settings.push_back({kFastGroup});
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    for (const bool variance : {false, true}) {
      const localcluster::LinkState state{base::milliseconds(variance ? 20 : 5), variance ? 1.0 : 0.0};
      for (const Setting& setting : settings) {
        if (!Wanted(setting)) continue;
        MEDLEY_RETURN_IF_ERROR(TrainGroups({{"part", "groups"}, {"variance", variance}}, seed,
                                           setting.name == kFastGroup ? fast : all, setting, state, flags_.accuracies));
      }
    }
    return absl::OkStatus();
  });
}

// Figure 4.9: two groups of two kinds of GPU, whose speeds are emulated by quotas. The thesis names four sets without
// saying which; these are G1 and G2 (one kind), the same with a network that varies, G1 and G3 (two kinds), and all.
absl::Status Bench::Gpus() {
  const MemberGroup g1{"g1", 2, 0.36}, g2{"g2", 1, 0.36}, g3{"g3", 1, 0.48};  // P6000: 12.6, 3060 Ti: 16.2 TFLOP/s
  struct Set {
    std::string name;
    std::vector<MemberGroup> groups;
    localcluster::LinkState links;
  };
  const localcluster::LinkState steady{base::milliseconds(1)}, varies{base::milliseconds(20), 1};
  const std::vector<Set> sets = {{"G1, G2", {g1, g2}, steady},
                                 {"G1, G2, network varies", {g1, g2}, varies},
                                 {"G1, G3", {g1, g3}, steady},
                                 {"G1, G2, G3, network varies", {g1, g2, g3}, varies}};
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    for (const Set& set : sets) {
      std::vector<Setting> settings = SettingsOf(flags_);
      settings.push_back({kFastGroup});
      for (const Setting& setting : settings) {
        if (!Wanted(setting)) continue;
        const auto groups = setting.name == kFastGroup ? std::vector<MemberGroup>{g1} : set.groups;
        MEDLEY_RETURN_IF_ERROR(
            TrainGroups({{"part", "gpus"}, {"set", set.name}}, seed, groups, setting, set.links, {0.95, 0.97}));
      }
    }
    return absl::OkStatus();
  });
}

// Accuracy of the averaged model after equal samples.
absl::Status Bench::Accuracy() {
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    for (const Setting& setting : SettingsOf(flags_)) {
      MEDLEY_ASSIGN_OR_RETURN(const auto network, EmulatedNetwork::Create(seed));
      MEDLEY_RETURN_IF_ERROR(TrainToTheEnd("accuracy", setting.name, seed, Replicas(3, 0, setting), network.get()));
    }
    return absl::OkStatus();
  });
}

// Accuracy after equal samples: an asynchronous pipeline of four members against replicas that add in every step.
absl::Status Bench::Asynchronous() {
  const int end = flags_.operations;
  const JobShape equal{.stages = {{.end = end, .units = 4}}, .micro_batches = 1};
  JobShape chain{.stages = {{0, 1}, {1, 2}, {2, 3}, {3, end}}, .micro_batches = 1};
  JobShape replicas{.stages = {{0, 1, 2}, {1, end, 2}}, .micro_batches = 1};
  chain.schedule = replicas.schedule = plan::v1::SCHEDULE_KIND_ASYNC_1F1B;
  return EachSeed([&](uint64_t seed) -> absl::Status {
    Write(seed, 0, {});
    for (const auto& [name, shape] :
         {std::pair("bsp", &equal), {"asynchronous, 4 stages", &chain}, {"asynchronous, 2 stages of 2", &replicas}}) {
      MEDLEY_RETURN_IF_ERROR(TrainToTheEnd("asynchronous", name, seed, *shape, nullptr));
    }
    return absl::OkStatus();
  });
}

int Main(const Flags& flags) {
  Bench bench(flags);
  for (const std::string& part : flags.parts) {
    absl::Status status = base::InvalidArgument("no part '{}'", part);
    if (part == "delays") status = bench.Delays();
    if (part == "changing") status = bench.Changing();
    if (part == "slow") status = bench.Slow();
    if (part == "groups") status = bench.Groups();
    if (part == "gpus") status = bench.Gpus();
    if (part == "accuracy") status = bench.Accuracy();
    if (part == "asynchronous") status = bench.Asynchronous();
    if (status.ok() && !flags.settings.empty() && !bench.any_wanted())
      status = base::InvalidArgument("--settings: no setting of this part has such a name");
    if (status.ok() && !testing::Test::HasFailure()) continue;
    std::fprintf(stderr, "%s: %s\n", part.c_str(), base::ToString(status).c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace medley::bench

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  CLI::App app{"Modes of synchronisation and schedules, with real processes"};
  medley::bench::Flags flags;
  app.add_option("parts", flags.parts, "delays, changing, slow, groups, gpus, accuracy, asynchronous")->required();
  app.add_option("--archive", flags.archive, "exported model; default: LeNet");
  app.add_option("--operations", flags.operations, "of the model, cut at depth 1");
  app.add_option("--side", flags.side, "of the images, in pixels");
  app.add_option("--channels", flags.channels);
  app.add_option("--seeds", flags.seeds);
  app.add_option("--first-seed", flags.first_seed);
  app.add_option("--seconds", flags.seconds, "the longest run");
  app.add_option("--batch", flags.batch);
  app.add_option("--steps", flags.steps);
  app.add_option("--optimizer", flags.optimizer);
  app.add_option("--learning-rate", flags.learning_rate);
  app.add_option("--delays", flags.delays, "of the slow link, in steps")->delimiter(',');
  app.add_option("--kinds", flags.kinds, "of delays")->delimiter(',')->check(CLI::IsMember({"fixed", "random"}));
  app.add_option("--fractions", flags.fractions, "of the steps that synchronise; 1: every gradient")->delimiter(',');
  app.add_option("--ratios", flags.ratios, "of flexible synchronisation")->delimiter(',');
  app.add_option("--settings", flags.settings,
                 "of delays, groups and gpus, by the names that they print; default: all");
  app.add_option("--test-rows", flags.test_rows);
  app.add_option("--warm-up", flags.warm_up, "steps of groups and gpus before members and links get their speeds");
  app.add_option("--accuracies", flags.accuracies, "of groups; a run ends at the highest")->delimiter(',');
  app.add_option("--evaluate-every", flags.evaluate_every, "steps; replicas agree before each evaluation");
  CLI11_PARSE(app, argc, argv);
  return medley::bench::Main(flags);
}
