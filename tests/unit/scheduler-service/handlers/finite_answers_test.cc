// Extreme numbers in every numeric field of a request: each answer is an error, or all its numbers are finite.
#include <gmock/gmock.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "common/base/rng.h"
#include "common/base/testing/status_matchers.h"
#include "common/model/text.h"
#include "scheduler-service/handlers/finite.h"
#include "scheduler-service/handlers/handlers.h"
#include "scheduler-service/handlers/learned_state_store.h"
#include "scheduler-service/planner/builtin.h"

namespace medley::sched {
namespace {

namespace pb = scheduler::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr uint64_t kNumbersSeed = 20261122;
constexpr double kExtremes[] = {1e308,
                                1e300,
                                1e155,
                                1e30,
                                1e18,
                                1e9,
                                1e-9,
                                1e-155,
                                1e-308,
                                5e-324,
                                0,
                                -1,
                                -1e308,
                                2.5,
                                std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()};

constexpr char kSmallRequest[] = R"({
  "model": {"layers": [
    {"name": "emb", "weightBytes": 8e6, "inputBytes": 100, "outputBytes": 100, "sparse": true, "profiles": [
      {"resourceType": "cpu", "computeSeconds": 0.010, "computeParallel": 0.99, "syncSeconds": 0.004, "transferSeconds": 0.002, "commParallel": 0.9, "serverSeconds": 0.003, "spread": 0.1, "activationBytes": 1000}]},
    {"name": "fc", "weightBytes": 1e6, "profiles": [
      {"resourceType": "cpu", "computeSeconds": 0.1, "computeParallel": 1, "syncSeconds": 0.001, "commParallel": 1},
      {"resourceType": "gpu", "computeSeconds": 0.002, "computeParallel": 0.9, "syncSeconds": 0.002, "commParallel": 1}]}]},
  "training": {"profileBatchSize": 64, "samplesPerEpoch": 1e6, "epochs": 2, "stateFactor": 3, "remainingSamples": 5, "microBatches": 1},
  "constraints": {"minThroughput": 20, "maxCostPerHour": 1000, "deadlineSeconds": 1e6, "budgetUsd": 1e6, "minUnits": 1, "maxUnits": 50},
  "resources": [{"name": "cpu", "class": "CPU", "limit": 40, "pricePerUnitHour": 0.1, "memoryBytes": 1e10},
                {"name": "gpu", "class": "GPU", "limit": 8, "pricePerUnitHour": 2, "memoryBytes": 1e10}],
  "serverType": "cpu", "serverMemoryBytes": 1e10, "planner": {"name": "exact", "timeBudgetSeconds": 0.2}})";

// Calls `visit` for every numeric field that is set, with a function that sets it to a number.
void ForEachNumber(Message& message, const std::function<void(const std::string&, std::function<void(double)>)>& visit,
                   const std::string& path = "") {
  const auto& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string here = path + "/" + field->name();
    if (field->is_map()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field->is_repeated()) {
      for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
        ForEachNumber(*reflection.MutableRepeatedMessage(&message, field, i), visit, here + std::to_string(i));
      }
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      ForEachNumber(*reflection.MutableMessage(&message, field), visit, here);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE && !field->is_repeated()) {
      visit(here, [&message, &reflection, field](double value) { reflection.SetDouble(&message, field, value); });
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32 && !field->is_repeated()) {
      visit(here, [&message, &reflection, field](double value) {
        const bool fits = std::abs(value) < 2147483647.0;
        reflection.SetInt32(&message, field,
                            fits        ? static_cast<int32_t>(value)
                            : value < 0 ? std::numeric_limits<int32_t>::min()
                                        : std::numeric_limits<int32_t>::max());
      });
    }
  }
}

class FiniteAnswersTest : public testing::Test {
 protected:
  template <typename In, typename Out>
  void Check(absl::Status (Handlers::*method)(const In&, Call&, Out&), const In& in, const std::string& what) {
    Call call;
    Out out;
    const absl::Status status = (handlers_.*method)(in, call, out);
    EXPECT_EQ(NotFinite(out), "") << what;
    answered_ += status.ok() ? 1 : 0;
    if (!status.ok()) {
      EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsDeadlineExceeded(status)) << what << ": " << status;
    }
  }
  void CheckAll(const pb::PlanRequest& request, const std::string& what) {
    Check(&Handlers::Plan, request, what);
    pb::EvaluateRequest evaluate;
    *evaluate.mutable_request() = request;
    pb::ProvisionRequest provision;
    *provision.mutable_request() = request;
    for (const char* type : {"cpu", "gpu"}) {
      evaluate.add_schedule(type);
      evaluate.add_units(3);
      provision.add_schedule(type);
    }
    Check(&Handlers::Evaluate, evaluate, what);
    Check(&Handlers::Provision, provision, what);
  }

  base::SystemClock clock_;
  metrics::Registry metrics_;
  CatalogStore catalog_;
  const Registry planners_ = BuiltinPlanners();
  const HardwareCatalog hardware_ = *HardwareCatalog::Builtin();
  LearnedStateStore learned_{"", false, metrics_};
  Handlers handlers_{{planners_, catalog_, hardware_, learned_, metrics_, clock_}, {}};
  int answered_ = 0;
};

TEST_F(FiniteAnswersTest, WhateverTheNumbers) {
  pb::PlanRequest base_request;
  ASSERT_THAT(model::ParseText(kSmallRequest, base_request), base::IsOk());
  CheckAll(base_request, "unchanged");
  EXPECT_EQ(answered_, 3);
  int fields = 0;
  ForEachNumber(base_request, [&](const std::string&, const auto&) { ++fields; });
  ASSERT_GT(fields, 30);
  base::Rng rng(kNumbersSeed);
  for (int changed = 0; changed < fields; ++changed) {
    for (const double value : kExtremes) {
      pb::PlanRequest request = base_request;
      const auto other = static_cast<int>(rng.Below(static_cast<uint64_t>(2 * fields)));  // half of the time none
      const double other_value = kExtremes[rng.Below(std::size(kExtremes))];
      int index = 0;
      std::string what;
      ForEachNumber(request, [&](const std::string& path, const auto& set) {
        if (path == "/planner/time_budget_seconds") {
          ++index;
          return;
        }
        if (index == other) set(other_value);
        if (index == changed) set(value);
        if (index == other || index == changed) {
          what += fmt::format("{} = {} ", path, index == changed ? value : other_value);
        }
        ++index;
      });
      CheckAll(request, what);
    }
  }
  EXPECT_GT(answered_, 100) << "seed " << kNumbersSeed;
}

TEST_F(FiniteAnswersTest, APriceHasAnUpperBound) {
  pb::PlanRequest request;
  ASSERT_THAT(model::ParseText(kSmallRequest, request), base::IsOk());
  request.mutable_resources(1)->set_price_per_unit_hour(1e308);
  Call call;
  pb::PlanResponse response;
  EXPECT_THAT(
      handlers_.Plan(request, call, response),
      base::StatusIs(absl::StatusCode::kInvalidArgument,
                     testing::HasSubstr("resources[1].pricePerUnitHour: must be at most 1000000000 USD per hour")));
}

}  // namespace
}  // namespace medley::sched
