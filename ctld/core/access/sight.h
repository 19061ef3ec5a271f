// Decides what one asker sees of the cluster and of its tenants. Every listing and every error text
// asks here. docs/visibility.md has the table by message; tests/core/test_sight.cc asks every read
// message as a stranger.
//
// Operators see everything. All others see: the tenants in which they have a role; these tenants'
// queues; the partitions of the site, also those whose lists shut them out (a list says who may use
// a partition, not who may know of it); and the nodes of all these, except nodes that another
// tenant has for itself. What an asker does not see is answered as if it did not exist. Reach
// (authorise.h) decides about jobs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/job/job_state.h"
#include "common/proto/any/any_message.h"
#include "common/result.h"
#include "common/tenancy/tenancy.h"
#include "common/tenancy/tenancy_cluster.h"
#include "ctld/core/access/authorise.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct State;
struct Partition;
struct Node;
struct AdvanceReservation;

class Sight {
 public:
  Sight(const State& state, const Identity& who);

  [[nodiscard]] bool everything() const { return everything_; }
  [[nodiscard]] bool tenant(const std::string& name) const;
  [[nodiscard]] bool partition(const Partition& partition) const;
  [[nodiscard]] bool node(NodeId id) const;
  [[nodiscard]] bool reservation(const AdvanceReservation& reservation) const;
  [[nodiscard]] const Reach& jobs() const { return reach_; }

  // The node of this name; null if it does not exist or is not seen.
  [[nodiscard]] const Node* node_named(std::string_view name) const;
  // The names in a list of tenants and projects (such as allow_accounts) that the asker may read:
  // tenants that the asker sees and their projects, and "others" for all the rest.
  [[nodiscard]] std::vector<std::string> accounts(const std::vector<std::string>& names) const;
  // The names of those of these nodes that the asker sees.
  [[nodiscard]] std::vector<std::string> names_of(const std::vector<NodeId>& nodes) const;

  // The document without what belongs to other tenants; nullopt if all of it does.
  [[nodiscard]] std::optional<tenancy::Document> document(const tenancy::Document& document) const;

  // The verdict of a job without names of other tenants, their jobs, reservations and nodes.
  [[nodiscard]] Verdict verdict(Verdict verdict) const;

 private:
  [[nodiscard]] bool network_profile(const std::string& name) const;
  [[nodiscard]] bool network_service(const std::string& name) const;
  void see_nodes();
  [[nodiscard]] bool names_me(const AdvanceReservation& reservation) const;

  const State& state_;
  const Identity& who_;
  bool everything_;
  Reach reach_;
  std::vector<std::string> tenants_;  // sorted
  std::vector<bool> nodes_;           // by NodeId; empty if everything is seen
};

// Refuses a request that names a node which the asker does not see, as if the node did not exist.
// Every message is checked before its handler.
Result<void> check_named_nodes(const State& state, const Identity& who,
                               const proto::AnyMessage& message);
Error no_such_node(std::string_view name);

}  // namespace gantry::core
