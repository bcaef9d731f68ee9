// `medley run FILE`: runs a job with all of Medley on one machine until the job has finished.
#pragma once

#include <filesystem>

namespace medley::cli {

struct RunOptions {
  std::filesystem::path file;
  std::filesystem::path programs;  // folder of the other programs; empty: the folder of this program
  // Run folder; empty: JOB-run beside the model, removed once the run is over.
  std::filesystem::path folder;
  std::filesystem::path model;    // folder for the finished model; empty: ./JOB-model
  bool keep = false;              // leave the cluster running until interrupted, and print its kubeconfig
  bool plain = false;             // print lines even on a terminal
  bool json = false;              // print JSON lines (json_lines.h)
  double timeout_seconds = 0;     // stop and save after it; 0: no limit
  bool folder_is_own = false;     // set by Run: `folder` is the default
  bool model_is_default = false;  // set by Run
  bool resume = false;            // continue the run in the folder
  bool measure = false;           // measure again what an earlier run has measured
  int port = 0;
  bool emulate_network = false;  // the cluster has a network of its own, whose links the pods' annotations change
};

// Returns the exit status. 0: the job is Complete and meets the scenario's expectations. 1: it is not or does not. 2:
// the arguments or manifests are invalid, or no plan is possible. 124: stopped at options.timeout_seconds, and can be
// continued. 130: interrupted by SIGINT or SIGTERM. A second one of them ends the process at once, with 130 too.
int Run(const RunOptions& options);

}  // namespace medley::cli
