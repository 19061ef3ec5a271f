// Windows (advance reservations, maintenance) on nodes. A node in a window is closed to all jobs
// except those that name the window, and these may run only in it. A recurring reservation is a
// window for each occurrence, and a job that names it belongs to the first. set() sets the windows;
// speak_for() sets the job for which the next calls are, here and in the timeline.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/time/time.h"
#include "ctld/sched/bits.h"
#include "ctld/sched/change.h"

namespace gantry::sched {

struct Window {
  std::string name;
  Instant from{}, until{};
  bool maintenance = false;
  std::vector<std::uint32_t> nodes;
};

class Windows {
 public:
  void set(const std::map<std::string, ReservationChanged>& reservations);
  // The next calls are for a job that names this reservation ("" = none). Returns false if there is
  // no such window.
  bool speak_for(const std::string& reservation);
  [[nodiscard]] const Window* own() const { return own_ == kNone ? nullptr : &windows_[own_]; }

  [[nodiscard]] std::span<const Window> all() const { return windows_; }  // by end
  // True if the node may be closed, at some time, to the job set by speak_for().
  [[nodiscard]] bool closed(std::uint32_t node) const {
    return own_ != kNone || closed_.test(node);
  }
  // A window that closes the node for a part of [from, until); null if there is none.
  [[nodiscard]] const Window* in(std::uint32_t node, Instant from, Instant until) const;
  // Calls f(at) for moments from which on the node may be closed: other windows open, or the job's
  // own window closes.
  template <class F>
  void each_closing(std::uint32_t node, F&& f) const {
    if (!closed_.test(node)) return;
    for (const std::uint32_t w : on_[node]) f(w == own_ ? windows_[w].until : windows_[w].from);
  }
  // The next moment after now at which a window opens or closes; nullopt if there is none.
  [[nodiscard]] std::optional<Instant> next_boundary(Instant now) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<Window> windows_;  // by end
  std::uint32_t own_ = kNone;
  Bits closed_;                                 // nodes with windows
  std::vector<std::vector<std::uint32_t>> on_;  // by node
};

}  // namespace gantry::sched
