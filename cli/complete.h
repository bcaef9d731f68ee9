// Completes a command line of `medley`: commands, options, values, names of jobs in the cluster.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace medley::cli {

struct Candidates {
  std::vector<std::string> words;
  bool files = false;  // the shell should offer files as well
};

// Returns the names of the TrainingJobs that the flags among `words` (-n, --context, ...) select; empty when the
// cluster does not answer.
using JobNames = std::function<std::vector<std::string>(const std::vector<std::string>& words)>;

// `words` are those after the program's name; the last one is being typed and may be empty. Pure except for `jobs`.
Candidates Complete(const CLI::App& app, const std::vector<std::string>& words, const JobNames& jobs);

// Prints candidates in the format of cobra's __complete, which kubectl and the bash script read: one per line, then
// ":4" (no files) or ":0". Reads job names from the cluster for at most 2 s.
int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace medley::cli
