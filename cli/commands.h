// The commands of `medley`: each file adds one. A command sets `exit_status` when it runs.
// Exit status: 0 done, 1 failed (a sentence on stderr), 2 answered "infeasible", 3 the job that was
// asked for has failed; above 100 the command line was wrong.
#pragma once

namespace CLI {
class App;
}

namespace medley::cli {

void AddRun(CLI::App& app, int& exit_status);
void AddTop(CLI::App& app, int& exit_status);
void AddLogs(CLI::App& app, int& exit_status);
void AddPlan(CLI::App& app, int& exit_status);
void AddExplain(CLI::App& app, int& exit_status);
void AddPrices(CLI::App& app, int& exit_status);
void AddProfile(CLI::App& app, int& exit_status);
void AddVersion(CLI::App& app, int& exit_status);
void AddCompletion(CLI::App& app, int& exit_status);

}  // namespace medley::cli
