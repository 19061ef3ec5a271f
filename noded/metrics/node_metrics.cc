#include "noded/metrics/node_metrics.h"

#include <fmt/core.h>

#include <cstdlib>
#include <list>

#include "common/metrics/families.h"

namespace gantry::metrics {
namespace {

std::string seconds_of(Duration d) {
  return fmt::format("{}.{:06}", d.us / 1'000'000, std::abs(d.us % 1'000'000));
}

std::string join(std::string one, const std::string& other) {
  return other.empty() ? one : std::move(one) + "," + other;
}

// Families in the order in which they are declared.
class Page {
 public:
  Family& family(std::string name, std::string_view type, std::string_view help) {
    return families_.emplace_back(std::move(name), type, help);
  }
  [[nodiscard]] std::string text() const {
    std::string out;
    for (const Family& one : families_) out += one.text();
    return out;
  }

 private:
  std::list<Family> families_;
};

constexpr std::string_view kCounter = "counter", kGauge = "gauge";

void add_pressure(Family& to, const std::string& labels,
                  const std::optional<neighbours::Stalled>& stalled) {
  if (!stalled) return;
  for (const auto& [resource, time] :
       {std::pair{"cpu", stalled->cpu}, {"memory", stalled->memory}, {"io", stalled->io}})
    to.add(join(labels, label("resource", resource)), seconds_of(time));
}

void add_node(Page& page, const NodeFigures& f) {
  const neighbours::Sample& s = f.sample;
  const std::string node = label("node", f.node);
  page.family("gantry_node_jobs", kGauge, "Jobs that run on the node.")
      .add(node, std::to_string(f.owners.size()));
  page.family("gantry_node_cpus", kGauge, "Processors of the machine.")
      .add(node, std::to_string(s.cpus));
  page.family("gantry_node_cpu_seconds_total", kCounter, "Processor time of all processes.")
      .add(node, seconds_of(s.cpu));
  page.family("gantry_node_memory_used_bytes", kGauge, "Memory that is not available.")
      .add(node, std::to_string(s.memory_used));
  add_pressure(page.family("gantry_node_pressure_seconds_total", kCounter,
                           "Time in which somebody waited for the resource."),
               node, s.stalled);
  Family& busy = page.family("gantry_node_disk_busy_seconds_total", kCounter,
                             "Time in which the disk had a request in flight.");
  Family& bytes = page.family("gantry_node_disk_bytes_total", kCounter, "Bytes read and written.");
  Family& operations =
      page.family("gantry_node_disk_operations_total", kCounter, "Requests to the disk.");
  for (const neighbours::DiskCount& disk : s.disks) {
    const std::string labels = join(node, label("disk", disk.name));
    busy.add(labels, seconds_of(disk.busy));
    bytes.add(labels, std::to_string(disk.bytes));
    operations.add(labels, std::to_string(disk.operations));
  }
  Family& carried =
      page.family("gantry_node_link_bytes_total", kCounter, "Bytes over the machine's links.");
  Family& lost =
      page.family("gantry_node_link_dropped_packets_total", kCounter, "Packets that a link lost.");
  for (const neighbours::LinkCount& link : s.links) {
    const bool in = link.direction == neighbours::Direction::in;
    const std::string labels =
        join(join(node, label("link", link.name)), label("direction", in ? "received" : "sent"));
    carried.add(labels, std::to_string(link.bytes));
    lost.add(labels, std::to_string(link.drops));
  }
  if (s.memory_traffic)
    page.family("gantry_node_memory_traffic_bytes_total", kCounter,
                "Bytes over the channels of the memory.")
        .add(node, std::to_string(*s.memory_traffic));
  Family& dropped = page.family("gantry_node_network_dropped_packets_total", kCounter,
                                "Packets of jobs that the node refused or dropped: denied (to "
                                "where the job may not), spoofed (with an address that is not the "
                                "job's), to_node (to the node itself), unexpected (from another "
                                "node to a job that is not here).");
  if (f.network)
    for (const auto& [cause, packets] : f.network->dropped)
      dropped.add(join(node, label("cause", cause)), std::to_string(packets));
  Family& faults = page.family("gantry_node_gpu_faults", kGauge, "Faults that a GPU has now.");
  for (const GpuDevice& gpu : f.devices)
    faults.add(join(join(node, label("gpu", std::to_string(gpu.index))), label("model", gpu.model)),
               std::to_string(gpu.faults.size()));
}

using Labels = std::map<proto::AttemptKey, std::string>;

void add_use(Page& page, const NodeFigures& f, const Labels& jobs) {
  Family& cpu = page.family("gantry_job_cpu_seconds_total", kCounter, "Processor time of the job.");
  Family& throttled = page.family("gantry_job_throttled_seconds_total", kCounter,
                                  "Time in which its own quota of processor time held it back.");
  Family& memory = page.family("gantry_job_memory_bytes", kGauge, "Memory that the job has.");
  Family& limit =
      page.family("gantry_job_memory_limit_bytes", kGauge, "Memory that the job may have.");
  Family& pressure = page.family("gantry_job_pressure_seconds_total", kCounter,
                                 "Time in which a task of the job waited for the resource.");
  Family& bytes = page.family("gantry_job_disk_bytes_total", kCounter, "Bytes read and written.");
  Family& operations =
      page.family("gantry_job_disk_operations_total", kCounter, "Requests to the disk.");
  for (const neighbours::JobCount& job : f.sample.jobs) {
    const auto labels = jobs.find(job.key);
    if (labels == jobs.end()) continue;
    cpu.add(labels->second, seconds_of(job.cpu));
    throttled.add(labels->second, seconds_of(job.throttled));
    memory.add(labels->second, std::to_string(job.memory));
    if (job.memory_limit > 0) limit.add(labels->second, std::to_string(job.memory_limit));
    add_pressure(pressure, labels->second, job.stalled);
    for (const neighbours::DiskUse& disk : job.disks) {
      const std::string of = join(labels->second, label("disk", disk.name));
      bytes.add(of, std::to_string(disk.bytes));
      operations.add(of, std::to_string(disk.operations));
    }
  }
}

void add_network(Page& page, const NodeFigures& f, const Labels& jobs) {
  if (!f.network) return;
  Family& bytes = page.family("gantry_job_network_bytes_total", kCounter,
                              "Bytes over the link of the job's own network.");
  Family& packets = page.family("gantry_job_network_packets_total", kCounter, "Packets over it.");
  Family& refused = page.family("gantry_job_network_refused_packets_total", kCounter,
                                "Packets of the job that the node refused or dropped.");
  for (const auto& [key, traffic] : f.network->attempts) {
    const auto labels = jobs.find(key);
    if (labels == jobs.end()) continue;
    const std::string sent = join(labels->second, label("direction", "sent"));
    const std::string received = join(labels->second, label("direction", "received"));
    bytes.add(sent, std::to_string(traffic.sent_bytes));
    bytes.add(received, std::to_string(traffic.received_bytes));
    packets.add(sent, std::to_string(traffic.sent_packets));
    packets.add(received, std::to_string(traffic.received_packets));
    refused.add(labels->second, std::to_string(traffic.refused_packets));
  }
}

void add_gpus(Page& page, const NodeFigures& f, const Labels& jobs) {
  Family& busy = page.family("gantry_job_gpu_busy_ratio", kGauge,
                             "The part of the time in which the device was busy, 0 to 1.");
  Family& used = page.family("gantry_job_gpu_memory_bytes", kGauge, "Used memory of the device.");
  Family& power =
      page.family("gantry_job_gpu_power_watts", kGauge, "The power that the device draws.");
  for (const proto::GpuActivity& gpu : f.gpus) {
    const auto labels = jobs.find(gpu.key);
    if (labels == jobs.end()) continue;
    const std::string of = join(join(labels->second, label("gpu", std::to_string(gpu.gpu))),
                                label("device", gpu.name));
    if (gpu.busy) busy.add(of, fmt::format("{}.{:02}", *gpu.busy / 100, *gpu.busy % 100));
    used.add(of, std::to_string(std::uint64_t{gpu.memory_mib} << 20));
    if (gpu.power_w) power.add(of, std::to_string(*gpu.power_w));
  }
}

}  // namespace

std::string node_metrics(const NodeFigures& figures, const std::optional<std::string>& tenant) {
  Labels jobs;
  for (const auto& [key, owner] : figures.owners) {
    if (tenant && (tenant->empty() || owner.tenant != *tenant)) continue;
    jobs[key] = label("node", figures.node) + "," + label("job", std::to_string(key.job.value())) +
                "," + label("attempt", std::to_string(key.attempt.value())) + "," +
                label("tenant", owner.tenant) + "," + label("user", owner.user);
  }
  Page page;
  if (!tenant) add_node(page, figures);
  add_use(page, figures, jobs);
  add_network(page, figures, jobs);
  add_gpus(page, figures, jobs);
  return page.text();
}

}  // namespace gantry::metrics
