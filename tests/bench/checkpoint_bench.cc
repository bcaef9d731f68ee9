// Measures how long a parameter server's checkpoint keeps training waiting. One server with one big table takes the
// pushes of one trainer, step after step; in the middle it writes a checkpoint. Training stands still while the order
// is taken, and by what the slowest step after it takes longer than the median of those before.
//
//   build/bin/checkpoint_bench --rows 7400000 --columns 16     1 GB
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "worker/ps/parameter_server.h"
#include "worker/trainer/server_role.h"

namespace medley::worker {
namespace {

namespace pb = ::medley::job::v1;

constexpr double kMostSeconds = 0.05;  // for which training may stand still

struct Options {
  uint64_t rows = 2'000'000;
  int columns = 16;
  size_t keys = 20'000;  // rows that one step touches
  int64_t steps = 200;   // at least this many after the checkpoint, and until it is written
  std::string folder;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), columns_(static_cast<size_t>(options.columns)), service_("token", clock_) {
    ServerContext context;
    context.tables = {{.operation = 0,
                       .name = "table",
                       .rows = static_cast<int64_t>(options.rows),
                       .columns = options.columns,
                       .sparse = true,
                       .initializer = Initializer::kUniform,
                       .scale = 0.1f}};
    context.optimizer = {.kind = OptimizerKind::kAdagrad, .learning_rate = 0.1f};
    context.session.member = "server-0";
    context.session.instance = "i1";
    context.checkpoint_root = std::filesystem::path(options.folder);
    context.clock = &clock_;
    role_ = std::make_unique<ServerRole>(context, service_, [](const pb::SessionRequest&) {});
  }

  int Run() {
    if (const absl::Status started = Start(); !started.ok()) {
      return fmt::print(stderr, "checkpoint_bench: {}\n", base::Message(started)), 1;
    }
    for (uint64_t first = 0; first < options_.rows; first += 1'000'000) {
      std::vector<uint64_t> all;
      for (uint64_t key = first; key < std::min(options_.rows, first + 1'000'000); ++key) all.push_back(key);
      Step(std::move(all));
    }
    std::vector<double> quiet;
    for (int64_t i = 0; i < options_.steps; ++i) quiet.push_back(Step(RandomKeys()));
    std::atomic<bool> written = false;
    pb::Checkpoint order;
    order.set_generation(1);
    order.set_step(step_);
    order.set_folder("step-bench");
    const base::SteadyTime start = clock_.Steady();
    const absl::Status ordered = role_->Checkpoint(order, [&](absl::StatusOr<pb::Checkpointed> done) {
      if (!done.ok()) fmt::print(stderr, "{}\n", std::string(done.status().message()));
      written = true;
    });
    const double pause = base::ToSeconds(clock_.Steady() - start);
    if (!ordered.ok()) return fmt::print(stderr, "checkpoint_bench: {}\n", base::Message(ordered)), 1;
    std::vector<double> busy;
    double write = 0;
    while (!written || static_cast<int64_t>(busy.size()) < options_.steps) {
      busy.push_back(Step(RandomKeys()));
      if (written && write == 0) write = base::ToSeconds(clock_.Steady() - start);
    }
    const double bytes = static_cast<double>(
        std::filesystem::file_size(std::filesystem::path(options_.folder) / "step-bench" / "rows-e1-0.mck"));
    std::ranges::sort(quiet);
    const size_t during = busy.size();
    std::ranges::sort(busy);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("file {:.0f} MB, written after {:.2f} s; training waited {:.1f} ms for the order\n", bytes / 1e6, write,
               pause * 1e3);
    fmt::print("step without a checkpoint: median {:.1f} ms, longest {:.1f} ms\n", quiet[quiet.size() / 2] * 1e3,
               quiet.back() * 1e3);
    fmt::print("{} steps after the order: median {:.1f} ms, longest {:.1f} ms\n", during, busy[busy.size() / 2] * 1e3,
               busy.back() * 1e3);
    fmt::print("largest resident memory {:.0f} MB\n", static_cast<double>(usage.ru_maxrss) / 1e3);
    const double still = pause + std::max(0.0, busy.back() - quiet[quiet.size() / 2]);
    fmt::print("training stood still for {:.1f} ms at most, target {:.0f} ms: {}\n", still * 1e3, kMostSeconds * 1e3,
               still <= kMostSeconds ? "reached" : "missed");
    return still <= kMostSeconds ? 0 : 1;
  }

 private:
  absl::Status Start() {
    pb::Prepare prepare;
    prepare.set_generation(1);
    prepare.set_origin(pb::STATE_ORIGIN_INITIAL);
    plan::v1::Stage& stage = *prepare.mutable_plan()->add_stages();
    stage.add_operations()->set_end(1);
    stage.add_groups()->set_units(1);
    prepare.add_peers()->mutable_slot()->set_role(pb::MEMBER_ROLE_TRAINER);
    pb::Peer& server = *prepare.add_peers();
    server.mutable_slot()->set_role(pb::MEMBER_ROLE_SERVER);
    server.mutable_slot()->set_member("server-0");
    server.set_instance("i1");
    auto prepared = role_->Prepare(prepare, {});
    if (!prepared.ok()) return prepared.status();
    pb::Switch order;
    order.set_generation(1);
    return role_->Switch(order, *prepared).status();
  }
  std::vector<uint64_t> RandomKeys() {
    std::vector<uint64_t> keys(options_.keys);
    for (uint64_t& key : keys) key = rng_.Below(options_.rows);
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }
  // Leases a step and pushes its gradients; returns the seconds until it is applied.
  double Step(std::vector<uint64_t> keys) {
    std::vector<float> values(keys.size() * columns_, 0.5f);
    std::vector<Gradients> all = {Gradients::Of(0, std::move(keys), std::move(values))};
    const base::SteadyTime start = clock_.Steady();
    pb::StepLease lease;
    lease.set_step(++step_);
    if (!role_->Train(1, lease, nullptr).ok() || !service_.Find(1)->Push(step_, 0, std::move(all), 1).ok()) {
      fmt::print(stderr, "step {} failed\n", step_);
    }
    return base::ToSeconds(clock_.Steady() - start);
  }

  const Options options_;
  const size_t columns_;
  base::SystemClock clock_;
  ParameterServer service_;
  std::unique_ptr<ServerRole> role_;
  base::Rng rng_{1};
  int64_t step_ = 0;
};

}  // namespace
}  // namespace medley::worker

int main(int argc, char** argv) {
  medley::worker::Options options;
  CLI::App app("Measures how long a parameter server's checkpoint keeps training waiting.");
  app.add_option("--rows", options.rows, "rows of the table");
  app.add_option("--columns", options.columns, "weights of a row");
  app.add_option("--keys", options.keys, "rows that one step touches");
  app.add_option("--steps", options.steps, "steps before the checkpoint, and at least after it");
  app.add_option("--folder", options.folder, "folder for the checkpoint; default: a temporary one");
  CLI11_PARSE(app, argc, argv);
  const bool temporary = options.folder.empty();
  if (temporary) options.folder = medley::base::MakeTempDir("medley-checkpoint-bench").value().string();
  const int code = medley::worker::Bench(options).Run();
  if (temporary) std::filesystem::remove_all(options.folder);
  return code;
}
