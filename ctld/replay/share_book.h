// The fair-share tree of a replay: tenant, project and user, with decayed usage, as the controller
// has it (ctld/core/tenancy/shares.h). A job is charged from its start until all its nodes are
// released.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ctld/core/state/tenancy_compile.h"
#include "ctld/sched/change.h"
#include "ctld/sched/tenant/decay.h"

namespace gantry::replay {

class ShareBook {
 public:
  ShareBook(const core::CompiledTenancy& compiled) : compiled_(compiled) {}

  // The user's leaf. If nodes are new, the next call of take_changes() returns them too.
  sched::ShareId leaf(const std::string& tenant, const std::string& project,
                      const std::string& user) {
    const auto top = node_for(std::nullopt, tenant, 1);
    const std::string account = project.empty() ? tenant : project;
    std::uint32_t shares = 1, of_user = 1;
    if (const auto it = compiled_.tenants.find(tenant); it != compiled_.tenants.end())
      for (const tenancy::Project& p : it->second.effective.projects) {
        if (p.name != account) continue;
        shares = p.shares;
        for (const tenancy::UserShare& u : p.users)
          if (u.user == user) of_user = u.shares;
      }
    return node_for(node_for(top, account, shares), user, of_user);
  }

  // From now on the leaf and all nodes above it are charged `by` more per second, for `jobs` more
  // jobs.
  void change_rate(sched::ShareId leaf, Instant now, double by, int jobs) {
    for (std::optional<sched::ShareId> at = leaf; at; at = nodes_[at->value()].view.parent) {
      Node& node = nodes_[at->value()];
      sched::advance(node.view.usage, now, compiled_.view->half_life);
      node.running += jobs;
      // When no job is left the rate is set to exactly zero, because sums of floating point numbers
      // do not cancel out.
      node.view.usage.rate = node.running == 0 ? 0 : node.view.usage.rate + by;
      changes_.push_back(node.view);
    }
  }
  std::vector<sched::ShareChanged> take_changes() { return std::exchange(changes_, {}); }

 private:
  struct Node {
    sched::ShareChanged view;
    int running = 0;
  };
  sched::ShareId node_for(std::optional<sched::ShareId> parent, const std::string& name,
                          std::uint32_t shares) {
    const auto [it, fresh] =
        ids_.try_emplace(std::tuple{parent, name}, static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) {
      nodes_.push_back({{it->second, parent, shares, {}}, 0});
      changes_.push_back(nodes_.back().view);
    }
    return it->second;
  }
  const core::CompiledTenancy& compiled_;
  std::map<std::tuple<std::optional<sched::ShareId>, std::string>, sched::ShareId> ids_;
  std::vector<Node> nodes_;
  std::vector<sched::ShareChanged> changes_;
};

}  // namespace gantry::replay
