#include "worker/model/vector_products.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace medley::worker {
namespace {

constexpr float kLeastNorm = 1e-8F;  // of two vectors, multiplied: as in torch.nn.CosineSimilarity

float DotOf(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 8;  // so that the compiler may use vectors
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

void AddScaled(float factor, const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
}

// The vectors of all inputs in one sample, in order.
class SampleVectors {
 public:
  SampleVectors(const Operation& operation, std::span<const LayerInput> inputs) : inputs_(inputs), dim_(operation.dim) {
    int64_t count = 0;
    for (const LayerInput& input : inputs) count += input.width / dim_;
    vectors_.resize(static_cast<size_t>(count));
    gradients_.resize(static_cast<size_t>(count));
  }

  std::span<const float* const> Of(int64_t row) {
    size_t next = 0;
    for (const LayerInput& input : inputs_) {
      const float* from = input.data + row * input.stride;
      for (int64_t at = 0; at < input.width; at += dim_) vectors_[next++] = from + at;
    }
    return vectors_;
  }

  // The gradients of the same vectors: dx has no gaps.
  std::span<float* const> GradientsOf(int64_t row, std::span<float* const> dx) {
    size_t next = 0;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      float* const from = dx[k] + row * inputs_[k].width;
      for (int64_t at = 0; at < inputs_[k].width; at += dim_) gradients_[next++] = from + at;
    }
    return gradients_;
  }

 private:
  const std::span<const LayerInput> inputs_;
  const int64_t dim_;
  std::vector<const float*> vectors_;
  std::vector<float*> gradients_;
};

void Fill(std::span<const LayerInput> inputs, int64_t rows, std::span<float* const> dx) {
  for (size_t k = 0; k < inputs.size(); ++k) std::fill_n(dx[k], rows * inputs[k].width, 0.0F);
}

void SumVectors(std::span<const float* const> vectors, std::vector<float>& sums) {
  std::ranges::fill(sums, 0.0F);
  for (const float* const vector : vectors) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += vector[i];
  }
}

struct Cosines {
  float dot = 0, aa = 0, bb = 0;
  float norm() const { return std::max(std::sqrt(aa * bb), kLeastNorm); }
};

Cosines CosinesOf(const float* a, const float* b, int64_t dim) {
  return {DotOf(a, b, dim), DotOf(a, a, dim), DotOf(b, b, dim)};
}

}  // namespace

int64_t VectorLength(const Operation& operation, const LayerInput& input) {
  return operation.dim > 0 ? operation.dim : input.width;
}

// --- Pool

void PoolForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y) {
  const int64_t dim = operation.dim;
  SampleVectors all(operation, inputs);
  for (int64_t row = 0; row < rows; ++row, y += dim) {
    const std::span<const float* const> vectors = all.Of(row);
    std::copy_n(vectors[0], dim, y);
    for (const float* const vector : vectors.subspan(1)) {
      if (operation.combine == Combine::kMax) {
        for (int64_t i = 0; i < dim; ++i) y[i] = vector[i] > y[i] ? vector[i] : y[i];
      } else {
        for (int64_t i = 0; i < dim; ++i) y[i] += vector[i];
      }
    }
    if (operation.combine != Combine::kMean) continue;
    const float part = 1 / static_cast<float>(vectors.size());
    for (int64_t i = 0; i < dim; ++i) y[i] *= part;
  }
}

// The first of equal maxima has the gradient.
void PoolBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                  std::span<float* const> dx) {
  const int64_t dim = operation.dim;
  SampleVectors all(operation, inputs);
  if (operation.combine == Combine::kMax) Fill(inputs, rows, dx);
  for (int64_t row = 0; row < rows; ++row, dy += dim) {
    const std::span<const float* const> vectors = all.Of(row);
    const std::span<float* const> gradients = all.GradientsOf(row, dx);
    if (operation.combine == Combine::kMax) {
      for (int64_t i = 0; i < dim; ++i) {
        size_t best = 0;
        for (size_t v = 1; v < vectors.size(); ++v) best = vectors[v][i] > vectors[best][i] ? v : best;
        gradients[best][i] = dy[i];
      }
      continue;
    }
    const float part = operation.combine == Combine::kMean ? 1 / static_cast<float>(vectors.size()) : 1;
    for (float* const gradient : gradients) {
      for (int64_t i = 0; i < dim; ++i) gradient[i] = dy[i] * part;
    }
  }
}

// --- Interaction: the products of vectors i > j.

void InteractionForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y) {
  SampleVectors all(operation, inputs);
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float* const> vectors = all.Of(row);
    for (size_t v = 1; v < vectors.size(); ++v) {
      for (size_t u = 0; u < v; ++u) *y++ = DotOf(vectors[v], vectors[u], operation.dim);
    }
  }
}

void InteractionBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                         std::span<float* const> dx) {
  const int64_t dim = operation.dim;
  SampleVectors all(operation, inputs);
  Fill(inputs, rows, dx);
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float* const> vectors = all.Of(row);
    const std::span<float* const> gradients = all.GradientsOf(row, dx);
    for (size_t v = 1; v < vectors.size(); ++v) {
      for (size_t u = 0; u < v; ++u, ++dy) {
        AddScaled(*dy, vectors[u], dim, gradients[v]);
        AddScaled(*dy, vectors[v], dim, gradients[u]);
      }
    }
  }
}

// --- FactorizationMachine: half of (the square of the sum - the sum of the squares), summed over the numbers of a
// vector.

void FactorizationForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y) {
  const int64_t dim = operation.dim;
  SampleVectors all(operation, inputs);
  std::vector<float> sums(static_cast<size_t>(dim)), squares(static_cast<size_t>(dim));
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float* const> vectors = all.Of(row);
    SumVectors(vectors, sums);
    std::ranges::fill(squares, 0.0F);
    for (const float* const vector : vectors) {
      for (size_t i = 0; i < squares.size(); ++i) squares[i] += vector[i] * vector[i];
    }
    float sum = 0;
    for (size_t i = 0; i < sums.size(); ++i) sum += sums[i] * sums[i] - squares[i];
    y[row] = sum / 2;
  }
}

void FactorizationBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy,
                           int64_t rows, std::span<float* const> dx) {
  const int64_t dim = operation.dim;
  SampleVectors all(operation, inputs);
  std::vector<float> sums(static_cast<size_t>(dim));
  for (int64_t row = 0; row < rows; ++row) {
    const std::span<const float* const> vectors = all.Of(row);
    const std::span<float* const> gradients = all.GradientsOf(row, dx);
    SumVectors(vectors, sums);
    for (size_t v = 0; v < vectors.size(); ++v) {
      for (int64_t i = 0; i < dim; ++i) gradients[v][i] = dy[row] * (sums[static_cast<size_t>(i)] - vectors[v][i]);
    }
  }
}

// --- Match, InnerProduct, Cosine

void MatchForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y) {
  const int64_t dim = operation.dim;
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = inputs[0].data + row * inputs[0].stride;
    const float* const b = inputs[1].data + row * inputs[1].stride;
    for (int64_t i = 0; i < inputs[0].width; i += dim) {
      for (int64_t j = 0; j < inputs[1].width; j += dim) *y++ = DotOf(a + i, b + j, dim);
    }
  }
}

void MatchBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                   std::span<float* const> dx) {
  const int64_t dim = operation.dim;
  Fill(inputs, rows, dx);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = inputs[0].data + row * inputs[0].stride;
    const float* const b = inputs[1].data + row * inputs[1].stride;
    float* const da = dx[0] + row * inputs[0].width;
    float* const db = dx[1] + row * inputs[1].width;
    for (int64_t i = 0; i < inputs[0].width; i += dim) {
      for (int64_t j = 0; j < inputs[1].width; j += dim, ++dy) {
        AddScaled(*dy, b + j, dim, da + i);
        AddScaled(*dy, a + i, dim, db + j);
      }
    }
  }
}

void PairsForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y) {
  const int64_t dim = VectorLength(operation, inputs[0]);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = inputs[0].data + row * inputs[0].stride;
    const float* const b = inputs[1].data + row * inputs[1].stride;
    for (int64_t i = 0; i < inputs[0].width; i += dim) {
      if (operation.kind == OperationKind::kInnerProduct) {
        *y++ = DotOf(a + i, b + i, dim);
      } else {
        const Cosines found = CosinesOf(a + i, b + i, dim);
        *y++ = found.dot / found.norm();
      }
    }
  }
}

void PairsBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                   std::span<float* const> dx) {
  const int64_t width = inputs[0].width, dim = VectorLength(operation, inputs[0]);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const a = inputs[0].data + row * inputs[0].stride;
    const float* const b = inputs[1].data + row * inputs[1].stride;
    float* const da = dx[0] + row * width;
    float* const db = dx[1] + row * width;
    for (int64_t i = 0; i < width; i += dim, ++dy) {
      // The gradient of a is `cross` b - `of_a` a.
      float cross = *dy, of_a = 0, of_b = 0;
      if (operation.kind == OperationKind::kCosine) {
        const Cosines found = CosinesOf(a + i, b + i, dim);
        cross = *dy / found.norm();
        if (found.norm() > kLeastNorm) {
          of_a = cross * found.dot / found.aa;
          of_b = cross * found.dot / found.bb;
        }
      }
      for (int64_t k = i; k < i + dim; ++k) {
        da[k] = cross * b[k] - of_a * a[k];
        db[k] = cross * a[k] - of_b * b[k];
      }
    }
  }
}

}  // namespace medley::worker
