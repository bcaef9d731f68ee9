// medley top: shows throughput and cost of the jobs and pools of a cluster, live on a terminal.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/cluster/connection.h"
#include "cli/cluster/top_view.h"
#include "cli/commands.h"
#include "cli/screen.h"
#include "common/base/status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

struct TopFlags {
  ClusterFlags cluster;
  bool all_namespaces = false;
  bool once = false;
  double interval_seconds = 2;
  std::string output = "table";
};

absl::StatusOr<TopView> Read(const Cluster& cluster, const TopFlags& flags, const base::Clock& clock) {
  MEDLEY_ASSIGN_OR_RETURN(const std::vector<kube::Object> jobs,
                          ListAll(cluster, ops::TrainingJobs(), {.ns = flags.all_namespaces ? "" : cluster.ns}));
  auto pools = ListAll(cluster, ops::ResourcePools(), {});
  const bool hidden = pools.status().code() == absl::StatusCode::kPermissionDenied;
  if (!pools.ok() && !hidden) return pools.status();
  TopView view = TakeTop(jobs, hidden ? std::vector<kube::Object>() : *pools, clock.Now());
  view.pools_known = !hidden;
  return view;
}

void Print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

winsize Terminal() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) size.ws_col = 100;
  if (size.ws_row < 5) size.ws_row = 24;
  return size;
}

// Shows the view until the user interrupts it. When a read fails, shows the error above the last view and tries again.
int Live(const Cluster& cluster, const TopFlags& flags, base::Clock& clock, TopView view) {
  Screen screen;
  std::string error;
  while (true) {
    const winsize terminal = Terminal();
    std::vector<std::string> frame = TopLines(view, flags.all_namespaces, terminal.ws_col - 1);
    if (!error.empty()) frame.insert(frame.begin(), error.substr(0, terminal.ws_col - 1u));
    if (frame.size() > terminal.ws_row - 1u) frame.resize(terminal.ws_row - 1u);
    Print(screen.Replace(frame));
    clock.SleepFor(base::FromSeconds(flags.interval_seconds), {});
    auto next = Read(cluster, flags, clock);
    error = next.ok() ? "" : "out of date: " + base::Message(next.status());
    if (next.ok()) view = *std::move(next);
  }
}

int Run(const TopFlags& flags) {
  base::SystemClock clock;
  auto cluster = Connect(flags.cluster, clock);
  auto view = cluster.ok() ? Read(*cluster, flags, clock) : absl::StatusOr<TopView>(cluster.status());
  if (!view.ok()) {
    std::fprintf(stderr, "medley top: %s\n", base::Message(view.status()).c_str());
    return 1;
  }
  if (flags.output == "json") {
    Print(TopJson(*view));
    return 0;
  }
  if (!flags.once && isatty(STDOUT_FILENO) != 0) return Live(*cluster, flags, clock, *std::move(view));
  for (const std::string& line : TopLines(*view, flags.all_namespaces, 0)) Print(line + "\n");
  return 0;
}

}  // namespace

void AddTop(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("top", "Show throughput, cost, progress and plans of the jobs and pools of a cluster");
  const auto flags = std::make_shared<TopFlags>();
  command->add_flag("-A,--all-namespaces", flags->all_namespaces, "show the jobs of all namespaces");
  command->add_flag("--once", flags->once, "print once, even on a terminal");
  command->add_option("--interval", flags->interval_seconds, "seconds between two updates on a terminal")
      ->check(CLI::Range(0.2, 3600.0))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "table or json; json is printed once")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
  AddClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_status] { exit_status = Run(*flags); });
}

}  // namespace medley::cli
