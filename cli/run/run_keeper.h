// Writes the state of a run into its folder while it lasts. Not thread-safe: one owner.
#pragma once

#include <absl/status/status.h>

#include <filesystem>

#include "cli/run/kept_profiles.h"
#include "cli/run/saved_run.h"
#include "cli/run/snapshot.h"
#include "kube/client.h"

namespace medley::cli {

class RunKeeper {
 public:
  // Borrows the client and the profiles.
  RunKeeper(kube::Client& client, KeptProfiles& profiles, std::filesystem::path folder, SavedRun run)
      : client_(client), profiles_(profiles), folder_(std::move(folder)), run_(std::move(run)) {}

  // Reads the job from the API server and writes it. Errors: those of both.
  absl::Status Write();
  // Writes it from time to time, and keeps the profiles once the job has a plan. A failure is not an error: what was
  // written before is enough to continue.
  void Tick(const Snapshot& view, double seconds);

  const SavedRun& run() const { return run_; }

 private:
  kube::Client& client_;
  KeptProfiles& profiles_;
  const std::filesystem::path folder_;
  SavedRun run_;
  double written_ = 0;  // seconds since the start
  bool planned_ = false;
};

}  // namespace medley::cli
