// The main function of tests on an emulated network.
#pragma once

namespace medley::kube {

// Runs all tests, as root of a user namespace where the user is not root. On a machine that allows no such network a
// line says so, and the exit status is 77: skipped.
int RunOnNetwork(int argc, char** argv);

}  // namespace medley::kube
