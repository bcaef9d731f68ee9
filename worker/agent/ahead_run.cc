#include "worker/agent/ahead_run.h"

#include <atomic>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status.h"

namespace medley::worker {
namespace {

namespace fs = std::filesystem;

constexpr base::seconds kReadyWait{60};
constexpr base::milliseconds kReadyLook{20};

// Runs the script as `python SCRIPT` does, in __main__, with a pause after the imports.
constexpr char kHold[] = R"(
def hold():
    import __future__, ast, importlib.util, os, sys, time
    go = sys.argv[1]
    sys.argv = sys.argv[2:]
    script = sys.argv[0]
    folder = sys.path[0] = os.path.dirname(os.path.realpath(script))
    main = sys.modules["__main__"].__dict__
    del main["hold"]
    main["__file__"] = script
    with open(script, "rb") as file:
        tree = compile(file.read(), script, "exec", ast.PyCF_ONLY_AST, True)

    def installed(name):
        if name == "__future__":
            return True
        try:
            found = importlib.util.find_spec(name.split(".")[0])
        except Exception:
            return False
        if found is None or found.origin is None:
            return False
        return found.origin in ("built-in", "frozen") or not os.path.realpath(found.origin).startswith(folder + os.sep)

    def same_at_any_time(node):
        if isinstance(node, ast.Import):
            return all(installed(each.name) for each in node.names)
        if isinstance(node, ast.ImportFrom):
            return node.level == 0 and installed(node.module)
        return node is tree.body[0] and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    flags, count = 0, 0
    for node in tree.body:
        if not same_at_any_time(node):
            break
        count += 1
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            for each in node.names:
                flags |= getattr(__future__, each.name).compiler_flag
    tree.body, rest = tree.body[:count], tree.body[count:]
    exec(compile(tree, script, "exec", flags, True), main)
    open(go + "." + os.environ["RANK"], "w").close()
    while not os.path.exists(go):
        time.sleep(0.02)
    tree.body = rest
    exec(compile(tree, script, "exec", flags, True), main)


hold()
)";

bool IsPython(const std::string& command) {
  const std::string name = fs::path(command).filename();
  return name.starts_with("python") && name.find_first_not_of("0123456789.", 6) == std::string::npos;
}

}  // namespace

std::vector<std::string> HeldCommand(const std::vector<std::string>& command, const std::string& go) {
  if (command.empty() || !IsPython(command.front())) return {};
  size_t script = 1;
  while (script < command.size() && (command[script] == "-u" || command[script] == "-B")) ++script;
  if (script == command.size() || !command[script].ends_with(".py") || command[script].starts_with("-")) return {};
  const auto at = command.begin() + static_cast<std::ptrdiff_t>(script);
  std::vector<std::string> held(command.begin(), at);
  held.insert(held.end(), {"-c", kHold, go});
  held.insert(held.end(), at, command.end());
  return held;
}

class AheadRun::Rep {
 public:
  Rep(fs::path folder, base::Clock& clock) : folder_(std::move(folder)), clock_(clock) {}
  ~Rep() {
    run_ = nullptr;
    thread_ = {};
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string go() const { return folder_ / "go"; }

  // The processes end with the thread that starts them.
  absl::Status Start(const model::ProgramSpec& program, const ProgramPlace& place,
                     const std::vector<std::string>& environment, std::function<void(const absl::Status&)> failed) {
    first_rank_ = place.unit * place.processes;
    processes_ = place.processes;
    const auto started = std::make_shared<std::promise<absl::Status>>();
    std::future<absl::Status> answer = started->get_future();
    thread_ = std::jthread([&, started, failed = std::move(failed)](const std::stop_token& stop) {
      auto run = ProgramRun::Start(program, place, environment, clock_, [this, failed](const absl::Status& why) {
        if (failed) failed(why);
        ended_ = true;
      });
      if (run.ok()) run_ = *std::move(run);
      started->set_value(run.status());  // the references are not used from here on
      while (!stop.stop_requested()) clock_.SleepFor(std::chrono::hours(1), stop);
    });
    return answer.get();
  }

  void WaitUntilReady(const std::stop_token& stop) {
    const base::SteadyTime begin = clock_.Steady();
    const auto ready = [this] {
      for (int rank = first_rank_; rank < first_rank_ + processes_; ++rank) {
        std::error_code ignored;
        if (!fs::exists(go() + "." + std::to_string(rank), ignored)) return false;
      }
      return true;
    };
    while (!ready()) {
      if (stop.stop_requested() || ended_ || clock_.Steady() - begin >= kReadyWait) return;
      clock_.SleepFor(kReadyLook, stop);
    }
    base::log::Info("the program is started ahead and has imported what it needs",
                    {{"seconds", fmt::format("{:.2f}", base::ToSeconds(clock_.Steady() - begin))}});
  }

  std::unique_ptr<ProgramRun> Go() {
    if (const absl::Status written = base::WriteFileAtomic(go(), ""); !written.ok()) {
      base::log::Warn("the program that was started ahead cannot go on, and is started again",
                      {{"why", base::Message(written)}});
      run_ = nullptr;
    }
    if (run_) run_->Began();
    return std::move(run_);
  }

 private:
  const fs::path folder_;
  base::Clock& clock_;
  int first_rank_ = 0;
  int processes_ = 1;
  std::atomic<bool> ended_ = false;
  std::unique_ptr<ProgramRun> run_;
  std::jthread thread_;
};

AheadRun::AheadRun(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
AheadRun::~AheadRun() = default;
void AheadRun::WaitUntilReady(const std::stop_token& stop) { rep_->WaitUntilReady(stop); }
std::unique_ptr<ProgramRun> AheadRun::Go() { return rep_->Go(); }

std::unique_ptr<AheadRun> AheadRun::Start(model::ProgramSpec program, const ProgramPlace& place,
                                          const std::vector<std::string>& environment, base::Clock& clock,
                                          std::function<void(const absl::Status&)> failed) {
  if (HeldCommand(program.command, "").empty()) return nullptr;
  absl::StatusOr<fs::path> folder = base::MakeTempDir("medley-ahead");
  if (!folder.ok()) return nullptr;
  auto rep = std::make_unique<Rep>(*std::move(folder), clock);
  program.command = HeldCommand(program.command, rep->go());
  if (!rep->Start(program, place, environment, std::move(failed)).ok()) return nullptr;
  return std::unique_ptr<AheadRun>(new AheadRun(std::move(rep)));
}

}  // namespace medley::worker
