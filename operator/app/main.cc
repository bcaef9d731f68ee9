// medley-operator: watches TrainingJobs and ResourcePools and runs the jobs. See docs/use/api.md.
#include <malloc.h>
#include <signal.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "kube/client/config.h"
#include "kube/client/http_client.h"
#include "kube/leader/elector.h"
#include "operator/app/check.h"
#include "operator/app/operator_app.h"
#include "operator/app/record_secret.h"

namespace {

using medley::base::FromSeconds;

constexpr medley::base::seconds kGrace{30};

struct Flags {
  std::string kubeconfig;
  std::string context;
  std::string log_level = "info";
  double status_interval = 10;
  double recheck = 30;
  double settled_recheck = 300;
  double goal_window = 60;
  double schedule_window = 60;
  std::string metrics_token_file, worker_metrics_token_file;
  std::string scheduler_token_file, scheduler_ca, scheduler_cert, scheduler_key;
  bool check = false;
  double check_patience = 60;
  std::string check_operator, check_rest;
  std::optional<bool> leader_elect;
  std::string records_secret = "medley-operator-records";
  std::string lease_name = "medley-operator";
  std::string lease_namespace;
  double lease_duration = 15, renew_deadline = 10, retry_period = 2;
  medley::ops::OperatorOptions options;
};

void Define(CLI::App& app, Flags& flags) {
  medley::ops::OperatorOptions& o = flags.options;
  app.add_option("--kubeconfig", flags.kubeconfig,
                 "Kubeconfig file; absent: the service account of the pod, then $KUBECONFIG, then ~/.kube/config");
  app.add_option("--context", flags.context, "Context in the kubeconfig");
  app.add_option("--scheduler", o.scheduler_address, "Address of the scheduling service, HOST:PORT")
      ->envname("MEDLEY_SCHEDULER")
      ->capture_default_str();
  app.add_option("--scheduler-token-file", flags.scheduler_token_file,
                 "File whose first line is the bearer token for the scheduling service");
  app.add_option("--scheduler-ca", flags.scheduler_ca,
                 "CA (PEM) of the scheduling service's certificate; turns TLS on");
  auto* cert =
      app.add_option("--scheduler-cert", flags.scheduler_cert, "Client certificate (PEM) for the scheduling service");
  cert->needs(app.add_option("--scheduler-key", flags.scheduler_key, "Key (PEM) of --scheduler-cert"));
  app.add_option("--worker-image", o.job.worker.image, "Image of medley-worker")
      ->envname("MEDLEY_WORKER_IMAGE")
      ->capture_default_str();
  app.add_option(
         "--worker-gpu-image", o.job.worker.gpu_image,
         "Image of medley-worker for GPUs (worker-cuda), for trainers and profilers in pools of class GPU; empty: "
         "the same as elsewhere")
      ->envname("MEDLEY_WORKER_GPU_IMAGE");
  app.add_option("--worker-image-pull-policy", o.job.worker.image_pull_policy,
                 "Pull policy of the worker image; empty: Kubernetes decides by the tag")
      ->check(CLI::IsMember({"", "Always", "IfNotPresent", "Never"}));
  app.add_option("--worker-image-pull-secret", o.job.worker.image_pull_secrets,
                 "Pull secret of the worker image, in the jobs' namespaces; may be repeated");
  app.add_option("--operator-namespace", o.job.worker.operator_namespace,
                 "Namespace of the operator, which the jobs' NetworkPolicies admit; empty: that of the "
                 "service account in a cluster, else any");
  app.add_flag("--job-tls,!--no-job-tls", o.job.worker.tls,
               "Whether new jobs get a CA of their own, with which their processes encrypt and authenticate every call")
      ->capture_default_str();
  app.add_option("--records-secret", flags.records_secret,
                 "Secret in the operator's namespace whose key signs what the operator stores in namespaces of users; "
                 "created if it does not exist")
      ->capture_default_str();
  app.add_option("--metrics-namespace", o.job.worker.metrics_namespace,
                 "Namespace whose pods may read the metrics of jobs; empty: any");
  app.add_option("--namespace", o.ns, "Run only the jobs of this namespace; empty: all");
  app.add_option("--http-address", o.http_address, "Address of /metrics, /healthz, /readyz")->capture_default_str();
  app.add_option("--http-port", o.http_port, "Port of /metrics, /healthz, /readyz; 0: a free port, printed on stdout")
      ->capture_default_str();
  app.add_option("--metrics-token-file", flags.metrics_token_file,
                 "File with the tokens, one a line, of which readers of this process's /metrics send one; empty: all "
                 "who reach the port may read it");
  app.add_option("--worker-metrics-token-file", flags.worker_metrics_token_file,
                 "The same for the metrics of jobs: another token, since a scraper sends it to pods of users");
  app.add_option("--workers", o.workers, "Jobs reconciled at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  app.add_option("--worker-port", o.job.worker.listen_port, "Port on which worker pods listen")->capture_default_str();
  app.add_option("--worker-metrics-port", o.job.worker.metrics_port, "Port of the worker pods' metrics; 0: off")
      ->capture_default_str();
  app.add_option("--status-interval", flags.status_interval, "Least seconds between two writes of a job's status")
      ->capture_default_str();
  app.add_option("--recheck", flags.recheck, "Seconds after which a job is reconciled without an event")
      ->capture_default_str();
  app.add_option("--settled-recheck", flags.settled_recheck,
                 "The same for a job that runs and has all the units of its plan")
      ->capture_default_str();
  app.add_option("--goal-window", flags.goal_window, "Seconds of throughput below the goal before a replan")
      ->capture_default_str();
  app.add_option("--schedule-window", flags.schedule_window, "Seconds that a pod may be unschedulable before a replan")
      ->capture_default_str();
  app.add_option("--warm-up-seconds", o.job.default_warm_up_seconds,
                 "Assumed seconds from the creation of a pod to its first step")
      ->capture_default_str();
  app.add_option("--plan-calls", o.plan_calls, "Plans that are asked for at the same time, of all jobs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--max-profilers", o.max_profilers,
                 "Most profiler pods at the same time, of all jobs; 0: no bound. For pools that share machines")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--recommend", o.recommend,
               "Choose pools and nodes for suspended Jobs, JobSets and TrainJobs with the label medley.dev/recommend");
  app.add_option("--log-level", flags.log_level, "debug, info, warn, error, off")->capture_default_str();
}

void DefineCheck(CLI::App& app, Flags& flags) {
  app.add_flag("--check", flags.check,
               "Check the installation once (API server, scheduling service, operator), print the result and exit");
  app.add_option("--check-patience", flags.check_patience, "Seconds to retry what is not available yet")
      ->capture_default_str();
  app.add_option("--check-operator", flags.check_operator,
                 "http://HOST:PORT of the running operator, for --check to read /healthz and /readyz");
  app.add_option("--check-rest", flags.check_rest,
                 "https://HOST:PORT of the scheduling service's REST API, for --check to request a plan");
}

void DefineElection(CLI::App& app, Flags& flags) {
  app.add_flag_function(
      "--leader-elect,!--no-leader-elect", [&flags](int64_t count) { flags.leader_elect = count > 0; },
      "Work only while holding the Lease, so that several replicas can run; the default in a cluster");
  app.add_option("--lease-name", flags.lease_name, "Name of the Lease")->capture_default_str();
  app.add_option("--lease-namespace", flags.lease_namespace,
                 "Namespace of the Lease; absent: that of the service account or of the kubeconfig");
  app.add_option("--lease-duration", flags.lease_duration,
                 "Whole seconds without renewal after which another replica may lead")
      ->capture_default_str();
  app.add_option("--renew-deadline", flags.renew_deadline, "Seconds without renewal after which a leader exits")
      ->capture_default_str();
  app.add_option("--retry-period", flags.retry_period, "Seconds between two attempts to acquire or renew the Lease")
      ->capture_default_str();
}

absl::StatusOr<medley::kube::ClientConfig> Configure(Flags& flags) {
  const auto environment = medley::kube::ProcessEnvironment();
  if (flags.kubeconfig.empty()) {
    auto in_cluster = medley::kube::InClusterConfig(environment);
    std::string& ns = flags.options.job.worker.operator_namespace;
    if (in_cluster.ok() && ns.empty()) ns = in_cluster->ns;
    if (in_cluster.ok()) return in_cluster;
  }
  std::filesystem::path path = flags.kubeconfig;
  if (path.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(path, medley::kube::KubeconfigPath(environment));
  }
  return medley::kube::LoadKubeconfig(path, flags.context);
}

absl::StatusOr<medley::http_server::Readers> ReadReaders(const std::string& file) {
  if (file.empty()) return medley::http_server::Readers();
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, medley::base::ReadFile(file));
  auto readers = medley::http_server::Readers::OfTokens(text);
  if (!readers.ok()) return medley::base::Annotate(readers.status(), file);
  return readers;
}

absl::Status ReadSecrets(const Flags& flags, medley::ops::OperatorOptions& options) {
  if (!flags.scheduler_token_file.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, medley::base::ReadFile(flags.scheduler_token_file));
    options.scheduler_token = text.substr(0, text.find_first_of("\r\n"));
  }
  MEDLEY_ASSIGN_OR_RETURN(options.metrics_readers, ReadReaders(flags.metrics_token_file));
  MEDLEY_ASSIGN_OR_RETURN(const medley::http_server::Readers of_jobs, ReadReaders(flags.worker_metrics_token_file));
  options.job.worker.metrics_token_digests = of_jobs.digests();
  if (flags.scheduler_ca.empty()) return absl::OkStatus();
  medley::rpc::ClientTls tls;
  MEDLEY_ASSIGN_OR_RETURN(tls.root_certificates, medley::base::ReadFile(flags.scheduler_ca));
  if (!flags.scheduler_cert.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(tls.certificate, medley::base::ReadFile(flags.scheduler_cert));
    MEDLEY_ASSIGN_OR_RETURN(tls.key, medley::base::ReadFile(flags.scheduler_key));
  }
  options.scheduler_tls = std::move(tls);
  return absl::OkStatus();
}

bool InCluster(const Flags& flags) {
  const auto environment = medley::kube::ProcessEnvironment();
  return flags.kubeconfig.empty() && medley::kube::InClusterConfig(environment).ok();
}

medley::kube::Key LeaseOf(const Flags& flags, const medley::kube::ClientConfig& config) {
  return {flags.lease_namespace.empty() ? config.ns : flags.lease_namespace, flags.lease_name};
}

// In the namespace of the operator; outside of a cluster in that of the kubeconfig.
medley::kube::Key RecordsSecretOf(const Flags& flags, const medley::kube::ClientConfig& config) {
  const std::string& own = flags.options.job.worker.operator_namespace;
  return {own.empty() ? config.ns : own, flags.records_secret};
}

// For the election's own client: one attempt a call and a short timeout, so that a slow response cannot use up the
// renewal deadline.
medley::kube::ClientConfig ElectionConfig(const Flags& flags, medley::kube::ClientConfig config) {
  const auto timeout = medley::kube::RequestTimeout(FromSeconds(flags.renew_deadline));
  config.request_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  config.connect_timeout = std::min(config.connect_timeout, config.request_timeout);
  config.max_retries = 0;
  config.user_agent += " (leader election)";
  return config;
}

medley::kube::LeaderElector::Options ElectorOptions(const Flags& flags, const medley::kube::ClientConfig& config,
                                                    uint64_t seed) {
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  medley::kube::LeaderElector::Options options;
  options.lease = LeaseOf(flags, config);
  options.identity = medley::kube::LeaderIdentity(host, medley::base::SystemSeed(), medley::base::SystemSeed());
  options.lease_duration = FromSeconds(flags.lease_duration);
  options.renew_deadline = FromSeconds(flags.renew_deadline);
  options.retry_period = FromSeconds(flags.retry_period);
  options.release_on_cancel = true;
  options.seed = seed;
  return options;
}

absl::Status RunCheck(const Flags& flags, const medley::kube::ClientConfig& config, medley::kube::Client& client,
                      medley::base::Clock& clock, std::stop_token stop) {
  medley::ops::CheckOptions check;
  if (flags.leader_elect.value_or(InCluster(flags))) check.lease = LeaseOf(flags, config);
  check.operator_url = flags.check_operator;
  check.rest_url = flags.check_rest;
  check.patience = FromSeconds(flags.check_patience);
  return medley::ops::Check(flags.options, check, client, clock, std::cout, std::move(stop));
}

absl::Status Run(Flags& flags, std::stop_token stop) {
  medley::base::SystemClock clock;
  MEDLEY_ASSIGN_OR_RETURN(medley::kube::ClientConfig config, Configure(flags));
  config.user_agent = "medley-operator/0.1";
  MEDLEY_RETURN_IF_ERROR(ReadSecrets(flags, flags.options));
  const uint64_t seed = medley::base::SystemSeed();
  medley::kube::HttpClient client(config, clock, seed);
  std::stop_callback give_up(stop, [&client] { client.Shutdown(); });
  flags.options.seed = seed;
  if (flags.check) return RunCheck(flags, config, client, clock, stop);
  std::unique_ptr<medley::kube::HttpClient> election_client;
  if (flags.leader_elect.value_or(InCluster(flags))) {
    election_client = std::make_unique<medley::kube::HttpClient>(ElectionConfig(flags, config), clock, seed + 1);
    flags.options.election =
        medley::ops::OperatorOptions::Election{election_client.get(), ElectorOptions(flags, config, seed)};
  }
  flags.options.job.status_interval = FromSeconds(flags.status_interval);
  flags.options.job.recheck = FromSeconds(flags.recheck);
  flags.options.job.settled_recheck = FromSeconds(flags.settled_recheck);
  flags.options.job.progress_interval =
      std::min(flags.options.job.progress_interval, flags.options.job.status_interval);
  flags.options.job.goal_window = FromSeconds(flags.goal_window);
  flags.options.job.schedule_window = FromSeconds(flags.schedule_window);
  MEDLEY_ASSIGN_OR_RETURN(flags.options.job.record_keys,
                          medley::ops::EnsureRecordKeys(client, RecordsSecretOf(flags, config), clock, stop));
  medley::ops::OperatorApp app(flags.options, client, clock);
  MEDLEY_RETURN_IF_ERROR(app.Start(stop));
  std::cout << "medley-operator: http port " << app.http_port() << std::endl;
  if (const absl::Status ended = app.Wait(stop); !ended.ok()) {
    // Another replica may lead: exit without Stop, so that this process writes nothing more to the cluster.
    std::cerr << "medley-operator: " << medley::base::ToString(ended) << std::endl;
    std::_Exit(EXIT_FAILURE);
  }
  // Exits when the parts take longer than kGrace to stop.
  std::jthread grace([&clock](std::stop_token done) {
    if (!clock.SleepFor(kGrace, done)) return;
    std::cerr << "medley-operator: exiting, because some parts did not stop within " << medley::base::ToSeconds(kGrace)
              << " s" << std::endl;
    std::_Exit(EXIT_FAILURE);
  });
  app.Stop();
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs TrainingJobs on Kubernetes");
  Flags flags;
  Define(app, flags);
  DefineElection(app, flags);
  DefineCheck(app, flags);
  CLI11_PARSE(app, argc, argv);
  // By default glibc gives every thread its own arena and cannot reuse memory that another thread has freed.
  mallopt(M_ARENA_MAX, 2);
  medley::base::log::Configure("operator", medley::base::log::ParseLevel(flags.log_level));
  // All threads block the signals and one thread waits for them, so no signal handler is needed.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  std::stop_source stop;
  std::jthread waiter([&](std::stop_token done) {
    const timespec slice{0, 200'000'000};
    while (!done.stop_requested()) {
      if (sigtimedwait(&signals, nullptr, &slice) > 0) {
        stop.request_stop();
        return;
      }
    }
  });
  const absl::Status status = Run(flags, stop.get_token());
  if (status.ok()) return 0;
  std::cerr << "medley-operator: " << medley::base::ToString(status) << std::endl;
  return 1;
}
