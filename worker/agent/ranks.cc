#include "worker/agent/ranks.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace medley::worker {

std::vector<std::string> ChildEnvironment(const std::vector<std::string>& own, const ProgramPlace& place,
                                          int local_rank) {
  const int rank = place.unit * place.processes + local_rank, world = place.units * place.processes;
  std::map<std::string, std::string> set = {{"RANK", std::to_string(rank)},
                                            {"LOCAL_RANK", std::to_string(local_rank)},
                                            {"WORLD_SIZE", std::to_string(world)},
                                            {"LOCAL_WORLD_SIZE", std::to_string(place.processes)},
                                            {"GROUP_RANK", std::to_string(place.unit)},
                                            {"GROUP_WORLD_SIZE", std::to_string(place.units)},
                                            {"ROLE_NAME", "default"},
                                            {"ROLE_RANK", std::to_string(rank)},
                                            {"ROLE_WORLD_SIZE", std::to_string(world)},
                                            {"MASTER_ADDR", place.master_address},
                                            {"MASTER_PORT", std::to_string(place.master_port)},
                                            {"TORCHELASTIC_RESTART_COUNT", std::to_string(place.restarts)},
                                            {"TORCHELASTIC_MAX_RESTARTS", std::to_string(place.restarts)},
                                            {"TORCHELASTIC_RUN_ID", place.run_id}};
  if (place.progress_port > 0) set["MEDLEY_PROGRESS_PORT"] = std::to_string(place.progress_port);
  constexpr std::string_view kPath = "MEDLEY_PROGRAM_PATH=";
  for (const std::string& variable : own) {
    if (variable.starts_with(kPath)) set["PATH"] = variable.substr(kPath.size());
  }
  std::vector<std::string> variables;
  bool unbuffered = false;
  for (const std::string& variable : own) {
    const std::string name = variable.substr(0, variable.find('='));
    if (name.starts_with("MEDLEY_") || set.contains(name)) continue;
    unbuffered = unbuffered || name == "PYTHONUNBUFFERED";
    variables.push_back(variable);
  }
  for (const auto& [name, value] : set) variables.push_back(name + "=" + value);
  // Otherwise a line about a step arrives with the lines of many further steps.
  if (!unbuffered) variables.emplace_back("PYTHONUNBUFFERED=1");
  return variables;
}

int ProcessesOfUnit(int asked, const std::string& visible_gpus) {
  if (asked > 0) return asked;
  if (visible_gpus.empty() || visible_gpus.starts_with("-") || visible_gpus == "NoDevFiles") return 1;
  return 1 + static_cast<int>(std::count(visible_gpus.begin(), visible_gpus.end(), ','));
}

std::vector<std::string> WithFolder(std::vector<std::string> arguments, std::string from, const std::string& to) {
  while (from.size() > 1 && from.back() == '/') from.pop_back();
  if (from.empty()) return arguments;
  for (std::string& argument : arguments) {
    const bool below = argument.starts_with(from) && (argument.size() == from.size() || argument[from.size()] == '/');
    if (below) argument = to + argument.substr(from.size());
  }
  return arguments;
}

}  // namespace medley::worker
