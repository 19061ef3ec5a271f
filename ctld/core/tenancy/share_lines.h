// The fair-share tree as of now: shares and usage of each of its nodes, and the order in which
// siblings are served. Made for one request; each document is looked up only once.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctld/core/context.h"
#include "ctld/core/state/tenancy_state.h"

namespace gantry::core {

struct ShareNode;

struct ShareLine {
  const ShareNode* node = nullptr;
  double shares = 1;
  double usage = 0;  // decayed, charge units times seconds
  double rate = 0;   // charge units per second
};

class ShareLines {
 public:
  explicit ShareLines(const Context& ctx) : ctx_(ctx) {}

  [[nodiscard]] ShareLine line(sched::ShareId id) const;

  // Children of `parent`, or the tenants, in the order in which they are served: greatest shares
  // over usage first.
  [[nodiscard]] std::vector<ShareLine> children_of(std::optional<sched::ShareId> parent) const;

 private:
  // Shares of a project, and of each of its users.
  using OfProject = std::pair<double, std::map<std::string_view, double>>;

  [[nodiscard]] double shares_of(const ShareNode& node) const;
  [[nodiscard]] const std::map<std::string_view, OfProject>& projects_of(
      const std::string& tenant) const;

  const Context& ctx_;
  // Made when children are first asked for.
  mutable std::optional<std::vector<std::vector<sched::ShareId>>> children_;
  mutable std::vector<sched::ShareId> tops_;
  mutable std::map<std::string, std::map<std::string_view, OfProject>> projects_;
};

}  // namespace gantry::core
