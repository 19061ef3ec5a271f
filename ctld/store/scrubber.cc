#include "ctld/store/scrubber.h"

#include <algorithm>
#include <utility>

namespace gantry::store {

Scrubber::Scrubber(const LmdbStore& store, ScrubPace pace, std::function<void(std::string)> damaged)
    : store_(store), pace_(pace), damaged_(std::move(damaged)), thread_([this] { run(); }) {}

Scrubber::~Scrubber() {
  {
    std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

ScrubStatus Scrubber::status() const {
  std::lock_guard guard(mutex_);
  return status_;
}

bool Scrubber::rest(std::chrono::milliseconds time) {
  std::unique_lock guard(mutex_);
  return !wake_.wait_for(guard, time, [this] { return stopping_; });
}

void Scrubber::note(const ScrubPiece& piece, std::uint64_t& damaged) {
  for (const std::string& sentence : piece.damaged)
    if (++damaged <= kMostDamaged) damaged_(sentence);
  std::lock_guard guard(mutex_);
  status_.octets += piece.octets;
  status_.damaged = std::max(last_damaged_, damaged);
}

bool Scrubber::pass() {
  {
    std::lock_guard guard(mutex_);
    status_.octets = 0;
  }
  ScrubAt at;
  std::uint64_t damaged = 0;
  for (bool end = false; !end;) {
    const auto piece = store_.scrub(at, pace_.octets);
    if (!piece) {  // the store cannot be read at all, or it has failed and the controller is
                   // stopping
      damaged_(piece.error().message);
      return false;
    }
    note(*piece, damaged);
    end = piece->end;
    if (!rest(pace_.pause)) return false;
  }
  std::lock_guard guard(mutex_);
  ++status_.passes;
  last_damaged_ = status_.damaged = damaged;
  return true;
}

void Scrubber::run() {
  while (pass() && rest(pace_.between)) {
  }
}

}  // namespace gantry::store
