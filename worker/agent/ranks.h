// The variables by which the processes of a program find one another, as torchrun gives them. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

namespace medley::worker {

// Where the processes of one unit stand among all processes of the program.
struct ProgramPlace {
  int unit = 0;                              // 0..units-1; the process of rank 0 is on unit 0
  int units = 1;                             // >= 1
  int processes = 1;                         // on each unit, >= 1
  std::string master_address = "127.0.0.1";  // of unit 0
  int master_port = 0;
  std::string run_id;     // the same for all processes of a job
  int restarts = 0;       // how often the program was started before
  int progress_port = 0;  // where reports are posted; 0: nowhere
};

// The environment of the process `local_rank` of the unit, as "NAME=value". It is the agent's `own` environment but for
// what begins with MEDLEY_, which is the agent's and may name secrets, and for the variables that are set here:
// RANK = unit * processes + local_rank, and so on. MEDLEY_PROGRAM_PATH, if it is set, is the PATH of the program.
std::vector<std::string> ChildEnvironment(const std::vector<std::string>& own, const ProgramPlace& place,
                                          int local_rank);

// The processes of a unit: those that the job asks for (above 0), or one for each GPU that `visible_gpus` lists, as
// CUDA_VISIBLE_DEVICES, or one.
int ProcessesOfUnit(int asked, const std::string& visible_gpus);

// The arguments with every one that begins with the folder `from` under `to` instead. Empty `from`: as they are.
std::vector<std::string> WithFolder(std::vector<std::string> arguments, std::string from, const std::string& to);

}  // namespace medley::worker
