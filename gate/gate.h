// gantry-gate: configures HAProxy from the controller's table of services, probes replicas, counts
// requests, and reports to the controller.
//
//   controller <-- Link ---- Gate --> haproxy.h --> HAProxy's processes
//                             ^ ^                        |
//                 prober.h ---+ +---- LogReader <---------+
//
// Its decisions are in plan/, which is pure.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/proto/gate.h"
#include "common/result.h"
#include "config/config.h"
#include "gate/haproxy.h"
#include "gate/plan/samples.h"
#include "gate/prober.h"

namespace gantry::gate {

// The gate as a client of the controller: it sends its counters and gets the table of services, on
// its own thread, because a request may take seconds.
class Link {
 public:
  // The answer is handed over in a turn of the loop.
  using OnAnswer = std::function<void(Result<proto::GateTable>&&)>;
  Link(loop::Loop& loop, OnAnswer on_answer);
  ~Link();  // waits for the question that is under way
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool is_free() const { return !busy_; }
  void ask(proto::SyncGate&& question);  // only while is_free()

 private:
  void run();

  loop::Loop& loop_;
  OnAnswer on_answer_;
  bool busy_ = false;  // used by the loop's thread
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<proto::SyncGate> question_;
  bool ends_ = false;
  std::thread thread_;
};

class Gate {
 public:
  static Result<std::unique_ptr<Gate>> open(const GateConfig& config, const std::string& table_file,
                                            loop::Loop& loop, const Logger& log);
  void stop(std::function<void()> done) { haproxy_->stop(std::move(done)); }

 private:
  Gate(const GateConfig& config, std::string table_file, loop::Loop& loop, const Logger& log)
      : config_(config),
        fixed_table_(std::move(table_file)),
        loop_(loop),
        log_(log),
        prober_(loop) {}
  Result<void> prepare();
  void line(std::string_view text);
  void look();
  void note_taken_in();
  void sync();
  void answered(Result<proto::GateTable>&& answer);
  void take_table(proto::GateTable&& table);
  void keep_table();
  void read_fixed_table();
  Result<void> write_keys();
  void adopt_health();
  void probe();
  void probe_one(const proto::GateService& service, const proto::GateReplica& replica);
  void changed(const proto::AttemptKey& key, proto::ReplicaHealth before);
  void weigh();
  void reconcile();
  [[nodiscard]] proto::SyncGate question();

  const GateConfig& config_;
  std::string fixed_table_;  // a file used instead of the controller; "" = none
  loop::Loop& loop_;
  const Logger& log_;
  Prober prober_;
  std::unique_ptr<LogReader> reader_;
  std::unique_ptr<Haproxy> haproxy_;
  std::unique_ptr<Link> link_;
  proto::GateTable table_;
  bool has_table_ = false;
  std::map<proto::AttemptKey, Probed> replicas_;
  std::map<proto::AttemptKey, std::uint32_t> weights_;
  std::map<proto::AttemptKey, std::uint32_t> running_;
  std::vector<TokenKey> keys_;
  std::string known_keys_;  // the text from which keys_ was made
  Samples samples_;
  std::vector<proto::GateSample> sent_;
  std::map<std::string, proto::GateSample> totals_;  // by TENANT:NAME:VERSION, for metrics
  bool ask_soon_ = false;
  bool away_ = false;  // the controller
  Instant next_sync_{}, next_weights_{};
  std::string fixed_text_;
  std::vector<loop::Watch> timers_;
};

}  // namespace gantry::gate
