// Parts of pods in manifests: spec.template of a TrainingJob and of its roles, and of a ResourcePool. Immutable values.
#pragma once

#include "kube/object.h"

namespace medley::document {
class Reader;
}

namespace medley::ops {

// A part of a pod that is merged into pods (operator/builders/template_overlay.h). Null: nothing.
struct PodTemplate {
  kube::Json metadata;  // labels and annotations
  kube::Json spec;
};

PodTemplate ReadPodTemplate(const document::Reader& reader);

}  // namespace medley::ops
