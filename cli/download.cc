// medley download JOB [FOLDER]: fetches the finished model of a job of a cluster.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <thread>

#include "cli/commands.h"
#include "cli/download/download.h"
#include "cli/format.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

struct DownloadFlags {
  ClusterFlags cluster;
  DownloadOptions options;
  std::string to;
};

absl::Status Run(const DownloadFlags& flags) {
  base::log::Configure("medley", base::log::Level::kWarn);
  // Ctrl-C ends the download, and its pod is deleted.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::stop_source stop;
  const std::jthread watch([&stop, ends](const std::stop_token& over) {
    const timespec slice{0, 100'000'000};
    while (!over.stop_requested()) {
      if (sigtimedwait(&ends, nullptr, &slice) > 0) stop.request_stop();
    }
  });
  base::SystemClock clock;
  DownloadOptions options = flags.options;
  options.job = JobName(options.job);
  options.to = flags.to.empty() ? "./" + options.job + "-model" : flags.to;
  while (!options.to.has_filename() && options.to.has_relative_path()) options.to = options.to.parent_path();
  MEDLEY_ASSIGN_OR_RETURN(const Cluster cluster, Connect(flags.cluster, clock));
  const auto say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  MEDLEY_ASSIGN_OR_RETURN(const Downloaded done, DownloadModel(cluster, clock, options, stop.get_token(), say));
  std::printf("the model is in %s (%s, %s bytes; its README.md says how to use it)\n", options.to.c_str(),
              Counted(done.files, "file").c_str(), Thousands(static_cast<double>(done.bytes)).c_str());
  return absl::OkStatus();
}

}  // namespace

void AddDownload(CLI::App& app, int& exit_status) {
  CLI::App* command =
      app.add_subcommand("download", "Fetch the finished model of a job from the cluster into a folder");
  const auto flags = std::make_shared<DownloadFlags>();
  command->add_option("job", flags->options.job, "name of the TrainingJob")->required();
  command->add_option("folder", flags->to, "where the model is put; default: ./JOB-model");
  command->add_option("--image", flags->options.image,
                      "image of medley-worker for the pod that reads the volume; default: that of the job's "
                      "coordinator");
  AddClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_status] {
    const absl::Status status = Run(*flags);
    if (!status.ok()) std::fprintf(stderr, "medley download: %s\n", base::Message(status).c_str());
    exit_status = status.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
