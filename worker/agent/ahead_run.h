// A program that is started before its turn, while another run of it still trains: a Python script is held after the
// imports at its top, which often take longer than all else until its first step.
//
//   auto ahead = AheadRun::Start(program, place, environment, clock, failed);   // null: it cannot be held
//   ahead->WaitUntilReady(stop);
//   auto run = ahead->Go();       // the script goes on
//
// Only imports of installed packages count, up to the first statement that is something else: up to there a script does
// the same whenever it runs. Modules beside the script may do anything, such as reading what was saved.
//
// Thread-safe. The object must outlive the run: a thread of its own keeps the processes alive.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/model/job_spec.h"
#include "worker/agent/program_run.h"
#include "worker/agent/ranks.h"

namespace medley::worker {

// The command with which the script is held until the file `go` exists; each rank creates `go`.RANK when it is. Empty:
// the command is not python [-u] [-B], a script and its arguments
std::vector<std::string> HeldCommand(const std::vector<std::string>& command, const std::string& go);

class AheadRun {
 public:
  // The arguments are those of ProgramRun::Start. Null: the command cannot be held, or could not be started, which is
  // found again, and then reported, when the program is started in its turn.
  static std::unique_ptr<AheadRun> Start(model::ProgramSpec program, const ProgramPlace& place,
                                         const std::vector<std::string>& environment, base::Clock& clock,
                                         std::function<void(const absl::Status&)> failed);
  ~AheadRun();  // ends the processes at once, unless Go was called

  // At most 60 s, or until a process has ended.
  void WaitUntilReady(const std::stop_token& stop);
  std::unique_ptr<ProgramRun> Go();  // once

 private:
  class Rep;
  explicit AheadRun(std::unique_ptr<Rep> rep);
  const std::unique_ptr<Rep> rep_;
};

}  // namespace medley::worker
