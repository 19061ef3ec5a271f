// A small cluster for scenarios as text: the shipped core on a MemoryStore, the shipped scheduler,
// and nodes that do what the scenario says.
//
// A scenario is a list of commands ("> submit alice name=a"), each followed by what it prints: the
// answers, the orders to nodes, the starts of a plan. World::help() lists the commands. After every
// command the state is audited; at the end (and at `restart`) the state is rebuilt from the store
// and from the whole journal, and must be the same.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/proto/access.h"
#include "common/proto/attempt.h"
#include "common/proto/budget.h"
#include "common/proto/control.h"
#include "common/proto/gate.h"
#include "common/proto/job_submit.h"
#include "common/proto/ledger.h"
#include "common/proto/node_report.h"
#include "common/proto/reservation.h"
#include "common/proto/secrets.h"
#include "common/proto/services.h"
#include "common/proto/tenancy.h"
#include "common/proto/tenancy_view.h"
#include "common/proto/tenant_events.h"
#include "common/proto/use.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"

namespace gantry::core::test {

// The words of a command: those of the form "key=value", and the others in order.
struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;
  mutable std::set<std::string> asked{};  // keys that a command has looked for
  [[nodiscard]] const std::string* find(const std::string& key) const {
    asked.insert(key);
    const auto it = named.find(key);
    return it == named.end() ? nullptr : &it->second;
  }
};
Words split_words(std::string_view line);

struct FakeNode {
  std::string name;
  bool beats = false;  // the node has registered and sends heartbeats
  std::uint64_t session = 0;
  std::string boot = "boot1";
  std::uint32_t cpus = 0;
  std::int64_t memory = 0;
  GpuInventory gpus;
  std::vector<std::string> layers_off;
  std::vector<SandboxFact> sandboxes;
  bool older = false;             // its daemon is of a release that knows of no abilities
  std::vector<std::string> gres;  // as the node declares them
  // the phase of each attempt, as the orders to the node demand it
  std::map<proto::AttemptKey, proto::AttemptPhase> attempts;
  JobId highest_job{};
};

std::vector<std::string> listed(const std::string& text);  // splits "a,b"
std::vector<std::string> hosts(const std::string& text);   // expands "n[1-3]"

class World {
 public:
  World();
  ~World();
  // Runs one command line and returns what it prints.
  std::string run(std::string_view line);
  // Rebuilds the state in every way and compares; returns "" or the difference.
  std::string check_recovery();

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] Instant now() const { return now_; }

  static void add_labels(const Words& w, JobSpec& spec);  // of a submit; world_rules.cc
  static void add_datasets(const Words& w, JobSpec& spec);

 private:
  void configure(const Words& w);  // the commands cluster, partition and set
  void start();
  void command(const std::string& verb, const Words& w);
  [[nodiscard]] proto::SubmitJob submit_message(const std::string& user, const Words& w) const;
  void submit_together(const std::string& user, std::string_view text);
  void change(const std::string& verb, const Words& w);
  void cancel(const Words& w);
  void update(const Words& w);
  void nodes_command(const Words& w);
  void partition_command(const Words& w);
  void list_partitions();
  void place(const Words& w);
  void plan();
  void step_command(const Words& w);
  void trigger(const std::string& verb, const Words& w);
  void wait(const Words& w);
  void restart();
  void accept_copy();
  void fold();
  [[nodiscard]] std::string recovery_from_store(const std::string& live) const;

  // These functions are in world_tenants.cc.
  // returns false if it has no such command
  bool tenants_command(const std::string& verb, const Words& w);
  void rollback(const Words& w);
  void add_domain(const Words& w);
  void print_changes(const std::vector<proto::DocumentChange>& changes);
  void print(const proto::TenancyPlanned& m);
  void print(const proto::UseReply& m);
  void print(const proto::TenancyDocuments& m);
  void print(const proto::TenancyHistoryReply& m);
  void print(const proto::TenantUsageReply& m);
  void print(const proto::PriorityTuplesReply& m);

  // These functions are in world_rules.cc.
  // returns false if it has no such command
  bool rules_command(const std::string& verb, const Words& w);
  void add_rules(const Words& w, tenancy::Tenant& tenant) const;
  void print(const proto::AccessReply& m);

  // These functions are in world_money.cc.
  // returns false if it has no such command
  bool money_command(const std::string& verb, const Words& w);
  void print(const proto::LedgerReply& m);
  void print(const proto::MeterReply& m);
  void print(const proto::BudgetList& m);
  void print(const proto::IncreaseReply& m);

  // These functions are in world_reservations.cc.
  // returns false if it has no such command
  bool reservations_command(const std::string& verb, const Words& w);
  void reserve(const Words& w);
  void note(const Words& w);
  void list_accounts();
  void print(const proto::ListReservationsReply& m);
  void print(const proto::TenantEventsReply& m);

  // These functions are in world_nodes.cc.
  void node_says(FakeNode& node, const Words& w);
  void register_node(FakeNode& node);
  void exit_report(FakeNode& node, const Words& w);
  void gpu_report(FakeNode& node, const Words& w);
  void idle_gpus(const std::string& text, proto::Heartbeat& beat) const;
  void sharing(const Words& w, proto::Heartbeat& beat) const;
  bool enroll_command(const std::string& verb, const Words& w);
  void print(const proto::EnrollmentList& m);
  bool secrets_command(const std::string& verb, const Words& w);
  void print(const proto::SecretList& m);
  void neighbours(const Words& w);  // neighbours alice 1

  // These functions are in world_services.cc.
  bool services_command(const std::string& verb, const Words& w);
  [[nodiscard]] proto::SyncGate gate_message(const Words& w) const;
  void print(const proto::GateTable& m);
  void print(const proto::ServiceList& m);
  void advance(Duration length);

  // These functions are in world_print.cc.
  void print(const Reply& reply);
  void print(Order& order);
  void queue(const Words& w);
  void show(const Words& w);
  void history();
  void list_nodes();

  void ask(const std::string& user, ClientMessage message);
  void step(Input input);
  void finish_turn();
  void line(std::string text) {
    while (text.ends_with(' ')) text.pop_back();
    out_ += text + "\n";
  }
  [[nodiscard]] Identity who(const std::string& name) const;
  [[nodiscard]] JobId job_id(const std::string& name) const;  // "3" or "3_1"
  [[nodiscard]] proto::AttemptKey key_of(const std::string& name) const;
  [[nodiscard]] std::string shown(JobId id) const;
  [[nodiscard]] std::string time_text(Instant t) const;  // "+1:30:00" since the beginning
  // reads "+90m", this long after now
  [[nodiscard]] Instant time_of(const std::string& text) const;

  Config config_;
  store::MemoryStore store_;
  std::optional<store::MemoryStore> copy_;  // a copy of the store at an earlier time
  bool accepted_ = false;  // a copy was accepted, so the journal does not hold all events
  std::unique_ptr<Core> core_;
  std::unique_ptr<sched::Replica> replica_;
  std::map<std::string, FakeNode> nodes_;
  std::map<std::string, std::uint32_t> uids_;
  Instant begin_, now_;
  std::optional<Instant> wake_;
  std::uint64_t next_request_ = 1;
  std::uint64_t ticket_ = 0;  // the ticket of the last FetchLog
  std::string out_;
  proto::ApplyTenancy pending_;                 // documents for the next apply
  std::string gate_;                            // the last gate that reported
  std::map<std::string, std::uint64_t> gates_;  // the revision of the table that each has
  bool quiet_ = false;                          // orders are not printed
};

Duration parse_length(const std::string& text);  // parses "90s", "10m", "2h"

}  // namespace gantry::core::test
