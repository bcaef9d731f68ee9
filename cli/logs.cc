// medley logs JOB: prints the logs of all pods of a job as one log.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "cli/cluster/log_follower.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "common/base/status.h"

namespace medley::cli {
namespace {

struct LogsFlags {
  ClusterFlags cluster;
  LogChoice choice;
  std::string since;
  bool follow = false;
  bool timestamps = false;
  bool raw = false;
  std::string color = "auto";
  std::string output = "text";
};

bool Coloured(const std::string& color) {
  if (color != "auto") return color == "always";
  const char* refused = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (refused == nullptr || *refused == '\0');
}

absl::Status Run(LogsFlags& flags) {
  base::SystemClock clock;
  if (!flags.since.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const base::nanoseconds since, base::ParseDuration(flags.since));
    flags.choice.since_seconds = static_cast<int64_t>(std::ceil(base::ToSeconds(since)));
    if (*flags.choice.since_seconds <= 0)
      return base::InvalidArgument("--since: '{}' must be greater than 0", flags.since);
  }
  flags.choice.job = JobName(flags.choice.job);
  MEDLEY_ASSIGN_OR_RETURN(const Cluster cluster, Connect(flags.cluster, clock));
  LogPrinter printer({Coloured(flags.color), flags.timestamps, flags.raw});
  const auto print = [&](const LogLine& line) {
    const std::string text = flags.output == "json" ? LogJson(line) : printer.Line(line);
    std::fwrite(text.data(), 1, text.size(), stdout);
  };
  const LogNote note = [](const std::string& sentence) { std::fprintf(stderr, "medley logs: %s\n", sentence.c_str()); };
  if (flags.follow) {
    const LogSink sink = [&](const LogLine& line) {
      print(line);
      std::fflush(stdout);
    };
    return FollowLogs(cluster, flags.choice, clock, {}, sink, note);
  }
  std::vector<LogLine> lines;  // collected before printing, so that all prefixes have the same width
  const LogSink sink = [&](const LogLine& line) {
    printer.Expect(line.pod);
    lines.push_back(line);
  };
  const absl::Status read = ReadLogs(cluster, flags.choice, sink, note);
  for (const LogLine& line : lines) print(line);
  return read;
}

}  // namespace

void AddLogs(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand(
      "logs", "Print the logs of all pods of a TrainingJob as one log, with the pod's name before each line");
  const auto flags = std::make_shared<LogsFlags>();
  LogChoice& choice = flags->choice;
  command->add_option("JOB", choice.job, "name of a TrainingJob")->required();
  command->add_option("--role", choice.role, "only pods of this role")
      ->check(CLI::IsMember({"coordinator", "server", "trainer", "profiler"}));
  command->add_option("--stage", choice.stage, "only trainers of this stage of the plan in force");
  command->add_flag("-f,--follow", flags->follow, "follow the logs until the job has finished, across rescales");
  command->add_option("--tail", choice.tail, "only this number of last lines of each pod")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--since", flags->since, "only lines newer than this, such as 90s, 5m or 2h");
  command->add_flag("--timestamps", flags->timestamps, "print the time before each line");
  command->add_flag("--raw", flags->raw, "print lines as they were written (JSON)");
  command->add_flag("-p,--previous", choice.previous, "logs of the previous start of each container");
  command->add_option("--max-pods", choice.max_pods, "most pods to follow at the same time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--color", flags->color, "colours: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "text or json, a JSON object for each line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  AddClusterFlags(*command, flags->cluster);
  command->callback([flags, &exit_status] {
    const absl::Status done = Run(*flags);
    if (!done.ok() && flags->output == "json") PrintJsonError(base::Message(done));
    if (!done.ok()) std::fprintf(stderr, "medley logs: %s\n", base::Message(done).c_str());
    exit_status = done.ok() ? 0 : 1;
  });
}

}  // namespace medley::cli
