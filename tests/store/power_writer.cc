// The program that test_power_loss.cc records. Its arguments are DIRECTORY SEED TURNS. It runs the
// workload and writes the number of each acknowledged event to kAckFd.
#include <unistd.h>

#include <cstdlib>

#include "ctld/store/lmdb_store.h"
#include "workload.h"
#include "write_recorder.h"

int main(int argc, char** argv) {
  using namespace gantry::store;
  if (argc != 4) return 2;
  LmdbOptions options;
  options.directory = argv[1];
  options.map_bytes = 1 << 20;  // The map is small, so that it grows during the run.
  auto store = LmdbStore::open(options);
  if (!store) return 1;
  Workload workload(**store, std::strtoull(argv[2], nullptr, 10));
  for (int turn = std::atoi(argv[3]); turn > 0; --turn) {
    if (!workload.turn()) return 1;
    std::uint64_t acked = (*store)->stats().last.value();
    if (::write(kAckFd, &acked, sizeof acked) != sizeof acked) return 1;
  }
  return 0;
}
