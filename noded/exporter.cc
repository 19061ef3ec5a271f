#include "noded/exporter.h"

#include <fmt/core.h>

#include <future>

#include "common/proto/meeting_point.h"

namespace gantry::node {
namespace {

constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::seconds kMostWait{5};
constexpr std::chrono::seconds kAge{1};  // figures that are younger are not read again

http::Response refusal(int status, std::string text) {
  return {status, "text/plain; charset=utf-8", std::move(text) + "\n"};
}

}  // namespace

std::vector<sampling::WatchedJob> watched(std::vector<runtime::RunningJob> running) {
  std::vector<sampling::WatchedJob> out;
  for (runtime::RunningJob& job : running)
    out.push_back({job.key, std::move(job.cgroup), std::move(job.cpus), job.memory,
                   std::move(job.network_sys), job.network_rate / 8, job.io_rate});
  return out;
}

// Nodes on one machine have consecutive ports, in the order of the file.
Result<std::uint16_t> metrics_port(const Config& config, const std::string& node) {
  if (config.noded.metrics_port == 0) return 0;
  std::string host;
  for (const NodeConfig& one : config.nodes)
    if (one.name == node) host = host_of(one.address);
  std::uint32_t port = config.noded.metrics_port;
  for (const NodeConfig& one : config.nodes) {
    if (one.name == node) break;
    if (!host.empty() && host_of(one.address) == host) ++port;
  }
  if (port > 65535)
    return fail(ErrorCode::invalid_argument,
                fmt::format("noded.metrics_port is {}, and no port is left for the metrics of {}",
                            config.noded.metrics_port, node));
  return static_cast<std::uint16_t>(port);
}

Exporter::Exporter(Parts parts, loop::Loop& loop)
    : parts_(std::move(parts)), loop_(loop), sampler_(parts_.sampling), tokens_(parts_.tokens) {}

Result<std::unique_ptr<Exporter>> Exporter::open(Parts parts, loop::Loop& loop, const Logger& log) {
  ASSIGN(listening, http::listen_on(parts.host, parts.port));
  std::unique_ptr<Exporter> out(new Exporter(std::move(parts), loop));
  out->server_ = std::make_unique<http::Server>(
      std::move(*listening),
      [exporter = out.get()](const http::Request& request, const std::atomic<bool>& stopping) {
        return exporter->answer(request, stopping);
      });
  log.info("metrics", {{"address", fmt::format("{}:{}", out->parts_.host, out->server_->port())}});
  return out;
}

// Runs on the server's thread.
http::Response Exporter::answer(const http::Request& request, const std::atomic<bool>& stopping) {
  if (request.path != "/metrics") return refusal(404, "there is /metrics");
  const auto scope = tokens_.scope_of(request.token);
  if (!scope) return refusal(503, scope.error().message);
  if (!*scope) return refusal(401, "a token is needed: Authorization: Bearer TOKEN");
  // The promise is shared, because either the loop or the waiting thread may be the last to use it.
  auto made = std::make_shared<std::promise<Figures>>();
  std::future<Figures> figures = made->get_future();
  loop_.post([this, made] { read([made](Figures read) { made->set_value(std::move(read)); }); });
  const auto until = std::chrono::steady_clock::now() + kMostWait;
  while (!stopping && std::chrono::steady_clock::now() < until)
    if (figures.wait_for(kLook) == std::future_status::ready)
      return {200, "text/plain; version=0.0.4; charset=utf-8",
              metrics::node_metrics(*figures.get(), (*scope)->tenant)};
  return refusal(503, "the node daemon is busy; ask again");
}

void Exporter::read(const std::function<void(Figures)>& done) {
  const auto now = std::chrono::steady_clock::now();
  if (last_ && now - read_at_ < kAge) return done(last_);
  auto figures = std::make_shared<metrics::NodeFigures>();
  figures->node = parts_.node;
  auto running = parts_.running();
  for (const runtime::RunningJob& job : running) figures->owners[job.key] = {job.tenant, job.user};
  sampler_.watch(watched(std::move(running)));
  figures->sample = sampler_.read(Instant{});
  figures->gpus = parts_.activity();
  if (parts_.inventory) figures->devices = parts_.inventory().gpus;
  const auto keep = [this, figures, done] {
    last_ = figures;
    read_at_ = std::chrono::steady_clock::now();
    done(figures);
  };
  if (parts_.networks == nullptr) return keep();
  parts_.networks->count([figures, keep](Result<network::Fabric::Counts>&& counts) {
    if (counts) figures->network = std::move(*counts);
    keep();
  });
}

}  // namespace gantry::node
