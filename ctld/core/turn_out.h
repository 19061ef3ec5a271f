// What one turn of the core gives to the shell; see core.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/types.h"
#include "ctld/core/letter.h"
#include "ctld/core/request.h"
#include "ctld/core/state/trigger_state.h"
#include "ctld/core/usage_event.h"
#include "ctld/sched/change.h"
#include "ctld/store/store.h"

namespace gantry::core {

// Script and environment of a job, which the shell reads from the store and puts into a message
// before the message leaves (ctld/core/job/submit/blobs.h). The core knows only their content
// hashes.
struct SealedSecret {
  std::string tenant, name;
  std::uint32_t version = 0;
  std::string file;  // name of the file in the job's directory of secrets
  Bytes sealed;      // empty: the version was removed after the job was placed
};
struct IdentityClaims {
  std::string tenant, project, user, node;
  JobId job{};
  Attempt attempt{};
  std::vector<std::pair<std::string, std::string>> audiences;  // the content of each, with its file
};
struct BlobRefs {
  std::optional<store::Digest> script;
  std::optional<store::Digest> environment;
  // Only the shell has the keys: it opens these contents, and signs the tokens.
  std::vector<SealedSecret> sealed{};
  std::optional<IdentityClaims> identity{};
  [[nodiscard]] bool empty() const { return !script && !environment; }
};

struct Reply {
  ConnectionId connection;
  std::uint64_t request = 0;
  ReplyMessage message;
  std::vector<BlobRefs> blobs{};  // for a ShowJobReply: one per job, if scripts were asked for
};

struct Order {
  std::string node;
  OrderMessage message;
  BlobRefs blobs{};  // for a Launch; the claims for IdentityTokens too
};

// The core holds no keys. So StepGranted has no signature and NodeAccept no permission_key; the
// shell fills these in.
struct Turn {
  store::AppendBatch append;  // empty if nothing changed
  std::vector<Reply> replies;
  std::vector<Order> orders;
  std::vector<sched::Change> changes;  // for the scheduler's replica
  bool schedule = false;               // something changed that a plan could use
  std::optional<Instant> wake;         // earliest time at which a Tick is wanted
  std::vector<std::string> notes;      // lines for the log: ignored reports, dropped plan entries
  std::vector<UsageEvent> usage;  // filled if controller.usage_events is set; after a start, also
                                  // for the journal's tail
  std::vector<Letter> letters;    // filled if controller.mail_program is set
  std::vector<ProgramRun> programs;  // programs of triggers that have to be run now
};

}  // namespace gantry::core
