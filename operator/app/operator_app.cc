#include "operator/app/operator_app.h"

#include "common/base/log.h"
#include "common/base/rng.h"
#include "common/base/status.h"
#include "common/metrics/metrics.h"
#include "kube/cache/informer_factory.h"
#include "kube/leader/fenced_client.h"
#include "operator/api/resources.h"
#include "operator/app/changes.h"
#include "operator/capacity/capacity_watch.h"
#include "operator/capacity/signed_pods.h"
#include "operator/capacity/trim.h"
#include "operator/controllers/job_reconciler.h"
#include "operator/controllers/job_units.h"
#include "operator/controllers/pool_reconciler.h"
#include "operator/controllers/profile_reconciler.h"
#include "operator/profiling/board.h"
#include "operator/recommend/recommender.h"
#include "operator/runtime/controller.h"
#include "operator/runtime/manager.h"
#include "operator/telemetry/controller_metrics.h"
#include "operator/telemetry/http_endpoints.h"
#include "operator/telemetry/metered_client.h"

namespace medley::ops {
namespace {

// May be short: names of pods are deterministic, so creating a pod twice fails with AlreadyExists.
constexpr base::seconds kExpectationTimeout{30};

constexpr int kProfileWorkers = 2;

// After an error: 5 ms, doubling. What made a pass fail (an admission webhook that is down, a name that is taken) may
// end without an event that wakes the job.
constexpr base::nanoseconds kLongestBackoff = base::seconds(30);

std::unique_ptr<kube::RateLimiter> Backoff(base::Clock& clock) {
  std::vector<std::unique_ptr<kube::RateLimiter>> limiters;
  limiters.push_back(std::make_unique<kube::ExponentialRateLimiter>(base::milliseconds(5), kLongestBackoff));
  limiters.push_back(std::make_unique<kube::BucketRateLimiter>(clock));
  return std::make_unique<kube::MaxOfRateLimiter>(std::move(limiters));
}

constexpr base::seconds kPriorityPatience{2};

// The kinds with at least as many objects as there are jobs; the informers keep these packed.
std::set<kube::Resource> KindsWithManyObjects() {
  return {TrainingJobs(),
          kube::resources::Pods(),
          kube::resources::ConfigMaps(),
          kube::resources::Services(),
          kube::resources::NetworkPolicies(),
          kube::resources::PodDisruptionBudgets()};
}

}  // namespace

class OperatorApp::Graph {
 public:
  Graph(OperatorOptions options, kube::Client& client, base::Clock& clock);
  ~Graph() { Stop(); }

  absl::Status Start(std::stop_token stop) {
    if (const auto& election = options_.election) {
      MEDLEY_RETURN_IF_ERROR(manager_.Elect(*election->client, election->elector));
    }
    return manager_.Start(std::move(stop));
  }
  absl::Status Wait(std::stop_token stop) { return manager_.Wait(std::move(stop)); }
  bool leading() const { return manager_.leading(); }
  void Stop() {
    capacity_.Stop();  // its handlers call the controllers, also where Start failed
    const absl::Status stopped = manager_.Stop();
    StopCaches();  // where Start failed, their handlers must not call what is destroyed
    calls_.Stop();
    if (!stopped.ok()) base::log::Warn("stop", {{"error", base::ToString(stopped)}});
  }
  int http_port() const { return endpoints_.port(); }

 private:
  void StopCaches() {
    priority_classes_.Stop();
    informers_.Stop();
  }
  absl::Status AddSources();
  absl::Status AddProfileSources();
  absl::Status ExpectFrom(kube::Informer& informer, const KeyMapper& owner);
  void AddParts();
  void EnqueueAll();
  std::string MetricsPage();
  void CountObservation(const absl::StatusOr<model::Prediction>& answer);
  JobDeps Deps();
  KeyMapper AllJobs();
  // For the jobs that share the profile.
  std::vector<kube::Key> JobsOf(const std::string& ns, const std::string& hash) const;
  void OnProfileProgress(const ProfileId& id);

  const OperatorOptions options_;
  base::Clock& clock_;
  Manager manager_;
  metrics::Registry registry_;
  MeteredClient metered_;      // reads, for the informers
  kube::FencedClient client_;  // writes, refused when this replica does not lead
  OperatorMetrics metrics_;
  ReconcileMetrics job_reconciles_;
  ReconcileMetrics pool_reconciles_;
  ReconcileMetrics profile_reconciles_;
  WorkQueueMetrics job_queue_;
  WorkQueueMetrics pool_queue_;
  WorkQueueMetrics profile_queue_;
  Controller* job_controller_raw_ = nullptr;  // for callbacks of what is created before the controller
  SignedPods signed_pods_;
  kube::InformerFactory informers_;
  kube::Informer& jobs_;
  kube::Informer& pools_;
  kube::Informer& pods_;
  kube::Informer& nodes_;
  kube::Informer& quotas_;
  kube::Informer& limit_ranges_;
  kube::Informer& config_maps_;
  kube::Informer& services_;
  kube::Informer& network_policies_;
  kube::Informer& budgets_;
  kube::Informer priority_classes_;  // not waited for: a role may not allow it
  WaitingLine line_;
  PoolOutages outages_;
  CapacityWatch capacity_;
  EventRecorder events_;
  Expectations expectations_;
  SchedulerClient scheduler_;
  ObservationSender observations_;
  profiling::Board profiles_;
  CoordinatorLinks links_;
  SlowCalls calls_;
  JobReconciler job_reconciler_;
  PoolReconciler pool_reconciler_;
  ProfileReconciler profile_reconciler_;
  recommend::Recommender recommender_;
  Controller job_controller_;
  Controller pool_controller_;
  Controller profile_controller_;
  HttpEndpoints endpoints_;
};

OperatorApp::Graph::Graph(OperatorOptions options, kube::Client& client, base::Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      manager_(clock),
      metered_(client, clock, registry_),
      client_(metered_, [this] { return manager_.Guard(); }),
      metrics_(registry_),
      job_reconciles_(registry_, "trainingjob", options_.workers),
      pool_reconciles_(registry_, "resourcepool", 1),
      profile_reconciles_(registry_, "profile", kProfileWorkers),
      job_queue_(registry_, "trainingjob"),
      pool_queue_(registry_, "resourcepool"),
      profile_queue_(registry_, "profile"),
      signed_pods_(options_.job.record_keys, clock),
      informers_(
          metered_, clock, options_.seed, base::nanoseconds(0),
          [this](const kube::Resource& resource, kube::Object& object) { Trim(signed_pods_, resource, object); },
          KindsWithManyObjects()),
      jobs_(informers_.For(TrainingJobs(), options_.ns)),
      pools_(informers_.For(ResourcePools())),
      pods_(informers_.For(kube::resources::Pods())),
      nodes_(informers_.For(kube::resources::Nodes())),
      quotas_(informers_.For(kube::resources::ResourceQuotas(), options_.ns)),
      limit_ranges_(informers_.For(LimitRanges(), options_.ns)),
      config_maps_(informers_.For(kube::resources::ConfigMaps(), options_.ns, kOwnObjectsSelector)),
      services_(informers_.For(kube::resources::Services(), options_.ns, kOwnObjectsSelector)),
      network_policies_(informers_.For(kube::resources::NetworkPolicies(), options_.ns, kOwnObjectsSelector)),
      budgets_(informers_.For(kube::resources::PodDisruptionBudgets(), options_.ns, kOwnObjectsSelector)),
      priority_classes_(metered_, clock, {.reflector = {.resource = PriorityClasses()}}),
      line_(clock,
            [this](const kube::Key& job, base::nanoseconds delay) { job_controller_raw_->EnqueueAfter(job, delay); }),
      capacity_({.debounce = options_.job.capacity_debounce,
                 .enqueue_job = [this](const kube::Key& job) { job_controller_.Enqueue(job); },
                 .enqueue_pool = [this](const kube::Key& pool) { pool_controller_.Enqueue(pool); },
                 .units_freed = [this] { line_.UnitsFreed(); }},
                jobs_.store(), pools_.store(), clock),
      events_(client_, clock, {.seed = options_.seed}),
      expectations_(clock, kExpectationTimeout),
      scheduler_({.address = options_.scheduler_address,
                  .seed = options_.seed,
                  .token = options_.scheduler_token,
                  .tls = options_.scheduler_tls},
                 clock),
      observations_(
          {},
          [this](const model::JobObservation& observation, const std::string& tenant, std::stop_token stop) {
            return scheduler_.Observe(observation, tenant, std::move(stop));
          },
          [this](const absl::StatusOr<model::Prediction>& answer) { CountObservation(answer); }),
      links_(options_.seed,
             [this](const kube::Key& job, bool news) {
               job_controller_raw_->EnqueueAfter(job, news ? base::nanoseconds(0) : options_.job.progress_interval);
             }),
      calls_({.planner_threads = options_.plan_calls},
             [this](const kube::Key& job) { job_controller_raw_->Enqueue(job); }),
      job_reconciler_(Deps()),
      pool_reconciler_(Deps()),
      profile_reconciler_(Deps(), {.worker = options_.job.worker, .max_pods = options_.max_profilers},
                          [this](const ProfileId& id) { OnProfileProgress(id); }),
      recommender_(metered_, client_, pools_, events_, clock,
                   {.ns = options_.ns, .seed = options_.seed, .keys = options_.job.record_keys}),
      job_controller_({.name = "trainingjob",
                       .workers = options_.workers,
                       .limiter = Backoff(clock),
                       .queue_metrics = &job_queue_,
                       .metrics = &job_reconciles_},
                      job_reconciler_, clock),
      pool_controller_({.name = "resourcepool",
                        .limiter = Backoff(clock),
                        .queue_metrics = &pool_queue_,
                        .metrics = &pool_reconciles_},
                       pool_reconciler_, clock),
      profile_controller_({.name = "profile",
                           .workers = kProfileWorkers,
                           .limiter = Backoff(clock),
                           .queue_metrics = &profile_queue_,
                           .metrics = &profile_reconciles_},
                          profile_reconciler_, clock),
      endpoints_({options_.http_address, options_.http_port, options_.metrics_readers},
                 {[this] { return MetricsPage(); }, [this] { return manager_.Healthy(); },
                  [this] { return manager_.Ready(); }}) {
  job_controller_raw_ = &job_controller_;
  AddParts();
}

JobDeps OperatorApp::Graph::Deps() {
  const JobStores stores{jobs_.store(),        pools_.store(),           pods_.store(),
                         config_maps_.store(), services_.store(),        network_policies_.store(),
                         budgets_.store(),     priority_classes_.store()};
  return {client_,
          clock_,
          stores,
          capacity_.view(),
          signed_pods_,
          line_,
          outages_,
          scheduler_,
          links_,
          calls_,
          observations_,
          profiles_,
          events_,
          expectations_,
          metrics_,
          options_.job,
          [this] { return manager_.term(); },
          [this](const std::string& pool) {
            pool_controller_.Enqueue({"", pool});
          },
          [this](int64_t term) { manager_.HeardOfTerm(term); },
          options_.ns};
}

KeyMapper OperatorApp::Graph::AllJobs() {
  return [this](const kube::Object&) { return jobs_.store().Keys(); };
}

std::vector<kube::Key> OperatorApp::Graph::JobsOf(const std::string& ns, const std::string& hash) const {
  std::vector<kube::Key> keys;
  for (const kube::ObjectPtr& job : jobs_.store().ByIndex(kProfileIndex, ProfileIndexValue(ns, hash))) {
    keys.push_back(job->key());
  }
  return keys;
}

void OperatorApp::Graph::OnProfileProgress(const ProfileId& id) {
  pool_controller_.Enqueue({"", id.pool});
  for (const kube::Key& job : JobsOf(id.ns, id.hash)) job_controller_.Enqueue(job);
}

void OperatorApp::Graph::EnqueueAll() {
  for (const kube::Key& key : pools_.store().Keys()) pool_controller_.Enqueue(key);
  for (const kube::ObjectPtr& job : jobs_.store().List()) {
    if (MayWantProfiles(*job)) {
      for (const kube::Key& profile : profile_reconciler_.KeysOf(*job)) {
        profile_controller_.Enqueue(profile, kube::WorkQueue::kLowPriority);
      }
    }
    // Jobs that replan on price changes are planned first; the others only update the prices in their status.
    job_controller_.Enqueue(job->key(), ReplansOnPriceChange(*job) ? 0 : kube::WorkQueue::kLowPriority);
  }
}

void OperatorApp::Graph::CountObservation(const absl::StatusOr<model::Prediction>& answer) {
  if (answer.ok()) {
    metrics_.CountObservation("accepted");
    return metrics_.SetPrediction(answer->ratio_uncorrected, answer->ratio_corrected, answer->relative_error);
  }
  const absl::Status& why = answer.status();
  const char* result = absl::IsResourceExhausted(why) ? "dropped" : IsSchedulerAway(why) ? "unavailable" : "refused";
  const auto write = metrics_.CountObservation(result) ? base::log::Warn : base::log::Debug;
  write("observation refused", {{"error", base::ToString(why)}});
}

std::string OperatorApp::Graph::MetricsPage() {
  const auto catalog = scheduler_.catalog();
  metrics_.SetScheduler(scheduler_.connected(), catalog == nullptr ? 0 : catalog->revision);
  for (const auto& [resource, informer] :
       {std::pair("trainingjobs", &jobs_), std::pair("resourcepools", &pools_), std::pair("pods", &pods_),
        std::pair("nodes", &nodes_), std::pair("resourcequotas", &quotas_), std::pair("configmaps", &config_maps_),
        std::pair("services", &services_), std::pair("networkpolicies", &network_policies_),
        std::pair("poddisruptionbudgets", &budgets_)}) {
    metrics_.SetCached(resource, informer->store().Size());
  }
  metrics_.SetLeader(manager_.leading());
  registry_.GetGauge("medley_leader_term", "Term with which this operator leads or led last")
      .Set(static_cast<double>(manager_.term()));
  return metrics_.Text();
}

absl::Status OperatorApp::Graph::AddSources() {
  MEDLEY_RETURN_IF_ERROR(pods_.AddIndex("owner", OwnerUid));
  MEDLEY_RETURN_IF_ERROR(pods_.AddIndex(kProfileIndex, ProfileOfPod));
  MEDLEY_RETURN_IF_ERROR(jobs_.AddIndex(kProfileIndex, ProfileOfJob));
  const KeyMapper owner = MapController(jobs_);
  MEDLEY_RETURN_IF_ERROR(ExpectFrom(pods_, owner));
  MEDLEY_RETURN_IF_ERROR(job_controller_.AddSource(jobs_, MapSelf(), JobChanged));
  MEDLEY_RETURN_IF_ERROR(job_controller_.AddSource(pods_, owner));
  // A stored profile serves every job with its model; the other ConfigMaps have one job as their owner.
  MEDLEY_RETURN_IF_ERROR(job_controller_.AddSource(config_maps_, [this, owner](const kube::Object& map) {
    const std::string hash = map.label(kProfileLabel);
    return hash.empty() ? owner(map) : JobsOf(map.key().ns, hash);
  }));
  for (kube::Informer* own : {&services_, &network_policies_, &budgets_}) {
    MEDLEY_RETURN_IF_ERROR(job_controller_.AddSource(*own, owner, OwnObjectChanged));
  }
  MEDLEY_RETURN_IF_ERROR(job_controller_.AddSource(pools_, AllJobs(), PoolChanged));
  MEDLEY_RETURN_IF_ERROR(pool_controller_.AddSource(pools_, MapSelf(), PoolChanged));
  MEDLEY_RETURN_IF_ERROR(AddProfileSources());
  MEDLEY_RETURN_IF_ERROR(pools_
                             .AddHandler({.on_add = [this](const kube::ObjectPtr&, bool) { line_.UnitsFreed(); },
                                          .on_update =
                                              [this](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
                                                if (PoolChanged(*before, *now)) line_.UnitsFreed();
                                              },
                                          .on_delete = nullptr})
                             .status());
  return capacity_.AddSources({nodes_, pods_, quotas_, limit_ranges_, jobs_, options_.ns});
}

absl::Status OperatorApp::Graph::AddProfileSources() {
  const auto of_job = [this](const kube::Object& job) { return profile_reconciler_.KeysOf(job); };
  const auto of_pool = [this](const kube::Object& pool) {
    std::vector<kube::Key> keys;
    for (const kube::ObjectPtr& job : jobs_.store().List()) {
      // The store may not hold the pool any more.
      if (const std::string hash = ProfileHashOf(*job); !hash.empty()) {
        keys.push_back(KeyOf({job->key().ns, hash, pool.key().name}));
      }
    }
    return keys;
  };
  MEDLEY_RETURN_IF_ERROR(profile_controller_.AddSource(jobs_, of_job, ProfilesChanged));
  MEDLEY_RETURN_IF_ERROR(profile_controller_.AddSource(pools_, of_pool, PoolChanged));
  MEDLEY_RETURN_IF_ERROR(profile_controller_.AddSource(config_maps_, ProfileKeyByLabels));
  return profile_controller_.AddSource(pods_, ProfileKeyByLabels);
}

absl::Status OperatorApp::Graph::ExpectFrom(kube::Informer& informer, const KeyMapper& owner) {
  const auto add = [this, owner](const kube::Object& pod) {
    if (!ProfileOfPod(pod).empty()) return;  // not created by a pass over the job
    for (const kube::Key& job : owner(pod)) expectations_.ObserveAdd(job, pod);
  };
  return informer
      .AddHandler(
          {.on_add = [add](const kube::ObjectPtr& pod, bool) { add(*pod); },
           .on_update =
               [add](const kube::ObjectPtr& before, const kube::ObjectPtr& now) {
                 if (before->uid() != now->uid()) add(*now);
               },
           .on_delete = [this](const kube::ObjectPtr& pod, bool) { signed_pods_.Erased(pod->key(), pod->uid()); }})
      .status();
}

void OperatorApp::Graph::AddParts() {
  using Phase = Manager::Phase;
  manager_.Add({Phase::kServers, "http endpoints", [this](std::stop_token) { return endpoints_.Start(); },
                [this] { endpoints_.Stop(); }});
  manager_.Add({Phase::kCaches, "caches",
                [this](std::stop_token stop) -> absl::Status {
                  MEDLEY_RETURN_IF_ERROR(AddSources());
                  informers_.Start();
                  priority_classes_.Start();
                  MEDLEY_RETURN_IF_ERROR(informers_.WaitForSync(std::chrono::minutes(2), stop));
                  return capacity_.WaitForSync(std::chrono::minutes(2), stop);
                },
                [this] { StopCaches(); }});
  manager_.Add({Phase::kOthers, "capacity", [this](std::stop_token stop) { return capacity_.Start(std::move(stop)); },
                [this] { capacity_.Stop(); }});
  // Stopped after the controllers, because they create links.
  manager_.Add({Phase::kOthers, "coordinator links", [](std::stop_token) { return absl::OkStatus(); },
                [this] { links_.Clear(); }});
  manager_.Add({Phase::kOthers, "scheduling service",
                [this](std::stop_token) {
                  scheduler_.Start([this] { EnqueueAll(); });
                  return absl::OkStatus();
                },
                [this] { scheduler_.Stop(); }});
  manager_.Add({Phase::kOthers, "observations",
                [this](std::stop_token) {
                  observations_.Start();
                  return absl::OkStatus();
                },
                [this] { observations_.Stop(); }});
  // The first of the controllers: no job is planned before.
  manager_.Add({Phase::kControllers, "units of stored plans",
                [this](std::stop_token stop) {
                  if (const auto synced = priority_classes_.WaitForSync(kPriorityPatience, stop); !synced.ok()) {
                    base::log::Warn("PriorityClasses are not known: jobs that wait for units count as equal",
                                    {{"error", base::ToString(synced)}});
                  }
                  MEDLEY_RETURN_IF_ERROR(RestoreUnits(Deps(), options_.ns, stop));
                  profile_reconciler_.ExpectAll();
                  return absl::OkStatus();
                },
                [] {}});
  for (Controller* controller : {&pool_controller_, &profile_controller_, &job_controller_}) {
    manager_.Add({Phase::kControllers, controller->name(),
                  [controller](std::stop_token stop) { return controller->Start(stop); },
                  [controller] { controller->Stop(); }});
  }
  if (options_.recommend) {
    manager_.Add({Phase::kControllers, "recommender", [this](std::stop_token) { return recommender_.Start(); },
                  [this] { recommender_.Stop(); }});
  }
  manager_.AddReadyCheck("caches", [this] {
    return informers_.HasSynced() ? absl::OkStatus() : base::Unavailable("the caches are not filled yet");
  });
}

OperatorApp::OperatorApp(OperatorOptions options, kube::Client& client, base::Clock& clock)
    : graph_(std::make_unique<Graph>(std::move(options), client, clock)) {}

OperatorApp::~OperatorApp() = default;

absl::Status OperatorApp::Start(std::stop_token stop) { return graph_->Start(std::move(stop)); }

absl::Status OperatorApp::Wait(std::stop_token stop) { return graph_->Wait(std::move(stop)); }

bool OperatorApp::leading() const { return graph_->leading(); }

void OperatorApp::Stop() { graph_->Stop(); }

int OperatorApp::http_port() const { return graph_->http_port(); }

}  // namespace medley::ops
