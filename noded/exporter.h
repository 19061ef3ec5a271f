// GET /metrics of a node, for Prometheus: its figures and those of its jobs (noded/metrics). A
// request needs a token from the file noded.metrics_tokens, as at the controller: a tenant's token
// shows the tenant's jobs and nothing else.
//
// The figures are read at a request, and are reused for further requests within a second.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/http/http_server.h"
#include "common/http/tokens.h"
#include "common/log/log.h"
#include "common/loop/loop.h"
#include "common/resources/gpu.h"
#include "config/config.h"
#include "noded/job_networks.h"
#include "noded/metrics/node_metrics.h"
#include "noded/runtime/runtime.h"
#include "noded/sampling/sampler.h"

namespace gantry::node {

// The port of this node's metrics, from noded.metrics_port; 0 = none.
Result<std::uint16_t> metrics_port(const Config& config, const std::string& node);

class Exporter {
 public:
  struct Parts {
    std::string node, host, tokens;
    std::uint16_t port = 0;
    sampling::SamplerOptions sampling;
    std::function<std::vector<runtime::RunningJob>()> running;
    std::function<std::vector<proto::GpuActivity>()> activity;
    std::function<GpuInventory()> inventory;  // may be empty
    JobNetworks* networks = nullptr;          // may be null
  };
  static Result<std::unique_ptr<Exporter>> open(Parts parts, loop::Loop& loop, const Logger& log);
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

 private:
  using Figures = std::shared_ptr<const metrics::NodeFigures>;
  Exporter(Parts parts, loop::Loop& loop);
  http::Response answer(const http::Request& request, const std::atomic<bool>& stopping);
  void read(const std::function<void(Figures)>& done);  // runs on the loop

  Parts parts_;
  loop::Loop& loop_;
  sampling::Sampler sampler_;
  http::Tokens tokens_;  // used by the server's thread only
  Figures last_;
  std::chrono::steady_clock::time_point read_at_;
  std::unique_ptr<http::Server> server_;  // destroyed first
};

// What watchers of a running job need to know about it.
std::vector<sampling::WatchedJob> watched(std::vector<runtime::RunningJob> running);

}  // namespace gantry::node
