// medley-worker: one process of a training job. Roles and environment: docs/design/runtime.md, worker/app/README.md.
#include "worker/app/worker_main.h"

int main(int argc, char** argv) { return medley::worker::WorkerMain(argc, argv, nullptr); }
