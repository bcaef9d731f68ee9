// What a schema says about every sample, before any data is read.
#pragma once

#include "common/model/job_spec.h"
#include "worker/data/batch.h"

namespace medley::worker {

// Fields: the categorical columns, then the numeric ones again when schema.numeric_buckets > 0.
SampleShape ShapeOf(const model::SchemaSpec& schema);

}  // namespace medley::worker
