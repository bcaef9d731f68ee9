// `medley sweep FILE --set ...`: trains a job with every combination of values in one local cluster.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace medley::cli {

struct SweepOptions {
  std::filesystem::path file;
  std::vector<std::string> set;    // of ParseAxis
  std::string metric;              // by which trials are compared; empty: SweepMetric decides
  int at_once = 0;                 // trials at the same time; 0: as many as fit
  std::filesystem::path model;     // folder for the best model; empty: ./JOB-model
  std::filesystem::path folder;    // run folder; empty: a temporary one
  std::filesystem::path programs;  // folder of the other programs; empty: the folder of this program
  bool json = false;
};

// Returns the exit status. 0: a trial is complete. 1: none is, or the cluster failed. 2: the arguments or the manifests
// are invalid. 130: interrupted; the table then has the trials that are complete.
int Sweep(const SweepOptions& options);

}  // namespace medley::cli
