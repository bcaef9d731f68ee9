#include "cli/run/local_cluster.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/file.h"
#include "common/base/rng.h"
#include "common/base/secrets.h"
#include "common/base/status.h"
#include "common/object_store/settings.h"
#include "operator/api/crds.h"
#include "operator/api/pool_status.h"
#include "operator/api/resources.h"

namespace medley::cli {
namespace {

constexpr base::nanoseconds kStartTimeout = base::seconds(20);
constexpr base::nanoseconds kPortTimeout = base::seconds(5);

std::string LastLine(const std::filesystem::path& log) {
  const std::string text = base::ReadFile(log).value_or("");
  const size_t end = text.find_last_not_of("\n ");
  if (end == std::string::npos) return "its log is empty";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? -1 : static_cast<long>(begin)));
}

}  // namespace

LocalCluster::LocalCluster(base::Clock& clock, LocalClusterOptions options)
    : clock_(clock), options_(std::move(options)) {}

LocalCluster::~LocalCluster() { Stop(); }

absl::Status LocalCluster::Start() {
  for (const char* program : {"medley-operator", "medley-scheduler", "medley-worker"}) {
    if (!std::filesystem::exists(options_.programs / program)) {
      return base::NotFound("the program {} is missing in {}; name its folder with --programs", program,
                            options_.programs.string());
    }
  }
  MEDLEY_RETURN_IF_ERROR(StartServer());
  MEDLEY_RETURN_IF_ERROR(StartNode());
  MEDLEY_RETURN_IF_ERROR(StartScheduler());
  return StartOperator();
}

absl::Status LocalCluster::StartServer() {
  const auto crds = options_.run_folder / "crds";
  std::filesystem::create_directories(crds);
  for (const auto& [name, text] : ops::BundledCrds()) MEDLEY_RETURN_IF_ERROR(base::WriteFileAtomic(crds / name, text));
  localcluster::ApiServerOptions options{.port = options_.port, .self_signed = true, .crd_paths = {crds}};
  options.warn_of_delete = [](const kube::Object& object) -> std::vector<std::string> {
    const std::string warning = object.kind() == ops::ResourcePools().kind ? ops::DeletionWarning(object) : "";
    if (warning.empty()) return {};
    return {warning};
  };
  server_ = std::make_unique<localcluster::ApiServer>(clock_, std::move(options));
  MEDLEY_RETURN_IF_ERROR(server_->Start());
  MEDLEY_RETURN_IF_ERROR(server_->WriteKubeconfig(kubeconfig()));
  MEDLEY_ASSIGN_OR_RETURN(kube::ClientConfig config, kube::LoadKubeconfig(kubeconfig()));
  client_ = std::make_unique<kube::HttpClient>(std::move(config), clock_, base::SystemSeed());
  for (const kube::Object& object : options_.restored) MEDLEY_RETURN_IF_ERROR(server_->Restore(object));
  return absl::OkStatus();
}

absl::Status LocalCluster::StartNode() {
  localcluster::ProcessNodeOptions options;
  options.root = options_.run_folder / "node";
  options.nodes = options_.nodes;
  options.gpus = options_.gpus;
  options.images = {{"medley-worker", options_.programs / "medley-worker"}};
  options.network = options_.network;
  options.keep_pod_folders = true;
  options.environment["MEDLEY_SAMPLES_DIR"] = options_.run_folder / "samples";
  // Builds with sanitizers then use the same options for the processes of pods.
  options.inherit_env.insert(options.inherit_env.end(), {"ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"});
  // A program runs as in the shell of its user: with the python3 of an environment, and what that has.
  if (const char* const path = std::getenv("PATH"); path != nullptr) options.environment["MEDLEY_PROGRAM_PATH"] = path;
  options.inherit_env.insert(options.inherit_env.end(), {"PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX"});
  // A job reaches object stores with the keys of the user who runs it.
  const auto keys = object_store::SettingVariables();
  options.inherit_env.insert(options.inherit_env.end(), keys.begin(), keys.end());
  options.seed = base::SystemSeed();
  node_ = std::make_unique<localcluster::ProcessNode>(*client_, clock_, std::move(options));
  MEDLEY_RETURN_IF_ERROR(node_->Start());
  server_->SetLogReader(node_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::string> LocalCluster::WaitForFile(const std::filesystem::path& file, ChildProcess& child) {
  const base::SteadyTime deadline = clock_.Steady() + kStartTimeout;
  while (clock_.Steady() < deadline) {
    if (auto text = base::ReadFile(file); text.ok() && !text->empty()) return *text;
    if (auto ended = EndedProgram()) return base::Unavailable("{}", *ended);
    clock_.SleepFor(base::milliseconds(20), std::stop_token());
  }
  return base::DeadlineExceeded(
      "the program with process id {} did not write {} within 20 s; see its log in the run folder", child.pid(),
      file.string());
}

absl::Status LocalCluster::StartScheduler() {
  const auto ports = options_.run_folder / "scheduler.ports";
  scheduler_token_ = base::RandomToken();
  MEDLEY_RETURN_IF_ERROR(base::WriteSecretFile(scheduler_token_file(), scheduler_token_ + "\n"));
  MEDLEY_RETURN_IF_ERROR(base::WriteSecretFile(operator_token_file(), base::RandomToken() + "\n"));
  std::error_code absent;
  std::filesystem::remove(ports, absent);  // of an earlier run in this folder, whose ports no one listens on
  // The metrics are open to this machine, as those of the operator and the coordinators are.
  std::vector<std::string> arguments = {"--grpc-listen",         "127.0.0.1:0",
                                        "--rest-listen",         "127.0.0.1:0",
                                        "--port-file",           ports.string(),
                                        "--poll-seconds",        "0.2",
                                        "--token-file",          scheduler_token_file().string(),
                                        "--operator-token-file", operator_token_file().string(),
                                        "--open-paths",          "/healthz,/readyz,/metrics"};
  if (!options_.prices.empty()) {
    MEDLEY_RETURN_IF_ERROR(SetPrices(options_.prices));
    arguments.insert(arguments.end(), {"--prices", (options_.run_folder / "prices.yaml").string()});
  }
  MEDLEY_ASSIGN_OR_RETURN(scheduler_, ChildProcess::Start({.program = options_.programs / "medley-scheduler",
                                                           .arguments = std::move(arguments),
                                                           .log = options_.run_folder / "scheduler.log"}));
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, WaitForFile(ports, *scheduler_));
  const kube::Json port = kube::Json::parse(text, nullptr, false);
  if (!port.is_object() || !port["grpc"].is_number() || !port["rest"].is_number()) {
    return base::Internal("the file {} does not contain the scheduler's ports", ports.string());
  }
  scheduler_grpc_ = "127.0.0.1:" + port["grpc"].dump();
  scheduler_rest_ = "127.0.0.1:" + port["rest"].dump();
  return absl::OkStatus();
}

absl::Status LocalCluster::StartOperator() {
  std::vector<std::string> arguments = {"--kubeconfig",
                                        kubeconfig().string(),
                                        "--scheduler",
                                        scheduler_grpc_,
                                        "--scheduler-token-file",
                                        operator_token_file().string(),
                                        "--worker-image",
                                        "medley-worker",
                                        "--status-interval",
                                        "0.5",
                                        "--warm-up-seconds",
                                        "2",
                                        "--worker-metrics-port",
                                        "7201"};
  // It is the same program: with this image a pod on a GPU pool must find its GPU.
  if (!options_.gpus.empty()) arguments.insert(arguments.end(), {"--worker-gpu-image", "medley-worker"});
  MEDLEY_ASSIGN_OR_RETURN(operator_, ChildProcess::Start({.program = options_.programs / "medley-operator",
                                                          .arguments = std::move(arguments),
                                                          .log = options_.run_folder / "operator.log"}));
  // Only for its address: the operator retries until it can work.
  const base::SteadyTime deadline = clock_.Steady() + kPortTimeout;
  while (OperatorAddress().empty() && !EndedProgram() && clock_.Steady() < deadline) {
    clock_.SleepFor(base::milliseconds(20), std::stop_token());
  }
  return absl::OkStatus();
}

std::string LocalCluster::OperatorAddress() const {
  constexpr std::string_view kBefore = "medley-operator: http port ";
  const std::string log = base::ReadFile(options_.run_folder / "operator.log").value_or("");
  const size_t at = log.find(kBefore);
  const size_t end = at == std::string::npos ? at : log.find('\n', at);
  if (end == std::string::npos) return "";
  return "http://127.0.0.1:" + log.substr(at + kBefore.size(), end - at - kBefore.size()) + "/metrics";
}

std::vector<std::pair<std::string, std::string>> LocalCluster::Addresses() const {
  std::vector<std::pair<std::string, std::string>> addresses = {
      {"API server", server_->url()},
      {"scheduling service, REST", "http://" + scheduler_rest_ + "/#token=" + scheduler_token_},
      {"scheduling service, gRPC", scheduler_grpc_}};
  if (const std::string address = OperatorAddress(); !address.empty()) addresses.emplace_back("operator", address);
  return addresses;
}

void LocalCluster::Stop() {
  if (operator_) operator_->Stop(base::seconds(3));
  if (server_) server_->SetLogReader(nullptr);
  if (node_) node_->Stop();
  if (scheduler_) scheduler_->Stop(base::seconds(3));
  if (client_) client_->Shutdown();
  if (server_) server_->Stop();
}

absl::Status LocalCluster::SetPrices(const std::filesystem::path& file) {
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file));
  return base::WriteFileAtomic(options_.run_folder / "prices.yaml", text);
}

absl::Status LocalCluster::KillPod(const kube::Key& pod) { return node_->Signal(pod, SIGKILL); }

std::optional<std::string> LocalCluster::EndedProgram() {
  for (const auto& [child, name] : {std::pair(scheduler_.get(), "scheduler"), std::pair(operator_.get(), "operator")}) {
    if (child == nullptr) continue;
    if (const auto ended = child->Ended()) {
      return fmt::format("medley-{} ended ({}): {}", name, *ended,
                         LastLine(options_.run_folder / (std::string(name) + ".log")));
    }
  }
  return std::nullopt;
}

}  // namespace medley::cli
