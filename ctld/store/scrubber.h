// The slow scrub: a thread that reads the whole store again and again, a little each time, and says
// what no longer has its checksum before somebody needs it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "ctld/store/lmdb_store.h"

namespace gantry::store {

struct ScrubPace {
  std::uint64_t octets = 1 << 20;  // of one piece: with the pause, 8 MiB in a second
  std::chrono::milliseconds pause{125};
  std::chrono::minutes between{60};  // the end of one pass and the next
};

struct ScrubStatus {
  std::uint64_t passes = 0;   // ended since the start
  std::uint64_t octets = 0;   // of this pass
  std::uint64_t damaged = 0;  // entries, of this pass and the last whole one: whichever has more
};

class Scrubber {
 public:
  // `store` must outlive it. `damaged` gets a sentence for each damaged entry, the first
  // kMostDamaged of a pass, on the scrubber's own thread.
  Scrubber(const LmdbStore& store, ScrubPace pace, std::function<void(std::string)> damaged);
  ~Scrubber();
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;
  [[nodiscard]] ScrubStatus status() const;

 private:
  void run();
  bool pass();                                // false: it is to stop
  bool rest(std::chrono::milliseconds time);  // false: it is to stop
  void note(const ScrubPiece& piece, std::uint64_t& damaged);

  const LmdbStore& store_;
  ScrubPace pace_;
  std::function<void(std::string)> damaged_;
  mutable std::mutex mutex_;  // guards the three below
  ScrubStatus status_;
  std::uint64_t last_damaged_ = 0;  // of the last whole pass
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::store
