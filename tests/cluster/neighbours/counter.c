/* A program for torchrun that needs nothing of its image, not even libc: it is linked statically. Its one process counts its steps, and
 * does otherwise what tests/data/programs/ring.py does: prints each step, saves at SIGUSR1 and every 50 steps, and continues from that.
 * Arguments: folder, steps, seconds of a step, a file (the last step begins when it exists), a file for a line for each step. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kEvery = 50, kPath = 4096 };

static volatile sig_atomic_t wanted;

static void want(int s) {
  (void)s;
  wanted = 1;
}

static int fail(const char* what) {
  perror(what);
  return 1;
}

static int save(const char* saved, long step, long sum) {
  char part[kPath];
  wanted = 0;
  snprintf(part, sizeof part, "%s.tmp", saved);
  FILE* file = fopen(part, "w");
  if (file == NULL) return fail(part);
  fprintf(file, "{\"step\": %ld, \"sum\": %ld}", step, sum);
  if (fclose(file) != 0 || rename(part, saved) != 0) return fail(saved);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: counter FOLDER STEPS SECONDS UNTIL RECORD\n");
    return 2;
  }
  const char *until = argv[4], *record = argv[5];
  const long steps = atol(argv[2]);
  const long nanoseconds = (long)(atof(argv[3]) * 1e9);
  const struct timespec pace = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  char saved[kPath];
  long step = 0, sum = 0;
  signal(SIGUSR1, want);
  mkdir(argv[1], 0755);
  snprintf(saved, sizeof saved, "%s/latest.json", argv[1]);
  FILE* file = fopen(saved, "r");
  if (file != NULL) {
    if (fscanf(file, "{\"step\": %ld, \"sum\": %ld}", &step, &sum) != 2) return fail(saved);
    fclose(file);
  }
  while (step < steps) {
    nanosleep(&pace, NULL);
    if (step + 1 == steps && access(until, F_OK) != 0) {
      if (wanted && save(saved, step, sum) != 0) return 1;
      continue;
    }
    ++step;
    ++sum;
    file = fopen(record, "a");
    if (file == NULL) return fail(record);
    fprintf(file, "%ld\n", step);
    fclose(file);
    printf("step %ld loss %.5f\n", step, 1.0 / (double)step);
    fflush(stdout);
    if ((wanted || step % kEvery == 0 || step == steps) && save(saved, step, sum) != 0) return 1;
  }
  return 0;
}
