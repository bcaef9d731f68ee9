// `medley run FILE`: runs a job with all of Medley on one machine until the job has finished.
#pragma once

#include <filesystem>

namespace medley::cli {

struct RunOptions {
  std::filesystem::path file;
  std::filesystem::path programs;  // folder of the other programs; empty: the folder of this program
  std::filesystem::path folder;    // run folder; empty: a temporary one, removed unless the run fails
  std::filesystem::path model;     // folder for the finished model; empty: ./JOB-model
  bool keep = false;               // leave the cluster running until interrupted, and print its kubeconfig
  bool plain = false;              // print lines even on a terminal
  double timeout_seconds = 900;
  int port = 0;
  bool emulate_network = false;  // the cluster has a network of its own, whose links the pods' annotations change
};

// Returns the exit status. 0: the job is Complete and meets the scenario's expectations. 1: it is not or does not. 2:
// the arguments or manifests are invalid, or no plan is possible. 130: interrupted.
int Run(const RunOptions& options);

}  // namespace medley::cli
