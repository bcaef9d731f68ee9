// medley dashboard: serves a web page of the jobs of a cluster on this machine.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/dashboard/dashboard.h"
#include "cli/price_service.h"
#include "common/base/log.h"
#include "common/base/status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

struct DashboardFlags {
  ClusterFlags cluster;
  DashboardOptions page;
};

absl::Status Run(const DashboardFlags& flags) {
  base::log::Configure("medley", base::log::Level::kWarn);
  base::SystemClock clock;
  DashboardOptions options = flags.page;
  if (options.price_service.address.empty()) {
    options.price_service = FindPriceService(flags.cluster.kubeconfig.kubeconfig).value_or(PriceService());
  }
  MEDLEY_ASSIGN_OR_RETURN(Cluster cluster, Connect(flags.cluster, clock));
  // Said at once, not by an empty page.
  MEDLEY_RETURN_IF_ERROR(
      ListAll(cluster, ops::TrainingJobs(), {.ns = options.all_namespaces ? "" : cluster.ns}).status());
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before the server's threads, which inherit it
  Dashboard dashboard(std::move(cluster), clock, std::move(options));
  MEDLEY_RETURN_IF_ERROR(dashboard.Start());
  std::printf("the page is at %s until you press Ctrl-C\n", dashboard.url().c_str());
  std::fflush(stdout);
  int which = 0;
  sigwait(&ends, &which);
  dashboard.Stop();
  return absl::OkStatus();
}

}  // namespace

void AddDashboard(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "dashboard", "Serve a web page of the jobs of a cluster on this machine: curves, plans, money, events, prices");
  const auto flags = std::make_shared<DashboardFlags>();
  command->add_flag("-A,--all-namespaces", flags->page.all_namespaces, "show the jobs of all namespaces");
  command->add_option("--port", flags->page.port, "port on 127.0.0.1; 0: any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--server", flags->page.price_service.address,
                      "HOST:PORT of the gRPC port of medley-scheduler, for the history of prices; default: the one "
                      "that medley run --keep has started");
  AddClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_status] {
    const absl::Status status = Run(*flags);
    if (!status.ok()) std::fprintf(stderr, "medley dashboard: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
