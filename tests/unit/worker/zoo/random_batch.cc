#include "tests/unit/worker/zoo/random_batch.h"

#include "common/base/rng.h"

namespace medley::worker::testing {

Batch RandomBatch(const Graph& graph, uint64_t seed, const RandomSamples& kind) {
  base::Rng rng(seed);
  Batch batch{.shape = graph.shape, .samples = kind.samples};
  const LossKind loss = graph.operations.back().loss;
  const bool numbers = loss == LossKind::kSquared || loss == LossKind::kAbsolute;
  const uint64_t classes = loss == LossKind::kSoftmax ? static_cast<uint64_t>(graph.Outputs()) : 2;
  for (int i = 0; i < kind.samples; ++i) {
    for (int f = 0; f < graph.shape.fields; ++f) {
      batch.ids.push_back(static_cast<int32_t>(rng.Below(static_cast<uint64_t>(kind.table_rows))));
    }
    for (int n = 0; n < graph.shape.numerics; ++n) batch.numerics.push_back(static_cast<float>(rng.Uniform(-1, 1)));
    for (int l = 0; l < graph.shape.labels; ++l) {
      batch.labels.push_back(numbers ? static_cast<float>(rng.Uniform(-2, 2)) : static_cast<float>(rng.Below(classes)));
    }
    if (kind.weighted) batch.weights.push_back(static_cast<float>(rng.Uniform(0.5, 1.5)));
  }
  return batch;
}

}  // namespace medley::worker::testing
