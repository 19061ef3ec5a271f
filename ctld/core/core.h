// The controller as a function: (state, input, now) in, (events, messages) out.
//
// One turn: the shell calls step() for each input it has, then take_turn(). It appends the turn's
// events (and new specs and blobs) durably, and only then sends replies and orders and hands the
// changes to the scheduler. step() decides by reading State, records Events, and applies them at
// once, so the second input of a turn sees the first; nothing leaves before the commit. A failed
// commit ends the process: there is no retry state.
//
// Restart: load records, replay() the journal's tail through the same apply, then start(), which
// bumps the epoch (an event). Nodes find their session unknown and register again.
//
// Deterministic: no clock, no I/O, no randomness; `now` is the only time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "common/result.h"
#include "common/types.h"
#include "config/config.h"
#include "ctld/core/job_reader.h"
#include "ctld/core/request.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/plan.h"
#include "ctld/store/store.h"

namespace gantry::core {

struct ConnectionClosed {  // waits of this connection's requests are dropped
  ConnectionId connection;
};
struct FromNode {  // authenticated: this link's key is enrolled for `node`
  std::string node;
  NodeMessage message;
};
struct PlanReady {
  sched::Plan plan;
};
struct Tick {};          // the time that Turn::wake asked for has come
struct Reconfigured {};  // the controller was restarted to read its configuration again

using Input =
    std::variant<ClientRequest, ConnectionClosed, FromNode, PlanReady, Tick, Reconfigured>;

struct State;
struct MutableState;
struct Runtime;

class Core {
 public:
  explicit Core(const Config& config);
  ~Core();

  // Recovery, in this order: records, specs, events (as store::LoadVisitor has them), start().
  Result<void> load_record(store::Table table, std::string_view key, std::string_view value);
  Result<void> load_spec(JobId job, std::string_view data);
  void load_read(ReadPiece&& piece);  // replaces the records of jobs and the specs
  Result<void> replay(const store::JournalEntry& entry);
  // Bumps the epoch; its events are in the next take_turn(). It fails if the store is inconsistent.
  Result<void> start(Instant now);

  void step(Instant now, Input input);
  // Counts a request of this user and how long it took; only for ShowStats. The core reads no
  // clock.
  void note_call(std::string_view message, const std::string& user, Duration took);
  Turn take_turn();

  // Fold: records changed since the last call, to be written in one transaction that also moves
  // applied_seq to the last committed event. Call it between turns: after a turn's append, before
  // the next step. `records` and the rest are empty if nothing changed.
  store::FoldBatch take_fold();
  // Accepts an old store: call it in place of start(), before take_fold(). An order that no node
  // has confirmed may have been carried out, and its job may have ended since; so the order is not
  // sent again (NodeRun::perhaps_over). It fails if the store is inconsistent.
  Result<void> doubt_orders();

  // The shell asks these when it identifies a peer.
  [[nodiscard]] std::optional<std::string> node_of_key(std::string_view z85) const;  // enrolled
  [[nodiscard]] std::optional<std::string> user_of_key(std::string_view hex) const;  // registered
  // The identity of a sender through a NodeRelay: the job's owner, with role user and `inside` set.
  // The call fails with permission_denied unless this attempt is placed on that node now.
  [[nodiscard]] Result<Identity> inside_identity(std::string_view node,
                                                 const proto::AttemptKey& key) const;

  [[nodiscard]] Epoch epoch() const;
  // The time of the newest event, including those read at recovery. Cluster time never goes back
  // before it.
  [[nodiscard]] Instant last_time() const;

  [[nodiscard]] const State& state() const;
  [[nodiscard]] const Runtime& runtime() const;  // what was sent to whom, and why jobs wait
  // Everything the scheduler's replica needs, from scratch. Give it to a new replica right after
  // start() (whose own turn has no changes), and compare with it as an audit. Jobs come one by one.
  [[nodiscard]] std::vector<sched::Change> full_view() const;
  // The same in batches, because the full view of a million waiting jobs is large. The waiting jobs
  // of one class come together as far as they are in one batch.
  void full_view(const std::function<void(std::vector<sched::Change>)>& take) const;
  // Checks the state (audit.h), and the quota in use against the placements. Returns "" or what is
  // wrong.
  [[nodiscard]] std::string audit() const;

 private:
  std::unique_ptr<MutableState> state_;
  struct Private;
  std::unique_ptr<Private> p_;
};

}  // namespace gantry::core
