// The commands of `medley`. Each function adds one command, which sets `exit_status` when it runs.
// Exit status: 0 done; 1 failed, with a sentence on stderr; 2 no feasible plan; 3 the job has failed; above 100 the
// command line is wrong.
#pragma once

namespace CLI {
class App;
}

namespace medley::cli {

void AddRun(CLI::App& app, int& exit_status);
void AddSweep(CLI::App& app, int& exit_status);
void AddTop(CLI::App& app, int& exit_status);
void AddDashboard(CLI::App& app, int& exit_status);
void AddLogs(CLI::App& app, int& exit_status);
void AddPlan(CLI::App& app, int& exit_status);
void AddDownload(CLI::App& app, int& exit_status);
void AddExplain(CLI::App& app, int& exit_status);
void AddPrices(CLI::App& app, int& exit_status);
void AddPredict(CLI::App& app, int& exit_status);
void AddInit(CLI::App& app, int& exit_status);
void AddData(CLI::App& app, int& exit_status);
void AddEvaluate(CLI::App& app, int& exit_status);
void AddModel(CLI::App& app, int& exit_status);
void AddOnnx(CLI::App& app, int& exit_status);
void AddProfile(CLI::App& app, int& exit_status);
void AddProgram(CLI::App& app, int& exit_status);
void AddSimulate(CLI::App& app, int& exit_status);
void AddVersion(CLI::App& app, int& exit_status);
void AddCompletion(CLI::App& app, int& exit_status);

}  // namespace medley::cli
