// Searches for victims that found none, within one plan. If a search found none for one job, it
// finds none for any job of the same tenant and priority class that asks the same of the same nodes
// (request_keys.h) and does not end sooner, because free resources only shrink during a plan.
#pragma once

#include <map>
#include <optional>

#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

struct Asker {
  std::uint32_t tenant = kNoIndex;  // quota node of its tenant
  std::uint32_t demand_id = 0;      // of RequestKeys
  std::uint32_t priority_class = 0;
  friend auto operator<=>(const Asker&, const Asker&) = default;
};

class InVain {
 public:
  using Limit = std::optional<Duration>;  // unset: unlimited

  void note(const Asker& asker, Limit limit) {
    if (!knows(asker, limit)) shortest_.insert_or_assign(asker, limit);
  }
  [[nodiscard]] bool knows(const Asker& asker, Limit limit) const {
    const auto at = shortest_.find(asker);
    return at != shortest_.end() && (!limit || (at->second && *at->second <= *limit));
  }

 private:
  std::map<Asker, Limit> shortest_;
};

}  // namespace gantry::sched
