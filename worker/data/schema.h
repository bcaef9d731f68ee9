// Computes the shape of samples from the schema, before any data is read.
#pragma once

#include "common/model/job_spec.h"
#include "worker/data/batch.h"

namespace medley::worker {

// The fields are the categorical columns, followed by the numeric ones when schema.numeric_buckets > 0.
SampleShape ShapeOf(const model::SchemaSpec& schema);

// Whether rows have weights: spec.data.weight.
bool HasWeights(const model::SchemaSpec& schema);

}  // namespace medley::worker
