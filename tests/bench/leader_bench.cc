// Measures the time from the death of the leader until the next leader reconciles: two medley-operator processes with
// one API server, of which the leader is killed at a random time between lease renewals. Target: 17 s with default
// settings.
//
//   leader_bench --rounds 10    against the local API server; run it in the root of the repository
//   MEDLEY_TEST_KUBECONFIG=FILE leader_bench --real --rounds 10    against a real one
//
// Prints one line per round, then "leader_killed_to_reconciling_seconds min M mean M max M rounds N".
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "operator/api/resources.h"
#include "tests/integration/kube/test_server.h"
#include "tests/integration/operator/operator_process.h"

namespace medley::ops {
namespace {

using base::seconds;
using kube::Json;

struct Options {
  bool real = false;
  int rounds = 10;
  uint64_t seed = 1;
  std::vector<std::string> more;  // further arguments of the operators
};

class Bench {
 public:
  Bench(Options options, std::filesystem::path folder)
      : options_(std::move(options)),
        folder_(std::move(folder)),
        rng_(options_.seed),
        server_(options_.real ? kube::ServerKind::kReal : kube::ServerKind::kEmbedded, clock_),
        client_(server_.client()) {}

  absl::Status Prepare() {
    server_.WriteKubeconfig(folder_ / "kubeconfig");
    for (const char* file : {"resourcepools.yaml", "trainingjobs.yaml"}) {
      MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(std::filesystem::path("deploy/crds") / file));
      server_.InstallCrd(text);
    }
    standby_ = Start();
    return WaitForLeader(*standby_);
  }

  // Seconds from the kill until a leader has reconciled a pool that is created right after it.
  absl::StatusOr<double> Round(int round) {
    std::unique_ptr<OperatorProcess> leader = std::move(standby_);
    standby_ = Start();
    if (!WaitUntil([&] { return standby_->Metric("medley_leader") == 0; }, seconds(60))) {
      return base::Unavailable("the standby does not start: {}", standby_->Log());
    }
    // Wait for some renewals, so that the kill happens at a random time between two.
    clock_.SleepFor(base::FromSeconds(rng_.Uniform(3, 5)), {});
    const base::SteadyTime killed = clock_.Steady();
    leader->Signal(SIGKILL);
    const std::string name = server_.ns() + "-" + std::to_string(round);
    MEDLEY_RETURN_IF_ERROR(client_.Create(ResourcePools(), Pool(name)).status());
    const bool done = WaitUntil(
        [&] {
          const auto pool = client_.Get(ResourcePools(), {"", name});
          return pool.ok() && !pool->At("/status/conditions").is_null();
        },
        seconds(60));
    const double took = base::ToSeconds(clock_.Steady() - killed);
    MEDLEY_RETURN_IF_ERROR(client_.Delete(ResourcePools(), {"", name}));
    if (!done) return base::DeadlineExceeded("round {}: nobody reconciled: {}", round, standby_->Log());
    return took;
  }

 private:
  static kube::Object Pool(const std::string& name) {
    kube::Object pool(ResourcePools(), {"", name});
    pool.mutable_json()["spec"] = {{"class", "CPU"},
                                   {"limit", 1},
                                   {"unit", {{"resources", {{"cpu", "1"}}}}},
                                   {"price", {{"usdPerUnitHour", "0.1"}}}};
    return pool;
  }
  std::unique_ptr<OperatorProcess> Start() {
    std::vector<std::string> arguments = {"--kubeconfig", (folder_ / "kubeconfig").string(), "--leader-elect"};
    arguments.insert(arguments.end(), options_.more.begin(), options_.more.end());
    return std::make_unique<OperatorProcess>(arguments, folder_ / (std::to_string(++started_) + ".log"));
  }
  static absl::Status WaitForLeader(OperatorProcess& process) {
    if (WaitUntil([&] { return process.Leads(); }, seconds(60))) return absl::OkStatus();
    return base::Unavailable("the operator does not lead: {}", process.Log());
  }

  const Options options_;
  const std::filesystem::path folder_;
  base::Rng rng_;
  base::SystemClock clock_;
  kube::TestServer server_;
  kube::HttpClient& client_;
  std::unique_ptr<OperatorProcess> standby_;
  int started_ = 0;
};

absl::Status Run(const Options& options) {
  MEDLEY_ASSIGN_OR_RETURN(const std::filesystem::path folder, base::MakeTempDir("medley-leader-bench"));
  std::vector<double> all;
  absl::Status status;
  {
    Bench bench(options, folder);
    status = bench.Prepare();
    for (int round = 0; status.ok() && round < options.rounds; ++round) {
      const auto took = bench.Round(round);
      status = took.status();
      if (!took.ok()) break;
      std::cout << "round " << round << ": " << *took << " s" << std::endl;
      all.push_back(*took);
    }
  }
  std::filesystem::remove_all(folder);
  MEDLEY_RETURN_IF_ERROR(status);
  double sum = 0;
  for (const double one : all) sum += one;
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  const double mean = sum / static_cast<double>(all.size());
  std::cout << "leader_killed_to_reconciling_seconds min " << *least << " mean " << mean << " max " << *most
            << " rounds " << all.size() << std::endl;
  return absl::OkStatus();
}

}  // namespace
}  // namespace medley::ops

int main(int argc, char** argv) {
  CLI::App app("Leader killed -> the next leader reconciling");
  medley::ops::Options options;
  app.add_flag("--real", options.real, "The API server of $MEDLEY_TEST_KUBECONFIG instead of the embedded one");
  app.add_option("--rounds", options.rounds, "Kills")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--seed", options.seed, "Of the moments of the kills")->capture_default_str();
  app.add_option("--operator-flag", options.more, "More arguments of the operators")->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);
  setenv("MEDLEY_BIN_DIR", std::filesystem::canonical("/proc/self/exe").parent_path().c_str(), 0);
  const absl::Status status = medley::ops::Run(options);
  if (status.ok()) return 0;
  std::cerr << "leader_bench: " << medley::base::ToString(status) << std::endl;
  return 1;
}
