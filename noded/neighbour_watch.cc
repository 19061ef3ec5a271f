#include "noded/neighbour_watch.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "common/codec/define.h"
#include "noded/machine/cgroup.h"
#include "noded/machine/files.h"

namespace gantry::node {
namespace {

constexpr const char* kFile = "holds.msgpack";
constexpr std::uint64_t kWeight = 100;  // default cpu weight of every cgroup
constexpr std::uint64_t kBytesOfRequest =
    32 * 1024;  // bytes that one request counts, as in noded/neighbours/rates.cc

neighbours::Rules rules_of(const NodedConfig& c) {
  using neighbours::Resource;
  neighbours::Rules out;
  const auto set = [&](Resource resource, std::uint32_t percent) {
    out.of(resource).saturated = percent / 100.0;
  };
  set(Resource::cpu, c.neighbour_cpu);
  set(Resource::memory, c.neighbour_memory);
  set(Resource::disk, c.neighbour_disk);
  set(Resource::network, c.neighbour_network);
  set(Resource::memory_traffic, c.neighbour_memory_bandwidth);
  return out;
}

bool on_link(const neighbours::Hold& hold) {
  return hold.channel.resource == neighbours::Resource::network;
}

std::uint32_t percent(double share) {
  return static_cast<std::uint32_t>(std::lround(std::clamp(share, 0.0, 1.0) * 100));
}

proto::SharingFinding told(const neighbours::Finding& f) {
  proto::SharingFinding out;
  out.number = f.number;
  out.resource = f.channel.resource;
  out.device = f.channel.device;
  out.victim = f.victim;
  out.since = f.since;
  out.last = f.last;
  out.ended = f.ended;
  out.cause = f.verdict.cause;
  for (const neighbours::Culprit& one : f.verdict.culprits)
    out.by.push_back({one.key, percent(one.share), percent(one.rise)});
  out.confidence = percent(f.verdict.confidence);
  out.level = percent(f.evidence.level);
  out.saturated = percent(f.evidence.saturated);
  out.held_up = percent(f.evidence.held_up);
  out.own = percent(f.evidence.own);
  out.machine = percent(f.evidence.machine);
  return out;
}

}  // namespace

NeighbourWatch::NeighbourWatch(Options options, loop::Loop& loop, const Logger& log)
    : options_(std::move(options)),
      log_(log),
      clock_(Instant{}),
      sampler_({options_.cgroups, "/proc", "/sys",
                static_cast<std::uint64_t>(options_.config.memory_bandwidth)}),
      detector_(rules_of(options_.config)),
      restraint_({.first = options_.config.neighbour_hold}) {
  const std::string path = options_.state_dir + "/" + kFile;
  if (const auto text = runtime::read_file(path)) {
    if (const auto before = codec::decode<KeptHolds>(*text))
      for (const KeptHold& hold : before->holds) undo(hold);
    ::unlink(path.c_str());
  }
  timer_ = loop.every(options_.config.neighbour_sample, [this] { look(); });
}

NeighbourWatch::~NeighbourWatch() {
  let_go();
}

void NeighbourWatch::let_go() {
  timer_.cancel();
  for (const neighbours::Hold& hold : restraint_.holds())
    if (!hold.undone && on_link(hold)) limit_link(hold, 0);
  for (const KeptHold& hold : in_force_.holds) undo(hold);
  if (!in_force_.holds.empty()) ::unlink((options_.state_dir + "/" + kFile).c_str());
  in_force_.holds.clear();
}

void NeighbourWatch::limit_link(const neighbours::Hold& hold, std::uint64_t most) const {
  const bool sends = hold.channel.device.ends_with(" out");
  options_.limit_link(hold.key,
                      sends ? network::Fabric::Way::sends : network::Fabric::Way::receives, most);
}

void NeighbourWatch::look() {
  sampler_.watch(options_.running());
  const Instant now = clock_.now();
  detector_.take(sampler_.read(now));
  if (!options_.config.neighbour_throttle) return;
  act(restraint_.step(now, detector_.findings(), detector_.now(),
                      [&](const proto::AttemptKey& key, const neighbours::Channel& channel) {
                        const sampling::WatchedJob* job = sampler_.job(key);
                        if (job == nullptr) return std::uint64_t{0};
                        return channel.resource == neighbours::Resource::network
                                   ? job->network_limit
                                   : job->io_limit;
                      }),
      now);
}

void NeighbourWatch::act(const neighbours::Restraint::Step& step, Instant now) {
  if (step.set.empty() && step.undo.empty()) return;
  for (const neighbours::Hold& hold : step.undo) {
    if (on_link(hold)) {
      limit_link(hold, 0);
      log_.info("a job is held back no more",
                {{"job", hold.key.job}, {"what", hold.channel.device}});
      continue;
    }
    const KeptHold one = kept(hold);
    undo(one);
    sampler_.let_go(hold.key, hold.channel.device);
    std::erase_if(in_force_.holds,
                  [&](const KeptHold& k) { return k.cgroup == one.cgroup && k.disk == one.disk; });
    log_.info("a job is held back no more", {{"job", hold.key.job}, {"what", one.disk}});
  }
  for (const neighbours::Hold& hold : step.set) {
    if (on_link(hold)) {
      if (options_.limit_link)
        hold_link(hold);
      else
        restraint_.failed(hold, now);
      continue;
    }
    in_force_.holds.push_back(kept(hold));
    auto done = write_down();
    if (done) done = set(hold);
    if (done) {
      sampler_.hold(hold.key, hold.channel.device);
      log_.info("a job is held back for others' sake", {{"job", hold.key.job},
                                                        {"what", hold.channel.device},
                                                        {"most", hold.most},
                                                        {"seconds", hold.length.seconds()}});
      continue;
    }
    in_force_.holds.pop_back();
    restraint_.failed(hold, now);
    log_.warning("a job could not be held back",
                 {{"job", hold.key.job}, {"why", done.error().message}});
  }
  if (const auto written = write_down(); !written)
    log_.warning("cannot write down who is held back", {{"why", written.error().message}});
}

void NeighbourWatch::hold_link(const neighbours::Hold& hold) const {
  limit_link(hold, hold.most);
  log_.info("a job is held back for others' sake", {{"job", hold.key.job},
                                                    {"what", hold.channel.device},
                                                    {"most", hold.most},
                                                    {"seconds", hold.length.seconds()}});
}

Result<void> NeighbourWatch::set(const neighbours::Hold& hold) {
  const KeptHold one = kept(hold);
  if (one.disk.empty()) return runtime::weigh_cpu(options_.cgroups, one.cgroup, hold.most);
  const runtime::IoLimit limit{hold.most, std::max<std::uint64_t>(hold.most / kBytesOfRequest, 1)};
  return runtime::limit_io(options_.cgroups, one.cgroup, one.disk, limit);
}

// A hold whose job has ended need not be undone.
void NeighbourWatch::undo(const KeptHold& one) {
  if (one.disk.empty())
    (void)runtime::weigh_cpu(options_.cgroups, one.cgroup, kWeight);
  else
    (void)runtime::limit_io(options_.cgroups, one.cgroup, one.disk, {one.own_bytes, 0});
}

KeptHold NeighbourWatch::kept(const neighbours::Hold& hold) const {
  KeptHold out;
  const sampling::WatchedJob* job = sampler_.job(hold.key);
  out.cgroup = job != nullptr
                   ? job->cgroup
                   : fmt::format("job_{}.{}", hold.key.job.value(), hold.key.attempt.value());
  if (job != nullptr) out.own_bytes = job->io_limit;
  if (hold.channel.resource == neighbours::Resource::disk)
    out.disk = disk_number(hold.channel.device);
  return out;
}

std::string NeighbourWatch::disk_number(const std::string& name) const {
  for (const auto& [number, disk] : sampler_.disks())
    if (disk == name) return number;
  return {};
}

Result<void> NeighbourWatch::write_down() {
  const Fd directory(::open(options_.state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return runtime::fail_errno(ErrorCode::io_error, options_.state_dir);
  return runtime::write_whole(directory.get(), kFile, codec::encode(in_force_),
                              runtime::Durability::durable);
}

proto::NodeSharing NeighbourWatch::said() const {
  proto::NodeSharing out;
  for (const neighbours::Finding& f : detector_.findings()) out.findings.push_back(told(f));
  for (const neighbours::Hold& hold : restraint_.holds())
    out.holds.push_back({hold.key, hold.channel.resource, hold.channel.device, hold.most,
                         hold.since, hold.until, hold.times, hold.undone});
  return out;
}

}  // namespace gantry::node
