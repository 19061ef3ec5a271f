// What one asker sees of the cluster and of its tenants: the one place that every listing and every
// error text asks. docs/visibility.md has the table by message; tests/core/test_sight.cc asks every
// read message as a stranger.
//
// Operators see everything. Anybody else sees the tenants in which they have a role, these tenants'
// queues, the partitions of the site (also those whose lists shut them out: such a list says who
// may use a partition, not who may know of it), and the nodes of all these but those that another
// tenant has for itself. What is not seen is answered as what does not exist. Jobs are Reach's
// (authorise.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "common/tenancy/tenancy.h"
#include "ctld/core/access/authorise.h"

namespace gantry::core {

class Sight {
 public:
  Sight(const State& state, const Identity& who);

  [[nodiscard]] bool everything() const { return everything_; }
  [[nodiscard]] bool tenant(const std::string& name) const;
  [[nodiscard]] bool partition(const Partition& partition) const;
  [[nodiscard]] bool node(NodeId id) const;
  [[nodiscard]] bool reservation(const AdvanceReservation& reservation) const;
  [[nodiscard]] const Reach& jobs() const { return reach_; }

  // The node of this name, if there is one that is seen.
  [[nodiscard]] const Node* node_named(std::string_view name) const;
  // Of a list of tenants and projects (allow_accounts and its kin) what the asker may read: the
  // tenants that are seen and projects of theirs, and "others" for all the rest.
  [[nodiscard]] std::vector<std::string> accounts(const std::vector<std::string>& names) const;
  // Names of those of these nodes that are seen.
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<NodeId>& nodes) const;

  // The document with what is others' left out; nothing when all of it is.
  [[nodiscard]] std::optional<tenancy::Document> document(const tenancy::Document& document) const;

  // A job's verdict without names of others' tenants, jobs, reservations and nodes.
  [[nodiscard]] Verdict verdict(Verdict verdict) const;

 private:
  void see_nodes();
  [[nodiscard]] bool names_me(const AdvanceReservation& reservation) const;

  const State& state_;
  const Identity& who_;
  bool everything_;
  Reach reach_;
  std::vector<std::string> tenants_;  // sorted
  std::vector<bool> nodes_;           // by NodeId; not with everything
};

// Does a request name a node that the asker does not see? Then it is answered as one that is not
// there. Asked of every message, before its handler.
Result<void> check_named_nodes(const State& state, const Identity& who,
                               const ClientMessage& message);
Error no_such_node(std::string_view name);

}  // namespace gantry::core
