#include "worker/predict/program_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/status.h"
#include "worker/predict/frames.h"

namespace medley::worker {
namespace {

constexpr char kWorker[] = "medley-worker";

// Beside this program; for tests in the folder of programs beside theirs.
absl::StatusOr<std::string> WorkerProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& path :
       {self.parent_path() / kWorker, self.parent_path().parent_path() / "bin" / kWorker}) {
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return base::Internal("{}, which computes models from PyTorch, does not lie beside {}", kWorker, self.string());
}

absl::StatusOr<pid_t> Spawn(const std::string& program, const std::string& folder, int socket) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::array<std::string, 7> words = {program, "--role", "predictor", "--export", folder, "--log-level", "error"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const char* temporary = std::getenv("TMPDIR");
  std::string variable = std::string("TMPDIR=") + (temporary == nullptr ? "/tmp" : temporary);
  std::array<char*, 2> environment = {variable.data(), nullptr};
  pid_t pid = -1;
  const int result = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (result == 0) return pid;
  return base::Internal("starting {}: {}", program, std::generic_category().message(result));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramProcess>> ProgramProcess::Start(const LoadedModel& model,
                                                                      std::chrono::seconds longest) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string program, WorkerProgram());
  std::array<int, 2> ends = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return base::ErrnoStatus(errno, "making a pair of sockets");
  }
  const timeval limit = {.tv_sec = longest.count(), .tv_usec = 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    ::setsockopt(ends[0], SOL_SOCKET, option, &limit, sizeof limit);
  }
  const absl::StatusOr<pid_t> pid = Spawn(program, std::filesystem::absolute(model.folder).string(), ends[1]);
  ::close(ends[1]);
  if (!pid.ok()) {
    ::close(ends[0]);
    return pid.status();
  }
  std::unique_ptr<ProgramProcess> process(new ProgramProcess(*pid, ends[0]));
  MEDLEY_ASSIGN_OR_RETURN(const std::string hello, process->Answer());
  std::array<int32_t, 3> sample = {};
  if (hello.size() != sizeof sample) return base::Internal("{} has another version than this program", kWorker);
  std::memcpy(sample.data(), hello.data(), sizeof sample);
  const SampleShape& shape = model.model.graph.shape;
  if (sample != std::array<int32_t, 3>{shape.fields, shape.numerics, model.model.graph.Outputs()}) {
    return base::InvalidArgument("{}: the program does not fit {}", model.folder.string(), kModelFile);
  }
  process->outputs_ = sample[2];
  return process;
}

ProgramProcess::~ProgramProcess() {
  ::close(socket_);
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

absl::Status ProgramProcess::Ended(const absl::Status& why) {
  if (!absl::IsUnavailable(why) || pid_ < 0) return base::Annotate(why, "computing the model");
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) {
    return base::Internal("computing the model: the process was ended by signal {}", WTERMSIG(status));
  }
  return base::Internal("computing the model: the process ended with status {}", WEXITSTATUS(status));
}

absl::StatusOr<std::string> ProgramProcess::Answer() {
  absl::StatusOr<Frame> frame = ReadFrame(socket_);
  if (!frame.ok()) return Ended(frame.status());
  if (frame->code == 0) return std::move(frame->bytes);
  const bool known = frame->code > 0 && frame->code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  return absl::Status(known ? static_cast<absl::StatusCode>(frame->code) : absl::StatusCode::kInternal, frame->bytes);
}

absl::Status ProgramProcess::Logits(const Batch& rows, std::vector<float>& logits) {
  std::string request;
  request.append(reinterpret_cast<const char*>(rows.ids.data()), rows.ids.size() * sizeof(int32_t));
  request.append(reinterpret_cast<const char*>(rows.numerics.data()), rows.numerics.size() * sizeof(float));
  if (const absl::Status sent = WriteFrame(socket_, rows.samples, request); !sent.ok()) return Ended(sent);
  MEDLEY_ASSIGN_OR_RETURN(const std::string answer, Answer());
  const size_t count = static_cast<size_t>(rows.samples) * static_cast<size_t>(outputs_);
  if (answer.size() != count * sizeof(float)) {
    return base::Internal("computing the model: {} bytes for {} numbers", answer.size(), count);
  }
  logits.resize(logits.size() + count);
  std::memcpy(logits.data() + logits.size() - count, answer.data(), answer.size());
  return absl::OkStatus();
}

}  // namespace medley::worker
