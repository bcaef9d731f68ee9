#include "tests/integration/node/network_main.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "common/base/status.h"
#include "localcluster/node/emulated_network.h"

namespace medley::kube {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

int RunOnNetwork(int argc, char** argv) {
  if (geteuid() != 0) {
    std::vector<char*> line = {const_cast<char*>("unshare"), const_cast<char*>("--map-root-user")};
    line.insert(line.end(), argv, argv + argc);
    line.push_back(nullptr);
    execvp("unshare", line.data());
    std::perror("unshare");
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  if (const auto probe = localcluster::EmulatedNetwork::Create(0); !probe.ok()) {
    std::fprintf(stderr, "NOT TESTED: this machine allows no network namespaces with TUN devices: %s\n",
                 base::ToString(probe.status()).c_str());
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}

}  // namespace medley::kube
