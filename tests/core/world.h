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
#include <string>
#include <string_view>
#include <vector>

#include "ctld/core/core.h"
#include "ctld/core/state/state.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/store/memory_store.h"

namespace gantry::core::test {

// "key=value" words of a command, and the others in order.
struct Words {
  std::vector<std::string> plain;
  std::map<std::string, std::string> named;
  [[nodiscard]] const std::string* find(const std::string& key) const {
    const auto it = named.find(key);
    return it == named.end() ? nullptr : &it->second;
  }
};
Words split_words(std::string_view line);

struct FakeNode {
  std::string name;
  bool beats = false;  // registered, and sends heartbeats
  std::uint64_t session = 0;
  std::string boot = "boot1";
  std::uint32_t cpus = 0;
  std::int64_t memory = 0;
  GpuInventory gpus;
  std::vector<std::string> layers_off;
  std::vector<std::string> gres;                              // as declared
  std::map<proto::AttemptKey, proto::AttemptPhase> attempts;  // by the orders it got
  JobId highest_job{};
};

std::vector<std::string> listed(const std::string& text);  // "a,b"
std::vector<std::string> hosts(const std::string& text);   // "n[1-3]"

class World {
 public:
  World();
  ~World();
  // One command line; what it prints.
  std::string run(std::string_view line);
  // Rebuilds the state in every way and compares; "" or what differs.
  std::string check_recovery();

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  void configure(const Words& w);  // cluster, partition, set
  void start();
  void command(const std::string& verb, const Words& w);
  [[nodiscard]] proto::SubmitJob submit_message(const std::string& user, const Words& w) const;
  void submit_together(const std::string& user, std::string_view text);
  void change(const std::string& verb, const Words& w);
  void cancel(const Words& w);
  void update(const Words& w);
  void nodes_command(const Words& w);
  void place(const Words& w);
  void plan();
  void step_command(const Words& w);
  void trigger(const std::string& verb, const Words& w);
  void wait(const Words& w);
  void restart();
  void accept_copy();
  void fold();
  [[nodiscard]] std::string recovery_from_store(const std::string& live) const;

  // world_tenants.cc
  bool tenants_command(const std::string& verb, const Words& w);  // false: it is none
  void rollback(const Words& w);
  void add_domain(const Words& w);
  void print_changes(const std::vector<proto::DocumentChange>& changes);
  void print(const proto::TenancyPlanned& m);
  void print(const proto::TenancyDocuments& m);
  void print(const proto::TenancyHistoryReply& m);
  void print(const proto::TenantUsageReply& m);
  void print(const proto::PriorityTuplesReply& m);

  // world_money.cc
  bool money_command(const std::string& verb, const Words& w);  // false: it is none
  void print(const proto::LedgerReply& m);
  void print(const proto::MeterReply& m);
  void print(const proto::BudgetList& m);
  void print(const proto::IncreaseReply& m);

  // world_reservations.cc
  bool reservations_command(const std::string& verb, const Words& w);  // false: it is none
  void reserve(const Words& w);
  void list_accounts();
  void print(const proto::ListReservationsReply& m);
  void print(const proto::TenantEventsReply& m);

  // world_nodes.cc
  void node_says(FakeNode& node, const Words& w);
  void register_node(FakeNode& node);
  void exit_report(FakeNode& node, const Words& w);
  void gpu_report(FakeNode& node, const Words& w);
  void idle_gpus(const std::string& text, proto::Heartbeat& beat) const;
  void advance(Duration length);

  // world_print.cc
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
  [[nodiscard]] std::string time_text(Instant t) const;          // "+1:30:00" after the beginning
  [[nodiscard]] Instant time_of(const std::string& text) const;  // "+90m"

  Config config_;
  store::MemoryStore store_;
  std::optional<store::MemoryStore> copy_;  // of an earlier time
  bool accepted_ = false;                   // a copy: not all that is stored is in the journal
  std::unique_ptr<Core> core_;
  std::unique_ptr<sched::Replica> replica_;
  std::map<std::string, FakeNode> nodes_;
  std::map<std::string, std::uint32_t> uids_;
  Instant begin_, now_;
  std::optional<Instant> wake_;
  std::uint64_t next_request_ = 1;
  std::uint64_t ticket_ = 0;  // of the last FetchLog
  std::string out_;
  proto::ApplyTenancy pending_;  // documents for the next apply
  bool quiet_ = false;           // orders are not printed
};

Duration parse_length(const std::string& text);  // "90s", "10m", "2h"

}  // namespace gantry::core::test
