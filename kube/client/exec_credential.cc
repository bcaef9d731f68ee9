#include "kube/client/exec_credential.h"

#include <absl/strings/escaping.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "kube/object.h"

extern char** environ;

namespace medley::kube {
namespace {

constexpr size_t kMaxOutput = 1 << 20;

std::string ExecInfo(const ExecPlugin& plugin, bool interactive) {
  Json info = {
      {"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", interactive}}}};
  if (plugin.cluster) {
    Json& cluster = info["spec"]["cluster"];
    cluster = {{"server", plugin.cluster->server}};
    if (!plugin.cluster->ca_data.empty()) {
      cluster["certificate-authority-data"] = absl::Base64Escape(plugin.cluster->ca_data);
    }
    if (!plugin.cluster->tls_server_name.empty()) cluster["tls-server-name"] = plugin.cluster->tls_server_name;
    if (plugin.cluster->insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
  }
  return info.dump();
}

// This process's environment, with the plugin's variables added or replaced.
std::vector<std::string> PluginEnvironment(const ExecPlugin& plugin, bool interactive) {
  std::vector<std::pair<std::string, std::string>> own = plugin.env;
  own.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(plugin, interactive));
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : own) replaced = replaced || text.starts_with(name + "=");
    if (!replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the plugin with its stdout on `write_end`. Returns 0 or an errno value.
int Spawn(const ExecPlugin& plugin, bool interactive, int write_end, pid_t* pid) {
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> environment = PluginEnvironment(plugin, interactive);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!interactive) posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, write_end, STDOUT_FILENO);
  const int error = posix_spawnp(pid, plugin.command.c_str(), &actions, nullptr, Pointers(arguments).data(),
                                 Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Reads until the end of the stream. Returns false after `timeout` or too many bytes.
bool ReadAll(int fd, std::chrono::seconds timeout, std::string& out) {
  const base::SystemClock clock;
  const base::SteadyTime deadline = clock.Steady() + timeout;
  char buffer[4096];
  while (out.size() <= kMaxOutput) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock.Steady()).count();
    if (left <= 0) return false;
    pollfd waiting{fd, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (waiting.revents == 0) continue;
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) return true;
    out.append(buffer, static_cast<size_t>(n));
  }
  return false;
}

absl::StatusOr<ExecCredential> Parse(const ExecPlugin& plugin, const std::string& text) {
  const Object answer(Json::parse(text, nullptr, false));
  ExecCredential credential{answer.String("/status/token"), answer.String("/status/clientCertificateData"),
                            answer.String("/status/clientKeyData")};
  if (answer.kind() != "ExecCredential" || (credential.token.empty() && credential.client_certificate_data.empty())) {
    return base::InvalidArgument("credential plugin '{}' did not print an ExecCredential with a token or a certificate",
                                 plugin.command);
  }
  if (!plugin.api_version.empty() && answer.api_version() != plugin.api_version) {
    return base::InvalidArgument("credential plugin '{}' answered in {}, but the kubeconfig requires {}",
                                 plugin.command, answer.api_version(), plugin.api_version);
  }
  return credential;
}

}  // namespace

absl::StatusOr<ExecCredential> RunExecPlugin(const ExecPlugin& plugin) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  if (plugin.interactive_mode == "Always" && !terminal) {
    return base::FailedPrecondition("credential plugin '{}' needs a terminal to ask the user", plugin.command);
  }
  const bool interactive = terminal && plugin.interactive_mode != "Never";
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return base::ErrnoStatus(errno, "pipe");
  pid_t pid = 0;
  const int error = Spawn(plugin, interactive, pipe_ends[1], &pid);
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    const std::string hint = plugin.install_hint.empty() ? "" : "; " + plugin.install_hint;
    return base::NotFound("credential plugin '{}' of the kubeconfig's user could not be started: {}{}", plugin.command,
                          base::Message(base::ErrnoStatus(error, "start")), hint);
  }
  std::string text;
  const bool complete = ReadAll(pipe_ends[0], plugin.timeout, text);
  close(pipe_ends[0]);
  if (!complete) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!complete) return base::DeadlineExceeded("credential plugin '{}' did not answer in time", plugin.command);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return base::FailedPrecondition("credential plugin '{}' failed with exit status {}", plugin.command,
                                    WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  return Parse(plugin, text);
}

}  // namespace medley::kube
