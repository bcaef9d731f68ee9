// Reads spec.data. Used by job_spec.cc.
#pragma once

#include "common/document/reader.h"
#include "common/model/data_spec.h"

namespace medley::model {

// `reader` is at spec.data. The errors are the reader's.
void ReadData(const document::Reader& reader, DataSpec& data);

}  // namespace medley::model
