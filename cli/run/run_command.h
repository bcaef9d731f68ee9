// `medley run FILE`: the whole of Medley on one machine, until the job has finished.
#pragma once

#include <filesystem>

namespace medley::cli {

struct RunOptions {
  std::filesystem::path file;
  std::filesystem::path programs;  // folder of the other programs; empty: beside this one
  std::filesystem::path folder;    // run folder; empty: a temporary one, removed unless `keep`
  bool keep = false;               // leave the cluster up until interrupted, and print its kubeconfig
  bool plain = false;              // lines, even on a terminal
  double timeout_seconds = 900;
  int port = 0;
};

// 0: Complete, and all that the scenario expects holds. 1: not so. 2: bad arguments or manifests. 130: interrupted.
int Run(const RunOptions& options);

}  // namespace medley::cli
