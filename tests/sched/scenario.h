// Scenarios as text: a cluster, what runs, a queue, and the plan that follows, on one screen.
//
// A file is a list of blocks: commands, a line "----", and what the plan then says, up to an empty
// line. Starts of a block are facts in the next one. '#' begins a comment. Commands:
//
//   node n[1-4] cpus=8 mem=16G scratch=0 gpus=2 sockets=2 features=big,fast [down]
//   partition batch nodes=n[1-4] priority=1 mem_per_cpu=1G [exclusive] [down]
//   run 1 on=n1:0-3,n2:0-1 mem=1G ends=60 [exclusive]       ends: seconds, or never
//   queue 10 in=batch n=4 c=1 N=1 [N=1-3] [per_node=2] [mem=1G | mem_per_cpu=1G] [scratch=1G]
//         [gpus=1] [C=big&fast] [w=n1] [x=n2] [exclusive] [limit=60 | limit=never] [prio=0]
//         [since=0] [startable=1]
//   unqueue 10;  end 1 [node=n1];  limit 1 ends=60;  now 30
//   policy reservations=1 depth=1000 estimates=0 attempts=100000 starts=100
//   fits ...                                                as queue: prints what a submit is told
//
// An element of array 14 that starts with 3 left is job 14003, the last one job 14.
// Times are seconds since the scenario's beginning.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ctld/sched/schedule.h"

namespace gantry::sched {

class Scenario {
 public:
  // Runs a block's commands and its plan; the text that belongs under its line.
  std::string run(const std::vector<std::string>& commands);

 private:
  struct Words;
  void command(const std::string& line);
  void node(Words& w);
  void partition(Words& w);
  void place(Words& w);
  void queue(Words& w, bool only_check);
  void policy(Words& w);
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
};

// Runs a file's text; the same text with what the plans really say.
std::string run_scenarios(const std::string& text);

}  // namespace gantry::sched
