#include "ctld/sched/time/windows.h"

#include <algorithm>

namespace gantry::sched {

void Windows::set(const std::map<std::string, ReservationChanged>& reservations) {
  windows_.clear();
  on_.clear();
  closed_ = Bits{};
  for (const auto& [name, r] : reservations) {
    windows_.push_back({name, r.from, r.until, r.maintenance, {}});
    for (const NodeId n : r.nodes) windows_.back().nodes.push_back(n.value());
    for (const TimeSpan& later : r.later) {
      Window again = windows_.back();
      again.from = later.from;
      again.until = later.until;
      windows_.push_back(std::move(again));
    }
  }
  std::stable_sort(windows_.begin(), windows_.end(),
                   [](const Window& a, const Window& b) { return a.until < b.until; });
  for (std::uint32_t w = 0; w < windows_.size(); ++w)
    for (const std::uint32_t n : windows_[w].nodes) {
      if (on_.size() <= n) on_.resize(n + 1);
      on_[n].push_back(w);
      closed_.resize(on_.size());
      closed_.set(n);
    }
}

bool Windows::speak_for(const std::string& reservation) {
  own_ = kNone;
  if (reservation.empty()) return true;
  // The first occurrence of a recurring window, because windows are sorted by end.
  for (std::uint32_t w = 0; w < windows_.size() && own_ == kNone; ++w)
    if (windows_[w].name == reservation) own_ = w;
  return own_ != kNone;
}

std::optional<Instant> Windows::next_boundary(Instant now) const {
  std::optional<Instant> next;
  for (const Window& w : windows_)
    for (const Instant at : {w.from, w.until})
      if (at > now && (!next || at < *next)) next = at;
  return next;
}

const Window* Windows::in(std::uint32_t node, Instant from, Instant until) const {
  if (!closed_.test(node)) return nullptr;
  for (const std::uint32_t w : on_[node])
    if (w != own_ && windows_[w].from < until && from < windows_[w].until) return &windows_[w];
  return nullptr;
}

}  // namespace gantry::sched
