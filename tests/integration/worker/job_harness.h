// Runs a training job of real medley-worker processes on loopback addresses, as the operator would.
//
// The harness starts processes, restarts those that die (unless Kill says otherwise), applies plans and reads
// observations. Not thread-safe. The destructor kills every process that it started and removes its folder.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/certificates/job_certificates.h"
#include "localcluster/node/emulated_network.h"
#include "medley/job/v1/coordinator.pb.h"
#include "tests/integration/worker/job_history.h"

namespace medley::rpc {
class MutualTls;
}

namespace medley::worker {

// A stage of operations [first, end) on `units` trainers.
struct StageShape {
  int first = 0;
  int end = 0;
  int units = 1;
  plan::v1::AllreduceAlgorithm algorithm = plan::v1::ALLREDUCE_ALGORITHM_RING;
  int group = 0;  // trainers of each group, which add linearly before the groups do; 0: without groups
  int root = 0;   // index of the trainer that adds where an algorithm is centralized
  std::string pool = "cpu";
  plan::v1::Tables tables = {};  // as in the plan
};

// Operations with the same replicas, whose numbers are those of JobShape::devices.
struct PlacementShape {
  std::vector<std::pair<int, int>> operations;  // ranges [first, end)
  std::vector<int> devices;
  std::vector<double> shares = {};  // of the batch; empty: equal
};

struct JobShape {
  std::vector<StageShape> stages;
  // Instead of stages; device i is the trainer "t0-i".
  std::vector<PlacementShape> placements = {};
  std::vector<std::string> devices = {};  // their pools
  std::vector<uint32_t> order = {};       // as in the plan
  plan::v1::ExecutionPlan planned = {};   // instead of all other fields: a plan with placements, as a planner made it
  int servers = 0;
  bool rows_in_trainers = false;  // instead of servers: in those of stages with tables
  int micro_batches = 4;
  plan::v1::ScheduleKind schedule = plan::v1::SCHEDULE_KIND_SYNC_1F1B;
  int max_staleness = 0;
  int64_t bucket_bytes = 0;  // as in the plan
  plan::v1::SyncMode mode = plan::v1::SYNC_MODE_FULL;
  double fraction = 0;      // SYNC_MODE_PERCENTAGE
  double target_ratio = 0;  // SYNC_MODE_FLEXIBLE
  plan::v1::AnomalyPolicy anomaly = {};
  bool without_undo = false;
  bool overlap_next_step = false;
};

struct JobOptions {
  std::string spec_json;  // the whole spec, instead of what the fields from `train` to `training_json` and `schema` say
  std::string train;      // path, or address in an object store, of a CSV with the columns of `schema`
  std::string test;       // empty: no test data
  std::string model = "ctrdnn";
  std::string layers_json;     // spec.model.layers, instead of a named model
  std::string archive;         // path of an exported model, instead of a named model
  int operations = 0;          // of the model; 0: those of a chain with `hidden`
  std::set<int> tables = {0};  // operations of the model that have embedding rows
  std::vector<int> hidden = {32, 16};
  int embedding_dim = 4;
  int embedding_rows = 4096;
  int epochs = 1;
  int batch_size = 128;
  std::string optimizer = "adagrad";
  double learning_rate = 0.05;
  std::string checkpoint_interval = "3600s";
  std::string checkpoint_uri;            // of the job's folder in an object store; empty: a folder of the harness
  int plans_before = 0;                  // that another harness has applied to the same job
  int keep = 3;                          // spec.checkpoint.keep
  int64_t memory_limit = 0;              // bytes, of each process, as it knows them; 0: those of the machine
  std::string samples_folder;            // MEDLEY_SAMPLES_DIR; empty: each process has its own
  std::vector<std::string> environment;  // "NAME=value": more variables of each process
  int max_bad_rows = 0;
  std::string schedule_json;                 // spec.training.optimizer.schedule; empty: absent
  std::string model_json;                    // further fields of spec.model, each with a comma before it
  std::string data_json;                     // further fields of spec.data, each with a comma before it
  std::string spec_fields_json;              // likewise of spec
  std::string training_json;                 // further fields of spec.training, each with a comma before it
  bool tls = true;                           // mutual, with a CA of the harness
  std::string certificate_lifetime = "24h";  // of each process
  bool share_memory = true;                  // between trainers; false: as if each ran on a machine of its own
  std::function<void(const std::string& pool, pid_t)> place;  // called for each process when it has started; optional
  // Each process is a node of it, with its own name. Optional; it outlives the harness, which its thread kHost uses.
  localcluster::EmulatedNetwork* network = nullptr;
  bool ipv6 = false;  // all processes on ::1, each on its own port; else each on its own address of 127.0.0.0/8
  // data.schema of the job as JSON; by default Adult's columns.
  std::string schema =
      R"({"label": {"column": 14, "positive": ">50K"}, "categorical": [1, 3, 5, 6, 7, 8, 9, 13],
                           "numeric": [0, 2, 4, 10, 11, 12]})";
};

// Whether the job is complete or has failed.
bool IsOver(const job::v1::Observation& seen);

class JobHarness {
 public:
  explicit JobHarness(const JobOptions& options);
  ~JobHarness();

  int operations() const { return operations_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }
  std::string Endpoint(const std::string& name);                         // "host:port" of a process that listens
  const certificates::KeyPair& authority() const { return authority_; }  // of the job
  std::shared_ptr<const rpc::MutualTls> tls() const { return tls_; }     // of the harness
  static constexpr char kUid[] = "uid";
  static constexpr char kToken[] = "harness-token";

  // Without a term, the coordinator cannot be replaced by another one. A second one with a larger term has a name and
  // an address of its own ("coordinator-2"); Follow says when the harness talks to it. One with a term is started again
  // when it ends with exit code 1, as by a kubelet.
  void StartCoordinator(int term = 0);
  void Follow(int term);
  static std::string CoordinatorName(int term);
  // Starts the members of a later shape, so that they run when it is applied: waits until each has connected. The
  // coordinator must run.
  void StartMembers(const JobShape& shape);
  // Starts the members that the shape needs and that do not run, then applies it as the next generation.
  void Apply(const JobShape& shape, const std::string& reason);
  // The same for a job that may have ended. Returns false when it has.
  bool TryApply(const JobShape& shape, const std::string& reason);
  // Whether the coordinator has ended for good: the job is complete, or has failed and must not be tried again.
  bool Ended();
  // The plan that was applied last.
  const plan::v1::ExecutionPlan& plan() const { return plan_; }
  // Runs a profiler of the job in `pool`; returns its log. Errors: FailedPrecondition, also after `limit`.
  absl::StatusOr<std::string> RunProfiler(const std::string& pool, base::seconds limit = base::seconds(120));
  // Sends SIGKILL. With `restart` the next Poll starts the process again.
  void Kill(const std::string& name, bool restart = true);
  // SIGSTOP and SIGCONT: the process does not run in between. A process that has ended is left alone.
  void Pause(const std::string& name);
  void Resume(const std::string& name);
  // Sends SIGTERM and waits; returns the exit code, or -1 when a signal ended the process. It is not started again.
  int Terminate(const std::string& name, base::seconds timeout = base::seconds(30));
  void Signal(const std::string& name, int signal);
  // Waits until the process has ended; returns the exit code, or -1 when a signal ended it or it still runs.
  int WaitForExit(const std::string& name, base::seconds timeout = base::seconds(30));
  std::vector<std::string> Running() const;  // names of running members
  // Starts dead members of the last plan again, as the operator does. Returns false when a process failed for good
  // (exit code 2).
  bool Poll();
  // The newest observation; empty before the first one.
  job::v1::Observation Observe();
  // Polls until `done`, or until the job has trained no new sample for `timeout`, which is longer in builds with
  // sanitizers: on a busy machine a job takes longer, but it moves. Returns the last observation.
  job::v1::Observation WaitFor(const std::function<bool(const job::v1::Observation&)>& done, base::seconds timeout);
  // Likewise until the phase is COMPLETE or FAILED.
  job::v1::Observation WaitForEnd(base::seconds timeout = base::seconds(60));

  // What steps.jsonl says of the committed steps, without those that were rolled back.
  const JobHistory& History() const { return history_.Read(); }
  std::vector<double> Losses() const { return History().losses; }
  size_t Steps() const { return History().losses.size(); }
  // The output of a process.
  std::string Log(const std::string& name) const;
  std::string AllLogs() const;  // the last lines of each, for failure messages

 private:
  struct Process;
  void Start(const std::string& name, const std::string& role, int term = 0);
  std::string Send(const JobShape& shape, const std::string& reason);  // Apply; the error, or empty
  std::string AddressOf(const std::string& name);
  int PortOf(const std::string& name);
  std::string PoolOf(const std::string& process) const;
  void Reap(Process& process);
  void WriteCredentials();
  bool HasConnected(const std::string& member) const;  // to the coordinator that the harness talks to

  const JobOptions options_;
  const int operations_;
  std::filesystem::path folder_;
  mutable JobHistoryFile history_{checkpoints() / "steps.jsonl"};
  std::map<std::string, std::unique_ptr<Process>> processes_;
  std::map<std::string, std::string> wanted_;  // member of the last plan -> role
  std::map<std::string, std::string> pools_;   // of processes; "cpu" for others
  plan::v1::ExecutionPlan plan_;
  std::map<std::string, std::string> addresses_;
  std::map<std::string, int> ipv6_ports_;  // of coordinators
  certificates::KeyPair authority_;
  std::shared_ptr<const rpc::MutualTls> tls_;
  int64_t generation_ = 0;
  std::string leader_ = "coordinator";  // the coordinator that the harness talks to
  struct Calls;                         // to the leader; here without gRPC's headers, which each test would compile
  std::unique_ptr<Calls> calls_;
};

// A port of ::1 that is free now; 0: this machine has no ::1.
int FreeIpv6Port();
// Copies the first `rows` lines of a CSV file.
void CopyLines(const std::filesystem::path& from, const std::filesystem::path& to, int rows);
// Returns the path of a file in examples/data.
std::filesystem::path ExampleData(const std::string& name);

}  // namespace medley::worker
