// The parts of vector_layers.h that multiply or pool vectors. Sums over a vector's numbers are in an order that depends
// on its length only.
#pragma once

#include <cstdint>
#include <span>

#include "worker/model/vector_layers.h"

namespace medley::worker {

// How long the vectors of an input are.
int64_t VectorLength(const Operation& operation, const LayerInput& input);

// Arguments as of VectorLayerForward and VectorLayerBackward.
void PoolForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y);
void PoolBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                  std::span<float* const> dx);
void InteractionForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y);
void InteractionBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                         std::span<float* const> dx);
void FactorizationForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y);
void FactorizationBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy,
                           int64_t rows, std::span<float* const> dx);
void MatchForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y);
void MatchBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                   std::span<float* const> dx);
void PairsForward(const Operation& operation, std::span<const LayerInput> inputs, int64_t rows, float* y);
void PairsBackward(const Operation& operation, std::span<const LayerInput> inputs, const float* dy, int64_t rows,
                   std::span<float* const> dx);

}  // namespace medley::worker
