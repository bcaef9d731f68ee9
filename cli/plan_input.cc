#include "cli/plan_input.h"

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iterator>

#include "common/base/file.h"
#include "common/base/status.h"
#include "common/model/convert.h"
#include "medley/scheduler/v1/scheduler.pb.h"
#include "scheduler-service/catalog/price_file.h"
#include "scheduler-service/planner/plan.h"

namespace medley::cli {
namespace {

constexpr int64_t kMaxBytes = int64_t{16} << 20;

absl::StatusOr<model::PlanRequest> ReadRequest(const PlanFlags& flags) {
  const std::string path = flags.file == "-" ? "/dev/stdin" : flags.file;
  MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(path, kMaxBytes));
  scheduler::v1::PlanRequest message;
  const absl::Status parsed = model::ParseText(text, message);
  if (!parsed.ok()) return base::Annotate(parsed, flags.file);
  auto request = model::FromProto(message);
  if (!request.ok()) return base::Annotate(request.status(), flags.file);
  if (!flags.planner.empty()) request->planner.name = flags.planner;
  if (flags.seed) request->planner.seed = *flags.seed;
  return request;
}

}  // namespace

void AddPlanFlags(CLI::App& command, PlanFlags& flags) {
  command.add_option("file", flags.file, "planning request, YAML or JSON (docs/planning.md); - reads standard input")
      ->required();
  command.add_option("--planner", flags.planner, "planner to use in place of the file's");
  command.add_option("--seed", flags.seed, "seed to use in place of the file's");
  command.add_option("--prices", flags.prices, "price file for resources without a price");
}

absl::StatusOr<Planned> PlanFile(const PlanFlags& flags) {
  MEDLEY_ASSIGN_OR_RETURN(model::PlanRequest request, ReadRequest(flags));
  base::SystemClock clock;
  sched::CatalogStore store;
  if (!flags.prices.empty()) {
    MEDLEY_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(flags.prices, kMaxBytes));
    auto entries =
        sched::ParsePriceFile(text, std::filesystem::path(flags.prices).filename().string(), clock.Now());
    if (!entries.ok()) return base::Annotate(entries.status(), flags.prices);
    store.Publish(std::move(*entries), clock.Now());
  }
  const sched::CatalogSnapshot catalog = store.Get();
  sched::ResolvePrices(*catalog, request);
  auto result = sched::MakePlan(request, {catalog->revision, catalog->price_time}, sched::BuiltinPlanners(), clock, {});
  if (!result.ok()) return base::Annotate(result.status(), flags.file);
  return Planned{std::move(request), std::move(*result)};
}

}  // namespace medley::cli
