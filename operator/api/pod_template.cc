#include "operator/api/pod_template.h"

#include "common/document/reader.h"

namespace medley::ops {

PodTemplate ReadPodTemplate(const document::Reader& reader) { return {reader.Raw("metadata"), reader.Raw("spec")}; }

}  // namespace medley::ops
