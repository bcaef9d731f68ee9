#include "tests/integration/kubectl/kubectl.h"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "common/base/file.h"
#include "common/base/status.h"

namespace medley::kube {

const char kWidgetCrd[] = R"(
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.example.com}
spec:
  group: test.example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.replicas
        labelSelectorPath: .status.selector
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: Colour, type: string, jsonPath: .spec.colour, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How big the widget is.}
              replicas: {type: integer, minimum: 0, default: 1}
              colour: {type: string, enum: [red, green], default: red}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, weight: {type: integer}}
              share: {x-kubernetes-int-or-string: true}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              conditions:
                type: array
                items: {type: object, properties: {type: {type: string}, status: {type: string}}}
)";

KubectlCluster::KubectlCluster() {
  const char* given = std::getenv("MEDLEY_KUBECTL");
  kubectl_ = given != nullptr ? given : "kubectl";
  const std::string probe = "command -v '" + kubectl_ + "' >/dev/null 2>&1";
  MEDLEY_CHECK(std::system(probe.c_str()) == 0,
               "kubectl was not found: install the Debian package kubernetes-client");
  dir_ = base::MakeTempDir("medley-kubectl-").value();
  MEDLEY_CHECK(base::WriteFileAtomic(dir_ / "crd.yaml", kWidgetCrd).ok(), "cannot write the CRD");
  ApiServerOptions options;
  options.crd_paths = {dir_ / "crd.yaml"};
  server_ = std::make_unique<ApiServer>(clock_, options);
  const absl::Status started = server_->Start();
  MEDLEY_CHECK(started.ok(), base::ToString(started));
  MEDLEY_CHECK(server_->WriteKubeconfig(dir_ / "kubeconfig").ok(), "cannot write the kubeconfig");
}

KubectlCluster::~KubectlCluster() {
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

Output KubectlCluster::Run(const std::string& args, const std::string& input) const {
  const std::filesystem::path stdin_file = dir_ / ("stdin" + std::to_string(runs_.fetch_add(1)));
  std::ofstream(stdin_file) << input;
  // HOME: kubectl caches discovery below it.
  const std::string command = "cd '" + dir_.string() + "' && HOME=. KUBECONFIG=kubeconfig timeout 60 '" +
                              kubectl_ + "' " + args + " < " + stdin_file.filename().string() + " 2>&1";
  Output output;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  output.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return output;
}

}  // namespace medley::kube
