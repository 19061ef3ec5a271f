// The program that test_power_loss.cc records: DIRECTORY SEED TURNS. Runs the workload and writes
// each acknowledged event number to kAckFd.
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
  options.map_bytes = 1 << 20;  // grows on the way
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
