// Who may do what: the one place. Every message of a client or a job passes authorise() before
// anything else, which asks the table of messages (common/proto/message_table.h): may it be sent
// from there, and whose is it? Every listing and every change of a single job asks may().
//
// Rules: an administrator may do everything, an operator (a role that documents grant) care for
// nodes, partitions, reservations and all jobs. Everybody sees and touches the jobs that run as
// their own uid. Whoever has a role in a tenant sees the tenant's jobs in listings; its admins read
// their scripts and output and change them, too. Other jobs are not in listings, and naming one is
// answered as if it did not exist. Nodes, partitions and reservations: see sight.h. A request
// from inside a job has its owner's rights as an ordinary user.
#pragma once

#include "ctld/core/core.h"
#include "ctld/core/state/state.h"

namespace gantry::core {

Result<void> authorise(const State& state, const Identity& who, const ClientMessage& message);

// Whom the documents make an administrator of the cluster becomes one.
void take_grants(const State& state, Identity& who);

bool is_admin(const Identity& who);
bool is_operator(const State& state, const Identity& who);  // administrators are

enum class May : std::uint8_t {
  see,     // in listings, with its reason
  change,  // cancel, hold, update; read its script and output; start steps
};

// What one asker may do with jobs, worked out once for a request that looks at many.
class Reach {
 public:
  Reach(const State& state, const Identity& who);
  [[nodiscard]] bool may(May what, const State& state, const Job& job) const;
  // Sees every job; sees none but their own.
  [[nodiscard]] bool everything() const { return admin_; }
  [[nodiscard]] bool only_own() const { return !admin_ && sees_.empty(); }
  [[nodiscard]] const std::vector<PartitionId>& tenants() const { return sees_; }

 private:
  bool admin_;
  Uid uid_;
  std::vector<PartitionId> sees_, changes_;  // queues of tenants; sorted
};

bool may(May what, const State& state, const Identity& who, const Job& job);

// Whether somebody may still let a job of theirs go on, as larger, elsewhere or once more: who has
// no role any more in the tenant that pays for it can hold and cancel it, and no more.
Result<void> may_go_on(const State& state, const Identity& who, const Job& job);

// "alice", and for administrators acting on others "root (administrator)".
std::string who_text(const Identity& who);

}  // namespace gantry::core
