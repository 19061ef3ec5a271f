// The GPUs of this node, for the daemon: which there are, which devices a job gets, and their
// faults. It runs on the loop's thread, which calls of the driver never block: gpu_work.h makes
// those calls on a thread of their own. When the driver has not answered for a while, GPUs without
// a job are closed with the cause gpu-no-answer; running jobs continue, and so does all other work
// of the daemon.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/loop/loop.h"
#include "config/config.h"
#include "noded/gpu/driver_thread.h"
#include "noded/gpu/node/gpu_work.h"

namespace gantry::node {

// Replaces %n in the text by the node's name, because several nodes may run on one machine.
std::string for_node(std::string text, const std::string& node);

struct GpuTimes {
  Duration check = seconds(10);    // time between two checks
  Duration proof = seconds(60);    // a GPU returns into service after this time without a fault
  Duration silence = seconds(20);  // the driver counts as dead after this time without an answer
  Duration sample = seconds(5);    // time between two samples of what jobs use
  Duration patience = seconds(5);  // time for a process that should have left a GPU
};

class Gpus {
 public:
  // On a node without GPUs, or whose driver does not answer within `silence`, the inventory is
  // empty and has the reason. `bin_dir` is where gantry-gpu-scrub is.
  Gpus(const NodedConfig& config, const NodeConfig& node, const std::string& boot_id,
       const std::string& bin_dir, loop::Loop& loop, const Logger& log, GpuTimes times = {});
  ~Gpus();
  Gpus(const Gpus&) = delete;
  Gpus& operator=(const Gpus&) = delete;

  // The inventory with the known faults, as reported to the controller.
  [[nodiscard]] const GpuInventory& inventory() const { return told_; }
  // Majors of device files that only jobs with GPUs may open.
  [[nodiscard]] std::vector<std::uint32_t> majors() const;

  // Adds device files and variables for a job that was given these. `done` is called once: at once
  // for a job without GPUs, otherwise in a later turn of the loop; an error is the node's fault.
  // After released() it is not called any more.
  using Prepared = std::function<void(Result<runtime::LaunchRequest>&&)>;
  void prepare(const AttemptKey& key, const std::vector<GpuGrant>& grants,
               runtime::LaunchRequest request, Prepared done);
  // Adds a running attempt of an earlier daemon; it has the devices that its order names.
  void recovered(const AttemptKey& key, const runtime::LaunchRequest& request);
  // Call finish() when nothing of the job runs any more. `done` gets the job's use of its devices;
  // it is called at once if the job has none. The devices are checked before another job gets them.
  using Finished = std::function<void(std::vector<GpuUsage>&&)>;
  void finish(const AttemptKey& key, Finished done);
  void released(const AttemptKey& key);
  // An administrator has declared that the GPU with this UUID works again, so faults that had to be
  // proved gone are dropped. If a check still finds a problem, the GPU is closed again.
  void declared_well(const std::string& uuid);
  // What jobs used at the last sample.
  [[nodiscard]] const std::vector<proto::GpuActivity>& activity() const { return activity_; }

  // From here on `changed` gets every inventory that differs from the one before. A fault that ends
  // jobs and leaves the GPU in service is reported twice: once with the fault and once without.
  void watch(std::function<void(const GpuInventory&)> changed);

 private:
  struct Sticky {  // a fault from an event: it stays until the GPU is proved to work
    GpuFault fault;
    std::optional<Instant> well_since;
    std::optional<Instant> tried;  // when a handover last tried to end the fault
  };
  using Faults = std::vector<GpuFault>;

  // gpus_between_jobs.cc
  struct Waiting {  // a job that waits until its devices have been checked
    AttemptKey key;
    std::vector<GpuGrant> grants;
    runtime::LaunchRequest request;
  };
  void open_handover(const NodedConfig& config, const std::string& bin_dir);
  void admit();
  [[nodiscard]] bool prepares_on(std::uint32_t gpu) const;
  void start_preparing(Waiting&& one);
  void prepared(const AttemptKey& key, Result<GpuPrepared>&& made);
  void handed(const AttemptKey& key, runtime::LaunchRequest&& request,
              const std::vector<HandedDevice>& devices, GpuHandover::Outcome&& outcome);
  void fail_preparing(const AttemptKey& key, const Error& why);
  void finished(const AttemptKey& key, std::vector<GpuUsage>&& usage,
                std::vector<HandedDevice>&& devices);
  void take_faults(std::vector<GpuHandover::Fault>&& faults);
  void repair(const GpuDevice& gpu, bool well, Instant now);
  void repaired(const HandedDevice& device, const GpuFault& fault, GpuHandover::Outcome&& outcome);
  [[nodiscard]] bool is_memory_of(const HandedDevice& device, const std::string& owner) const;
  void set_memory_of(const HandedDevice& device, const std::string& owner);
  void watch_use();

  void load(const std::string& boot_id);
  void read_log();
  void post(std::function<void(GpuWork&)> work) {
    thread_->post([owner = work_, work = std::move(work)] { work(*owner); });
  }
  void saw(GpuSight&& sight);
  void take_checks(std::vector<Faults>&& checks, Instant now);
  void prove(const GpuDevice& gpu, bool well, Instant now);
  void take_event(const gpu::GpuEvent& event);
  void add_sticky(const std::string& uuid, const GpuFault& fault);
  void listen();
  [[nodiscard]] GpuInventory with_faults() const;
  [[nodiscard]] bool is_held(const GpuDevice& gpu) const;
  void tell();
  void remember();
  void look_out();

  loop::Loop& loop_;
  const Logger& log_;
  const GpuTimes times_;
  std::string node_, state_dir_;
  gpu::Roots roots_;
  std::shared_ptr<gpu::Outlet> outlet_;
  std::shared_ptr<GpuWork> work_;  // null: the node must have no GPUs
  std::unique_ptr<gpu::DriverThread> thread_;

  GpuInventory seen_;                     // inventory of the last look
  GpuInventory told_;                     // seen_ with the faults added, as reported
  gpu::KnownGpus known_;                  // as stored on disk
  std::map<std::string, Faults> checks_;  // faults of the last check, by UUID of the GPU
  std::map<std::string, std::vector<Sticky>> sticky_;       // by UUID of the GPU
  std::map<AttemptKey, std::vector<std::string>> held_;     // UUIDs of GPUs and slices
  std::map<AttemptKey, std::vector<std::uint16_t>> given_;  // indexes of GPUs
  std::map<AttemptKey, Prepared> preparing_;
  std::vector<Waiting> waiting_;
  std::map<AttemptKey, Finished> finishing_;
  // Results of the handover, kept until the job begins.
  std::map<AttemptKey, std::vector<runtime::LaunchGpu>> handed_;
  std::vector<proto::GpuActivity> activity_;
  bool sample_posted_ = false;
  std::optional<Instant> silent_since_;
  bool check_posted_ = false;
  std::function<void(const GpuInventory&)> changed_;
  loop::Watch checks_timer_, silence_timer_, samples_timer_;
  std::unique_ptr<GpuHandover> handover_;
};

}  // namespace gantry::node
