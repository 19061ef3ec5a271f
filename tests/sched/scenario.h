// Scenarios as text: a cluster, what runs, a queue, and the plan that follows, on one screen.
//
// A file is a list of blocks: commands, a line "----", and the resulting plan, up to an empty line.
// Starts of a block are facts in the next one. '#' begins a comment. Commands:
//
//   node n[1-4] cpus=8 mem=16G scratch=0 gpus=2 sockets=2 features=big,fast [shares] [down]
//   partition batch nodes=n[1-4] priority=1 mem_per_cpu=1G [exclusive] [down]
//   run 1 on=n1:0-3,n2:0-1 mem=1G ends=60 [exclusive]       ends: seconds, or never
//         [part=0:500]                                     500 thousandths of GPU 0
//   queue 10 in=batch n=4 c=1 N=1 [N=1-3] [per_node=2] [mem=1G | mem_per_cpu=1G] [scratch=1G]
//         [gpus=1 | part=500] [C=big&fast] [w=n1] [x=n2] [exclusive] [limit=60 | limit=never]
//         [prio=0] [since=0] [startable=1]
//   unqueue 10;  end 1 [node=n1];  limit 1 ends=60;  now 30
//   policy reservations=1 depth=1000 estimates=0 attempts=100000 starts=100 ahead=0 replans=100
//         promises=off quota=on fair_share=on preemption=on balance=off
//   fits ...                                                as queue: prints what a submit is told
//
// Lines for tenants (scenario_tenancy.cc); `partition ... tenant=fraud` names the tenant of a
// partition:
//   flavor a100 [gpu=1]                                      charge per second of a GPU
//   class high value=1000 [preempts] [keeps] [grace=30] [min_run=60] [most=2]
//   cohort all [in=parent] [gpu=8] [gpu.borrow=4] [gpu.lend=2] [gpu@a100=8] [cpu=..] [weight=1]
//   tenant fraud in=all gpu=8 ... [jobs=10] [reclaim=never]
//   share alice of=fraud shares=1 usage=100 rate=0           a tenant's root has no of=
//   reserve r1 nodes=n1 from=100 until=200 [maintenance] [gone]
//   node ... flavor=a100;  queue ... class=high rank=1000 user=alice reservation=r1
//   run ... in=fraud user=alice class=high started=0 [leaving]
//
// An element of array 14 that starts with 3 left is job 14003, the last one job 14. Times are
// seconds since the scenario's beginning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/sched/cycle/schedule.h"

namespace gantry::sched {

// The words of a command: a name, key=value pairs, and flags.
struct ScenarioWords {
  explicit ScenarioWords(const std::string& line);
  ~ScenarioWords();  // asserts that every word was used
  std::optional<std::string> take(const std::string& key);
  bool flag(const std::string& key) { return take(key).has_value(); }
  std::int64_t number_or(const std::string& key, std::int64_t otherwise);
  std::optional<std::int64_t> memory(const std::string& key);
  bool on(const std::string& key, bool otherwise);  // key=on, key=off

  std::string name, first;
  std::map<std::string, std::string> values;
};
std::int64_t scenario_number(const std::string& text);

class Scenario {
 public:
  Scenario() {
    tenancy_.flavors.resize(1);
    tenancy_.classes.resize(1);
  }
  // Runs a block's commands and its plan; returns the text that belongs under its line.
  std::string run(const std::vector<std::string>& commands);

 private:
  using Words = ScenarioWords;
  void command(const std::string& line);
  void node(Words& w);
  void partition(Words& w);
  void place(Words& w);
  void queue(Words& w, bool only_check);
  void policy(Words& w);
  bool tenancy_command(Words& w);  // returns false if there is no such command
  void quota_node(Words& w, bool tenant);
  void share(Words& w);
  void reserve(Words& w);
  void tell_tenancy();  // tells the scheduler the tenancy before a plan, if it has changed
  std::uint32_t flavor_named(const std::string& name);
  std::uint32_t class_named(const std::string& name);
  ShareId share_named(const std::string& name);
  std::string print(const Plan& plan);
  std::string print(const Verdict& v);
  std::string names(const std::vector<NodeId>& nodes);
  NodeId node_id(const std::string& name);

  Replica replica_;
  Policy policy_;
  Instant now_{};
  std::map<std::string, NodeChanged> nodes_;
  std::vector<std::string> node_names_;
  std::map<std::string, PartitionChanged> partitions_;
  std::map<JobId, JobQueued> waiting_;
  std::map<JobId, JobPlaced> placed_;
  std::string printed_;
  Tenancy tenancy_;
  bool tenancy_changed_ = false;
  std::map<std::string, std::uint32_t> quota_nodes_, flavors_, classes_;
  std::map<std::string, ShareChanged> shares_;
};

// Runs the scenarios of a file's text, and returns that text with the real plans.
std::string run_scenarios(const std::string& text);

}  // namespace gantry::sched
