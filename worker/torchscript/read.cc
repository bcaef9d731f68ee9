#include "worker/torchscript/read.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common/base/file.h"
#include "common/base/status.h"
#include "worker/exported/archive.h"

namespace medley::worker::torchscript {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kProgram[] = "medley-torchscript";

// An open file that is closed at the end.
class File {
 public:
  explicit File(int file = -1) : file_(file) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { Close(); }
  void Set(int file) { file_ = file; }
  void Close() {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
  }
  int get() const { return file_; }

 private:
  int file_;
};

struct Pipe {
  File read, write;
  bool Open() {
    std::array<int, 2> ends = {};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    read.Set(ends[0]);
    write.Set(ends[1]);
    return true;
  }
};

// A child that is ended and waited for, whatever happens.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    Wait();
  }
  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  pid_t pid_;
};

absl::StatusOr<pid_t> Start(const std::string& program, const std::vector<SampleInput>& inputs, int file, Pipe& out,
                            Pipe& err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  std::vector<std::string> words = {program};
  for (const SampleInput& input : inputs) words.push_back(Text(input));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<std::string, 2> variables = {"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"};
  std::array<char*, 3> environment = {variables[0].data(), variables[1].data(), nullptr};
  pid_t pid = -1;
  const int result = ::posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  if (result == 0) return pid;
  return base::Internal("starting {}: {}", program, std::generic_category().message(result));
}

// Reads both pipes until both end.
absl::Status Collect(Pipe& out, Pipe& err, const ReadLimits& limits, std::string& output, std::string& errors) {
  constexpr size_t kMostErrors = 4096;
  const Clock::time_point end = Clock::now() + limits.time;
  std::vector<char> block(size_t{1} << 18);
  while (out.read.get() >= 0 || err.read.get() >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) return base::DeadlineExceeded("it was not read within {} s", limits.time.count());
    std::array<pollfd, 2> wait = {pollfd{out.read.get(), POLLIN, 0}, pollfd{err.read.get(), POLLIN, 0}};
    if (::poll(wait.data(), wait.size(), static_cast<int>(left)) < 0 && errno != EINTR) {
      return base::ErrnoStatus(errno, "waiting for it");
    }
    for (size_t i = 0; i < wait.size(); ++i) {
      if (wait[i].fd < 0 || wait[i].revents == 0) continue;
      const ssize_t count = ::read(wait[i].fd, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        (i == 0 ? out : err).read.Close();
        continue;
      }
      std::string& to = i == 0 ? output : errors;
      to.append(block.data(), static_cast<size_t>(count));
      if (i == 1) to.resize(std::min(to.size(), kMostErrors));
      if (i == 0 && static_cast<int64_t>(to.size()) > limits.bytes) {
        return base::ResourceExhausted("what it is lowered to has more than {} bytes", limits.bytes);
      }
    }
  }
  return absl::OkStatus();
}

// What the child said: "3\nsentence".
absl::Status StatusOf(const std::string& errors, int status) {
  int code = 0;
  const size_t line = errors.find('\n');
  const auto [end, error] = std::from_chars(errors.data(), errors.data() + errors.size(), code);
  if (error == std::errc() && line != std::string::npos && end == errors.data() + line && code > 0 && code <= 16) {
    return absl::Status(static_cast<absl::StatusCode>(code), errors.substr(line + 1));
  }
  if (WIFSIGNALED(status)) {
    return base::InvalidArgument("the process that read it died of signal {}", WTERMSIG(status));
  }
  return base::InvalidArgument("the process that read it ended with status {}: {}", WEXITSTATUS(status), errors);
}

absl::StatusOr<std::shared_ptr<const std::string>> Convert(const std::string& path,
                                                           const std::vector<SampleInput>& inputs,
                                                           const ReadLimits& limits) {
  MEDLEY_ASSIGN_OR_RETURN(const int opened, base::OpenRegularFile(path));
  const File file(opened);
  MEDLEY_ASSIGN_OR_RETURN(const std::string program, ReaderProgram());
  Pipe out, err;
  if (!out.Open() || !err.Open()) return base::ErrnoStatus(errno, "making a pipe");
  MEDLEY_ASSIGN_OR_RETURN(const pid_t pid, Start(program, inputs, file.get(), out, err));
  Child child(pid);
  out.write.Close();
  err.write.Close();
  auto output = std::make_shared<std::string>();
  std::string errors;
  MEDLEY_RETURN_IF_ERROR(Collect(out, err, limits, *output, errors));
  const int status = child.Wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return StatusOf(errors, status);
  return output;
}

}  // namespace

absl::StatusOr<std::string> ReaderProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const std::filesystem::path& path :
       {self.parent_path() / kProgram, self.parent_path().parent_path() / "bin" / kProgram}) {
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return base::Internal("{} does not lie beside {}", kProgram, self.string());
}

absl::StatusOr<exported::Program> ReadTorchScript(const std::string& path, const std::vector<SampleInput>& inputs,
                                                  const ReadLimits& limits) {
  MEDLEY_ASSIGN_OR_RETURN(const auto archive, LowerTorchScript(path, inputs, limits));
  return exported::ReadArchiveBytes(archive, path);
}

absl::StatusOr<std::shared_ptr<const std::string>> LowerTorchScript(const std::string& path,
                                                                    const std::vector<SampleInput>& inputs,
                                                                    const ReadLimits& limits) {
  auto archive = Convert(path, inputs, limits);
  if (!archive.ok()) return base::Annotate(archive.status(), "reading the model " + path);
  return archive;
}

}  // namespace medley::worker::torchscript
