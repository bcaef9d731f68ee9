// Ends a run before its job is complete, so that `medley run --resume` continues it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/checkpoints_on_disk.h"
#include "common/base/clock.h"
#include "kube/client.h"

namespace medley::cli {

// Longer than the operator waits for the checkpoint of a job that is being suspended (60 s).
inline constexpr base::nanoseconds kStopTimeout = base::seconds(75);

struct StoppedRun {
  bool complete = false;  // the job was complete before it could be stopped
  std::optional<CheckpointOnDisk> checkpoint;
  int64_t step = 0;     // the last that was trained, as far as is known
  std::string problem;  // why no checkpoint of that step was written; empty: it was, or nothing was trained
};

// Asks for a checkpoint now and waits until it is written, at most `timeout`; not at all when the job has not trained a
// step yet. `job_folder`: where the job keeps its checkpoints; empty: in no place that this machine can read.
StoppedRun StopAndSave(base::Clock& clock, kube::Client& client, const kube::Key& job, const worker::Volume& job_folder,
                       base::nanoseconds timeout = kStopTimeout);

// The lines that are printed then. `command`: continues the run. Pure.
std::vector<std::string> StopLines(const StoppedRun& stopped, const std::string& command);

// "medley run job.yaml --resume --folder 'my runs/a'": words are quoted for a shell where that is necessary. Pure.
std::string ShellCommand(const std::vector<std::string>& words);

}  // namespace medley::cli
