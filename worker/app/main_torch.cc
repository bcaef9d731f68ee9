// medley-worker-torch: what medley-worker becomes when it must compute a model that came from PyTorch, or on a GPU.
#include "worker/app/worker_main.h"
#include "worker/aten/make_block.h"

int main(int argc, char** argv) { return medley::worker::WorkerMain(argc, argv, medley::worker::aten::MakeBlock); }
