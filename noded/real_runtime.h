// Runs attempts in containers on this machine: carries out the node core's actions through
// gantry::runtime, and opens a job socket for every attempt that lives.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "common/log/log.h"
#include "config/config.h"
#include "noded/checkpoint_watch.h"
#include "noded/gpu/node/gpus.h"
#include "noded/gpu/node/gres.h"
#include "noded/job_networks.h"
#include "noded/job_secrets.h"
#include "noded/net/job_sockets.h"
#include "noded/runtime/runtime.h"
#include "noded/seam.h"

namespace gantry::node {

struct RealRuntimeOptions {
  std::string cluster;
  std::string node;
  NodedConfig config;
  Gpus* gpus = nullptr;  // nullptr in tests
  const Gres* gres = nullptr;
  JobNetworks* networks = nullptr;  // nullptr in tests
  // Set if the node has more CPUs than its machine: the machine's CPUs that stand for the node's.
  // Empty: CPU n is CPU n.
  std::vector<std::uint16_t> shared_cpus;
  // Numeric addresses of the cluster's nodes, by name; only of nodes with an address in the
  // configuration.
  std::map<std::string, std::string> addresses;
  // Called with an event that an action produces between two turns.
  std::function<void(Input&&)> on_event;
};

// The request of one launch to the runtime; the function is pure.
runtime::LaunchRequest launch_request(const proto::Launch& launch,
                                      const RealRuntimeOptions& options,
                                      const std::string& job_socket);

class RealRuntime final : public AttemptRuntime {
 public:
  RealRuntime(std::unique_ptr<runtime::Runtime> runtime, RealRuntimeOptions options,
              JobSockets& sockets, loop::Loop& loop, const Logger& log);

  [[nodiscard]] std::string name() const override { return runtime_->probe().runtime; }
  [[nodiscard]] std::vector<std::string> layers_off() const override {
    return runtime_->probe().layers_off;
  }
  std::vector<Recovered> recover() override;
  void act(Instant now, Action&& action, std::vector<Input>& events) override;
  [[nodiscard]] int descriptor() const override { return runtime_->fd(); }
  void poll(Instant now, std::vector<Input>& events) override;
  [[nodiscard]] std::string trouble() const override { return runtime_->trouble(); }
  [[nodiscard]] std::vector<proto::AttemptCheckpoint> checkpoints(Instant now) const override {
    return checkpoints_.newest(now);
  }
  [[nodiscard]] std::vector<proto::AttemptSleep> asleep() const override {
    return runtime_->asleep();
  }
  [[nodiscard]] std::vector<proto::AttemptUsage> usage() const override {
    return runtime_->usage();
  }
  [[nodiscard]] std::vector<proto::GpuActivity> gpu_activity() const override {
    if (options_.gpus == nullptr) return {};
    return options_.gpus->activity();
  }

  // Called when a step ends, which the core does not handle.
  std::function<void(const runtime::RuntimeEvent&)> on_step_ended;
  [[nodiscard]] runtime::Runtime& runtime() { return *runtime_; }
  // The path of the job's socket, as programs of the job see it.
  [[nodiscard]] std::string socket_seen_by_job(const AttemptKey& key) const;

 private:
  void begin(proto::Launch& launch);
  Result<void> write_secrets(proto::Launch& launch, runtime::LaunchRequest& request);
  Result<void> prepare_gres(const NodePlacement& here, runtime::LaunchRequest& request) const;
  void probe(const proto::ProbeAttempt& asked);
  void connect(const AttemptKey& key, Result<runtime::LaunchRequest>&& prepared);
  void begin_prepared(const AttemptKey& key, const Result<runtime::LaunchRequest>& request);
  bool give_up(const AttemptKey& key, std::vector<Input>& events);
  void end(const AttemptKey& key, Exit exit, std::vector<Input>& events);
  void resume(const AttemptKey& key, std::vector<Input>& events);
  void signal(const Signal& action, std::vector<Input>& events);
  void watch_checkpoints(const runtime::LaunchRequest& request);
  void open_socket(const AttemptKey& key, Uid owner);
  void check(const char* what, const AttemptKey& key, const Result<void>& result);

  std::unique_ptr<runtime::Runtime> runtime_;
  RealRuntimeOptions options_;
  JobSockets& sockets_;
  CheckpointWatch checkpoints_;
  JobSecrets secrets_;
  // Attempts whose GPUs or network are being prepared; nothing of them is on disk yet.
  std::set<AttemptKey> preparing_;
  const Logger& log_;
};

}  // namespace gantry::node
