#include "cli/complete.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "cli/cluster/connection.h"
#include "common/base/log.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

// The possible values of an option; empty when the option takes any value.
std::vector<std::string> ValuesOf(const std::string& option, const std::string& command) {
  if (option == "--role") return {"coordinator", "server", "trainer", "profiler"};
  if (option == "--color") return {"auto", "always", "never"};
  if (option != "--output" && option != "-o") return {};
  if (command == "top") return {"table", "json"};
  return {"table", "json", "yaml", "request"};
}

bool TakesFile(const std::string& option) {
  for (const char* name : {"--kubeconfig", "--prices", "--profile", "--hardware", "--policy", "--save-policy", "--svg",
                           "--folder", "--programs", "--token-file", "--ca", "--analytic"}) {
    if (option == name) return true;
  }
  return false;
}

const CLI::Option* Find(const CLI::App& command, const std::string& word) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->check_name(word)) return option;
  }
  return nullptr;
}

void Keep(const std::string& prefix, Candidates& candidates) {
  std::erase_if(candidates.words, [&](const std::string& word) { return !word.starts_with(prefix); });
  std::sort(candidates.words.begin(), candidates.words.end());
}

std::vector<std::string> OptionNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

Candidates CompleteIn(const CLI::App& command, const std::vector<std::string>& words, const JobNames& jobs) {
  const std::string& name = command.get_name();
  const std::string& before = words[words.size() - 2];
  const std::string& typed = words.back();
  Candidates candidates;
  const CLI::Option* option = before.starts_with("-") ? Find(command, before) : nullptr;
  if (option != nullptr && option->get_items_expected_max() > 0) {
    candidates.words = before == "--from" ? jobs(words) : ValuesOf(before, name);
    candidates.files = TakesFile(before);
  } else if (typed.starts_with("-")) {
    candidates.words = OptionNames(command);
  } else if (name == "data" && words.size() > 2) {
    candidates.files = true;
  } else {
    for (const CLI::App* part : command.get_subcommands([](const CLI::App*) { return true; })) {
      candidates.words.push_back(part->get_name());
    }
    if (name == "logs" || name == "explain") candidates.words = jobs(words);
    candidates.files = candidates.words.empty() && name != "logs" && name != "top";
    if (name == "explain") candidates.files = typed.find_first_of("./") != std::string::npos;
  }
  Keep(typed, candidates);
  return candidates;
}

// The value of the first option in `names` that is among `words`, or "".
std::string ValueAfter(const std::vector<std::string>& words, std::initializer_list<std::string_view> names) {
  for (size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view name : names) {
      if (words[i] == name && i + 1 < words.size()) return words[i + 1];
      const bool joined = words[i].size() > name.size() && words[i].starts_with(name);
      if (joined && words[i][name.size()] == '=') return words[i].substr(name.size() + 1);
    }
  }
  return "";
}

std::vector<std::string> JobsOfCluster(const std::vector<std::string>& words) {
  const kube::KubeconfigFlags flags{ValueAfter(words, {"--kubeconfig"}), ValueAfter(words, {"--context"}),
                                    ValueAfter(words, {"-n", "--namespace"})};
  base::log::Configure("medley", base::log::Level::kError);  // a warning would appear inside the command line
  auto config = kube::FindCluster(flags, kube::ProcessEnvironment());
  if (!config.ok()) return {};
  config->connect_timeout = std::chrono::milliseconds(2000);
  config->request_timeout = std::chrono::milliseconds(2000);
  config->max_retries = 0;
  base::SystemClock clock;
  const std::string ns = config->ns;
  kube::HttpClient client(*std::move(config), clock, 1);
  const auto list = client.List(ops::TrainingJobs(), {.ns = ns, .limit = 500});
  std::vector<std::string> names;
  if (!list.ok()) return names;
  for (const kube::Object& job : list->items) names.push_back(job.key().name);
  return names;
}

}  // namespace

Candidates Complete(const CLI::App& app, const std::vector<std::string>& words, const JobNames& jobs) {
  Candidates candidates;
  if (words.empty()) return candidates;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (words.size() > 1) {
    for (const CLI::App* command : commands) {
      if (command->get_name() == words[0]) return CompleteIn(*command, words, jobs);
    }
    return candidates;
  }
  for (const CLI::App* command : commands) candidates.words.push_back(command->get_name());
  Keep(words[0], candidates);
  return candidates;
}

int PrintCompletions(const CLI::App& app, const std::vector<std::string>& words) {
  const Candidates candidates = Complete(app, words, JobsOfCluster);
  for (const std::string& word : candidates.words) std::printf("%s\n", word.c_str());
  std::printf(":%d\n", candidates.files ? 0 : 4);
  return 0;
}

}  // namespace medley::cli
