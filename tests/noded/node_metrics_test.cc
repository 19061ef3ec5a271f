// The figures of a node and its jobs as text: what a tenant is told, and what is not.
#include <doctest/doctest.h>

#include "noded/exporter.h"
#include "noded/metrics/node_metrics.h"

using namespace gantry;

namespace {

metrics::NodeFigures figures() {
  metrics::NodeFigures out;
  out.node = "n1";
  out.sample.cpus = 8;
  out.sample.cpu = milliseconds(12'500);
  out.sample.memory_used = 1'000'000;
  out.sample.stalled = neighbours::Stalled{seconds(3), seconds(2), milliseconds(1)};
  out.sample.disks = {{"vda", seconds(5), 4096, 2}};
  out.sample.links = {{"eth0", neighbours::Direction::in, 700, 1, 1'000'000}};
  out.owners = {{{JobId(1), Attempt(1)}, {"fraud", "ann"}},
                {{JobId(2), Attempt(3)}, {"search", "bob \"the\" user"}},
                {{JobId(3), Attempt(1)}, {"", "root"}}};
  for (const auto& [key, owner] : out.owners) {
    neighbours::JobCount job;
    job.key = key;
    job.cpu = seconds(static_cast<std::int64_t>(key.job.value()));
    job.memory = 2048;
    job.memory_limit = 4096;
    job.stalled = neighbours::Stalled{milliseconds(1'250), {}, {}};
    job.disks = {{"vda", 512, 1, 0, false}};
    out.sample.jobs.push_back(job);
  }
  out.network.emplace();
  out.network->attempts[{JobId(1), Attempt(1)}] = {100, 2, 300, 4, 5};
  out.network->attempts[{JobId(2), Attempt(3)}] = {1, 1, 1, 1, 1};
  out.network->dropped = {{"denied", 5}, {"spoofed", 0}, {"to_node", 1}, {"unexpected", 0}};
  proto::GpuActivity gpu;
  gpu.key = {JobId(2), Attempt(3)};
  gpu.gpu = 1;
  gpu.name = "h100 1g.10gb";
  gpu.busy = 7;
  gpu.memory_mib = 3;
  gpu.power_w = 120;
  out.gpus = {gpu};
  GpuDevice device;
  device.index = 1;
  device.model = "h100";
  out.devices = {device};
  return out;
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("who may see everything gets the node, its jobs and what their network refused") {
  const std::string all = metrics::node_metrics(figures(), std::nullopt);
  CHECK(has(all, R"(gantry_node_jobs{node="n1"} 3)"));
  CHECK(has(all, R"(gantry_node_cpu_seconds_total{node="n1"} 12.500000)"));
  CHECK(has(all, R"(gantry_node_pressure_seconds_total{node="n1",resource="io"} 0.001000)"));
  CHECK(has(all, R"(gantry_node_disk_busy_seconds_total{node="n1",disk="vda"} 5.000000)"));
  CHECK(
      has(all, R"(gantry_node_link_bytes_total{node="n1",link="eth0",direction="received"} 700)"));
  CHECK(has(all, R"(gantry_node_network_dropped_packets_total{node="n1",cause="denied"} 5)"));
  CHECK(has(all, R"(gantry_node_gpu_faults{node="n1",gpu="1",model="h100"} 0)"));
  const std::string one = R"({node="n1",job="1",attempt="1",tenant="fraud",user="ann")";
  CHECK(has(all, "gantry_job_cpu_seconds_total" + one + "} 1.000000"));
  CHECK(has(all, "gantry_job_memory_limit_bytes" + one + "} 4096"));
  CHECK(has(all, "gantry_job_pressure_seconds_total" + one + R"(,resource="cpu"} 1.250000)"));
  CHECK(has(all, "gantry_job_network_bytes_total" + one + R"(,direction="sent"} 100)"));
  CHECK(has(all, "gantry_job_network_packets_total" + one + R"(,direction="received"} 4)"));
  CHECK(has(all, "gantry_job_network_refused_packets_total" + one + "} 5"));
  const std::string two =
      R"({node="n1",job="2",attempt="3",tenant="search",user="bob \"the\" user",gpu="1",)"
      R"(device="h100 1g.10gb"} )";
  CHECK(has(all, "gantry_job_gpu_busy_ratio" + two + "0.07"));
  CHECK(has(all, "gantry_job_gpu_memory_bytes" + two + "3145728"));
  CHECK(has(all, "gantry_job_gpu_power_watts" + two + "120"));
}

TEST_CASE("a tenant is told of its own jobs, and of nobody else's, not even in a sum") {
  const std::string own = metrics::node_metrics(figures(), "fraud");
  CHECK(own.find("gantry_node_") == std::string::npos);
  CHECK(own.find("search") == std::string::npos);
  CHECK(own.find("gpu") == std::string::npos);
  CHECK(own.find("job=\"3\"") == std::string::npos);
  CHECK(own.find("tenant=\"fraud\"") != std::string::npos);
  CHECK(metrics::node_metrics(figures(), "search").find("gantry_job_gpu_busy_ratio") !=
        std::string::npos);
  // A tenant does not see jobs without a tenant.
  CHECK(metrics::node_metrics(figures(), "").empty());
  CHECK(metrics::node_metrics(figures(), "nobody").empty());
}

TEST_CASE("nodes of one machine have their metrics on ports one behind the other") {
  Config config;
  for (const auto& [name, address] :
       {std::pair{"n1", "10.0.0.1:7000"}, {"n2", "10.0.0.2:7000"}, {"n3", "10.0.0.1:7001"}}) {
    NodeConfig node;
    node.name = name;
    node.address = address;
    config.nodes.push_back(node);
  }
  CHECK(*node::metrics_port(config, "n1") == 0);
  config.noded.metrics_port = 9100;
  CHECK(*node::metrics_port(config, "n1") == 9100);
  CHECK(*node::metrics_port(config, "n2") == 9100);
  CHECK(*node::metrics_port(config, "n3") == 9101);
  config.noded.metrics_port = 65535;
  CHECK(*node::metrics_port(config, "n1") == 65535);
  CHECK_FALSE(node::metrics_port(config, "n3"));
}
