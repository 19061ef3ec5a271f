// The slow scrub: a thread that reads the whole store again and again, a little each time, and
// reports values with a wrong checksum before somebody needs them.
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
  std::uint64_t octets = 1 << 20;  // octets of one piece; with the pause this is 8 MiB in a second
  std::chrono::milliseconds pause{125};
  std::chrono::minutes between{60};  // between the end of one pass and the next pass
};

struct ScrubStatus {
  std::uint64_t passes = 0;  // passes that have ended since the start
  std::uint64_t octets = 0;  // octets read in this pass
  // Damaged entries of this pass or of the last complete one, whichever has more.
  std::uint64_t damaged = 0;
};

class Scrubber {
 public:
  // `store` must outlive this object. `damaged` gets a sentence for each damaged entry, for the
  // first kMostDamaged of a pass, on the scrubber's own thread.
  Scrubber(const LmdbStore& store, ScrubPace pace, std::function<void(std::string)> damaged);
  ~Scrubber();
  Scrubber(const Scrubber&) = delete;
  Scrubber& operator=(const Scrubber&) = delete;
  [[nodiscard]] ScrubStatus status() const;

 private:
  void run();
  bool pass();                                // returns false if it has to stop
  bool rest(std::chrono::milliseconds time);  // returns false if it has to stop
  void note(const ScrubPiece& piece, std::uint64_t& damaged);

  const LmdbStore& store_;
  ScrubPace pace_;
  std::function<void(std::string)> damaged_;
  mutable std::mutex mutex_;  // guards the three members below
  ScrubStatus status_;
  std::uint64_t last_damaged_ = 0;  // number in the last complete pass
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace gantry::store
