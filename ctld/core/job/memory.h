// JobMemory: requests about jobs that wait for an answer, and facts about jobs that only texts and
// the scheduler's replica need; a restart empties it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/types.h"
#include "ctld/core/core.h"
#include "ctld/core/job/run_habits.h"

namespace gantry::core {

struct Wait {
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  std::vector<JobId> jobs;
  bool until_started = false;
  bool notices = false;  // the request also returns what NotifyJobs tells an allocation
  // How many jobs at the front of `jobs` had ended (or started) at the last look.
  std::size_t reached = 0;
};

struct Waited {  // counts of what one user waits for
  std::size_t requests = 0, jobs = 0;
};

struct LogRequest {
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  JobId job{};
  std::uint64_t offset = 0;
  std::string path;
  NodeId node{};
};

struct ProbeRequest {  // a ProbeNetwork that waits for its node's answer
  ConnectionId connection;
  std::uint64_t request = 0;
  Uid uid{};
  JobId job{};
  NodeId node{};
};

struct JobMemory {
  std::uint64_t next_wait = 1;
  std::map<std::uint64_t, Wait> waits;
  std::unordered_map<JobId, std::vector<std::uint64_t>> waits_of;
  std::unordered_map<ConnectionId, std::vector<std::uint64_t>> waits_from;
  std::unordered_map<Uid, Waited> waited_by;

  std::uint64_t next_ticket = 1;
  std::map<std::uint64_t, LogRequest> logs;
  std::map<std::uint64_t, ProbeRequest> probes;

  RunHabits habits;           // of users' run times, for texts only
  std::set<JobId> suspended;  // suspended jobs: the scheduler does not know their end
};

}  // namespace gantry::core
