// What may come next on a command line of `medley`: commands, options, values, names in the
// cluster.
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

// Names of TrainingJobs, as the words before say (-n, --context, ...); empty when the cluster does
// not answer.
using JobNames = std::function<std::vector<std::string>(const std::vector<std::string>& words)>;

// `words`: after the program's name; the last is the one being typed, maybe empty. Pure but for
// `jobs`.
Candidates Complete(const CLI::App& app, const std::vector<std::string>& words, const JobNames& jobs);

// Prints candidates as cobra's __complete does, which kubectl and the bash script read: one a line,
// then ":4" (no files) or ":0". Asks the cluster for job names, for 2 s at most.
int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace medley::cli
