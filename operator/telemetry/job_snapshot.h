// The data for the metrics of one job. Value; each reconciliation of the job fills it. An absent field is unknown, or
// the job has no such goal. Money is in USD, times are Unix seconds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace medley::ops {

struct JobSnapshot {
  struct Condition {
    std::string type;
    std::string status;  // True, False, Unknown
    std::string reason;
  };
  // A stage's part on one pool, or the parameter servers (role "server", stage "").
  struct Units {
    std::string stage;
    std::string pool;
    std::string role;
    double units = 0;
  };
  struct Stage {
    std::string stage;
    std::string pool;  // several are joined by "+"
    std::optional<double> predicted_throughput;
    std::optional<double> throughput;  // that the stage would reach without communication
    std::optional<double> compute_seconds;
    std::optional<double> communication_seconds;
  };

  std::string uid;
  std::string phase;
  std::vector<Condition> conditions;
  // Goals.
  std::optional<double> goal_throughput;
  std::optional<double> deadline_timestamp;
  std::optional<double> budget_usd;
  std::optional<double> max_usd_per_hour;
  // The plan.
  std::string planner;
  std::string plan;  // one line; empty: none
  std::optional<double> plan_generation;
  std::optional<double> predicted_throughput;
  std::optional<double> price_timestamp;
  std::vector<Units> units;
  std::map<std::string, double> usd_per_hour;  // by pool
  // Measured.
  std::optional<double> throughput;
  std::optional<double> loss;
  std::optional<double> evaluation_training_loss;
  std::optional<double> evaluation_epochs;
  std::optional<double> samples;  // that the current state contains; a rollback lowers it
  std::optional<double> target_samples;
  std::optional<double> progress_ratio;
  std::optional<double> remaining_seconds;
  std::optional<double> generation;
  std::optional<double> step;
  std::optional<double> checkpoint_step;
  std::optional<double> bad_rows;
  std::optional<double> missing_members;
  std::optional<double> left_out_members;
  std::optional<double> agreement_fraction;     // only while replicas differ
  std::optional<double> synchronisation_ratio;  // likewise
  std::optional<double> staleness_steps;        // of the plan
  // Rows of embedding tables that may be on the disk; empty: all are in memory.
  std::map<std::string, double> embedding_rows, embedding_bytes;    // by place
  std::map<std::string, double> embedding_pulled, embedding_moved;  // by where they were found, and to where
  std::optional<double> embedding_wait_seconds;
  // For tables of trainers that compute on GPUs: by where a row was found, and to where bytes were copied.
  std::map<std::string, double> embedding_device_rows, embedding_device_bytes;
  std::vector<Stage> stages;
  std::map<std::string, double> scores;  // on the test data, by the metric, as logLoss
  // Since the start.
  std::optional<double> restarts;
  std::optional<double> cost_usd;
  std::optional<double> saved_usd;
  std::map<std::string, double> unit_seconds;  // by category (common/goodput)
  std::map<std::string, double> bill_usd;      // likewise
  std::optional<double> goodput_ratio;         // absent: nothing was paid yet
  std::optional<double> promised_usd;
  std::optional<double> start_timestamp;
  std::optional<double> completion_timestamp;
};

}  // namespace medley::ops
