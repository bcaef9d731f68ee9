#include "tests/integration/worker/chaos_jobs.h"

namespace medley::worker {
namespace {

constexpr auto kAsync = plan::v1::SCHEDULE_KIND_ASYNC_1F1B;
constexpr auto kGPipe = plan::v1::SCHEDULE_KIND_GPIPE;

}  // namespace

JobShape OneProcess() { return {.stages = {{0, 4, 1}}}; }

std::vector<JobShape> Synchronous() {
  return {
      {.stages = {{0, 1, 1}, {1, 4, 2}}, .servers = 2, .micro_batches = 2},
      {.stages = {{0, 4, 2}}, .servers = 1, .micro_batches = 2},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .servers = 2, .micro_batches = 4, .schedule = kGPipe},
  };
}

std::vector<JobShape> Asynchronous() {
  return {
      {.stages = {{0, 1, 1}, {1, 4, 2}}, .micro_batches = 2, .schedule = kAsync},
      {.stages = {{0, 1, 1}, {1, 2, 1}, {2, 4, 1}}, .micro_batches = 1, .schedule = kAsync},
      {.stages = {{0, 2, 2}, {2, 4, 1}}, .micro_batches = 1, .schedule = kAsync, .max_staleness = 1},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2},
  };
}

std::vector<JobShape> Differing() {
  constexpr auto kPercentage = plan::v1::SYNC_MODE_PERCENTAGE;
  return {
      {.stages = {{0, 4, 2}}, .micro_batches = 1, .mode = kPercentage, .fraction = 0.1},
      {.stages = {{0, 4, 3}}, .micro_batches = 1, .mode = plan::v1::SYNC_MODE_NONE},
      {.stages = {{.first = 0, .end = 4, .units = 4, .group = 2}}, .mode = kPercentage, .fraction = 0.3},
      {.stages = {{0, 4, 2}}, .mode = plan::v1::SYNC_MODE_FLEXIBLE, .target_ratio = 0.02},
      {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2},
  };
}

// fc1 fc2 fc_out loss on devices of their own, in other places and orders, and as stages.
std::vector<JobShape> Placed() {
  const std::vector<std::string> three(3, "cpu"), four(4, "cpu");
  JobShape ordered{.placements = {{{{0, 1}, {2, 3}}, {0, 1}}, {{{1, 2}}, {2}}, {{{3, 4}}, {1}}},
                   .devices = three,
                   .micro_batches = 2,
                   .schedule = kGPipe};
  for (const uint32_t entry : {0, 3, 6, 9, 10, 7, 8, 11, 4, 5, 1, 2}) ordered.order.push_back(entry);
  return {
      {.placements = {{{{0, 1}}, {0, 1, 2}, {0.5, 0.25, 0.25}}, {{{1, 2}}, {1}}, {{{2, 4}}, {2, 0}}},
       .devices = three,
       .micro_batches = 2},
      ordered,
      {.placements = {{{{0, 2}}, {0, 1}}, {{{2, 4}}, {2, 3}}}, .devices = four, .micro_batches = 2, .schedule = kAsync},
      {.stages = {{0, 2, 2}, {2, 4, 1}}, .micro_batches = 2}};
}

// Reductions that go on during the next step, in small buckets, and plans without.
std::vector<JobShape> Overlapping() {
  std::vector<JobShape> shapes = {{.stages = {{0, 4, 2}}, .micro_batches = 1, .bucket_bytes = 1},
                                  {.stages = {{0, 1, 2}, {1, 4, 3}}, .micro_batches = 2, .bucket_bytes = 1},
                                  {.stages = {{0, 2, 1}, {2, 4, 1}}, .micro_batches = 2, .schedule = kGPipe},
                                  {.placements = {{{{0, 1}, {2, 4}}, {0, 1}}, {{{1, 2}}, {1, 2}}},
                                   .devices = std::vector<std::string>(3, "cpu"),
                                   .micro_batches = 1,
                                   .bucket_bytes = 1}};
  for (JobShape& shape : shapes) shape.overlap_next_step = true;
  shapes.push_back(Asynchronous().front());
  shapes.push_back(Asynchronous().back());
  return shapes;
}

// Where survivors have applied different steps, all return to the checkpoint.
std::vector<JobShape> WithoutUndo() {
  std::vector<JobShape> shapes = Synchronous();
  for (JobShape& shape : shapes) shape.without_undo = true;
  shapes.push_back(Synchronous().front());
  return shapes;
}

JobOptions WithTables() { return {.hidden = {8}, .embedding_rows = 512}; }

JobOptions WithoutTables() {
  return {.model = "mlp",
          .tables = {},
          .hidden = {512, 512},
          .schema = R"({"label": {"column": 14, "positive": ">50K"}, "numeric": [0, 2, 4, 10, 11, 12]})"};
}

// embedding, first, norm, blocks.0, blocks.1, head, loss
JobOptions Exported() {
  JobOptions options;
  options.archive =
      (ExampleData("").parent_path().parent_path().parent_path() / "tests/data/exported/adult.pt2").string();
  options.model_json = R"(, "cut": {"depth": 2})";
  options.operations = 7;
  options.tables = {};
  options.embedding_rows = 512;
  options.optimizer = "sgd";
  options.learning_rate = 0.01;
  return options;
}

std::vector<JobShape> OfExported() {
  return {{.stages = {{0, 3, 2}, {3, 7, 2}}, .micro_batches = 2},
          {.stages = {{0, 3, 1}, {3, 7, 1}}, .micro_batches = 2, .schedule = kAsync},
          {.placements = {{{{0, 2}, {4, 5}}, {0}}, {{{2, 4}, {5, 7}}, {0, 1}}},
           .devices = {"cpu", "cpu"},
           .micro_batches = 2}};
}

}  // namespace medley::worker
