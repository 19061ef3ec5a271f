// Decides who may do what; no other place does. Every message of a client or a job passes
// authorise() first. It asks the table of messages (common/proto/message_table.h) whether the
// message may come from this sender and whose right it is. Every listing and every change of a
// single job asks may().
//
// Rules: An administrator may do everything. An operator (a role granted by tenancy documents)
// cares for nodes, partitions, reservations and all jobs. An auditor sees all jobs and who may do
// what, and changes nothing. All users see and change the jobs that run as their own uid. What
// somebody may do in a tenant, its roles say (roles.h). Other jobs are not in listings, and naming
// one is answered as if it did not exist; only a request to change one that has not ended is
// refused, as in Slurm (select.h, refuse_others()). sight.h has the rules for nodes, partitions and
// reservations. A request from inside a job has the rights of the job's owner as an ordinary user.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "ctld/core/request.h"

namespace gantry::core {

struct State;
struct Job;

Result<void> authorise(const State& state, const Identity& who, const proto::AnyMessage& message);

// Makes `who` an administrator if the documents say so.
void take_grants(const State& state, Identity& who);

bool is_admin(const Identity& who);
bool is_operator(const State& state, const Identity& who);  // also true for administrators
bool reads_audit(const State& state, const Identity& who);  // auditors and administrators
// Operators, administrators and auditors: their listings are not narrowed.
bool sees_all(const State& state, const Identity& who);

enum class May : std::uint8_t {
  see,     // see the job in listings, with the reason why it waits
  change,  // cancel, hold, update it; start steps
  read,    // the job's script and output
};

// The rights of one asker to jobs, worked out once for a request that looks at many jobs.
class Reach {
 public:
  Reach(const State& state, const Identity& who);
  [[nodiscard]] bool may(May what, const State& state, const Job& job) const;
  // everything(): the asker sees every job. only_own(): the asker sees no jobs of others.
  [[nodiscard]] bool everything() const { return sees_all_; }
  [[nodiscard]] bool only_own() const { return !sees_all_ && sees_.empty(); }
  [[nodiscard]] const std::vector<PartitionId>& tenants() const { return sees_; }

 private:
  [[nodiscard]] const std::vector<PartitionId>& queues(May what) const;

  bool admin_, sees_all_;
  Uid uid_;
  std::vector<PartitionId> sees_, changes_, reads_;  // partitions of these tenants; sorted
};

bool may(May what, const State& state, const Identity& who, const Job& job);

// Whether `who` may extend an own job: make it larger, move it or run it again. Users without a
// role in the tenant that pays for the job can only hold and cancel it.
Result<void> may_go_on(const State& state, const Identity& who, const Job& job);

// "alice", or "root (administrator)" for an administrator who acts on others.
std::string who_text(const Identity& who);

}  // namespace gantry::core
