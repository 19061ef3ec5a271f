// The shipped controller and planner, with nodes that start jobs after a while, and a gate that
// reports a simulated queue.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/proto/attempt.h"
#include "common/proto/gate.h"
#include "common/proto/job_submit.h"
#include "ctld/core/core.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/sched/cycle/replica.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"

namespace gantry::services_test {

struct ClusterSize {
  std::uint32_t nodes = 0, cores = 0;  // of each node
  bool whole_grace = false;            // jobs that are told to end take all the time that they have
  Duration start{};                    // from the order until a replica answers its probe
};

class Cluster {
 public:
  Cluster(const ClusterSize& size, std::vector<tenancy::Document> documents);
  ~Cluster();

  // A second passes: nodes do what is due, the planner plans, the gate reports.
  void second(std::vector<proto::GateSample> samples,
              const std::map<std::string, Duration>& service_times);
  // Replicas of each service that take requests now, and those that hold a place.
  [[nodiscard]] std::map<std::string, std::uint32_t> ready() const;
  [[nodiscard]] std::map<std::string, std::uint32_t> held() const;
  [[nodiscard]] std::uint64_t starts() const { return starts_; }
  [[nodiscard]] const core::Core& core() const { return *core_; }
  [[nodiscard]] Instant now() const { return now_; }
  // Submits a job of a batch tenant; returns its id.
  JobId submit(const std::string& user, std::uint32_t uid, proto::SubmitJob job);
  void end(JobId job);  // its script ends by itself

 private:
  struct Running {
    std::string node;
    Instant ready{};
  };
  core::Identity who(const std::string& user, std::uint32_t uid) const;
  void step(core::Input input);
  void take(core::Turn turn);
  void carry_out(core::Order& order);
  void exit_of(const std::string& node, const proto::AttemptKey& key);

  ClusterSize size_;
  Config config_;
  std::unique_ptr<core::Core> core_;
  store::MemoryStore store_;
  std::unique_ptr<sched::Replica> replica_;
  std::map<std::string, std::uint64_t> sessions_;
  std::map<proto::AttemptKey, Running> running_;
  struct Exit {
    Instant at{};
    std::string node;
    proto::AttemptKey key;
  };
  std::vector<Exit> exits_;
  std::vector<std::pair<std::string, proto::AttemptKey>> started_;
  std::vector<core::ReplyMessage> replies_;
  proto::GateTable table_;
  std::uint64_t request_ = 0, starts_ = 0;
  Instant now_{hours(500'000).us};
  bool plan_ = false;
};

}  // namespace gantry::services_test
