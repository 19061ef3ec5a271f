#include "noded/job_networks.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>

#include "common/proto/meeting_point.h"
#include "noded/network/fabric.h"

namespace gantry::node {
namespace {

// The same blocks in every cluster: they are seen only inside of the jobs' namespaces.
const network::Blocks& blocks() {
  static const network::Blocks all = *network::read_blocks("fd67:616e:7472::/48", "100.64.0.0/10");
  return all;
}

// FNV-1a of the cluster's name, in 24 bits.
std::uint32_t vni_of(const std::string& cluster) {
  std::uint32_t hash = 2166136261U;
  for (const char c : cluster) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return (hash ^ hash >> 24) & 0xff'ffff;
}

network::Part part_of(const proto::NetworkPart& part) {
  return {part.number, part.job, part.slot};
}

// The numeric address and the port of "host:port"; the host may be a name. May ask the resolver.
Result<network::Underlay> underlay_of(const proto::NetworkPart& part) {
  const auto colon = part.address.rfind(':');
  const std::string host = host_of(part.address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0 || colon == std::string::npos)
    return fail(ErrorCode::unavailable,
                fmt::format("the address \"{}\" of {} is not known: {}", part.address, part.node,
                            ::gai_strerror(error)));
  std::array<char, NI_MAXHOST> text{};
  ::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0,
                NI_NUMERICHOST);
  ::freeaddrinfo(found);
  return network::Underlay{text.data(), static_cast<std::uint16_t>(std::strtoul(
                                            part.address.c_str() + colon + 1, nullptr, 10))};
}

Result<network::JobNetwork> job_of(const proto::AttemptKey& key, const proto::JobNetwork& given) {
  network::JobNetwork out;
  out.key = key;
  out.part = part_of(given.own);
  for (const proto::NetworkPart& peer : given.peers) {
    network::Peer& one = out.peers.emplace_back();
    one.part = part_of(peer);
    if (peer.number == given.own.number) continue;
    auto underlay = underlay_of(peer);
    if (!underlay) return tl::unexpected(underlay.error());
    one.underlay = std::move(*underlay);
  }
  return out;
}

}  // namespace

std::string address_of(const proto::NetworkPart& part) {
  if (const auto four = network::address4(blocks(), part_of(part))) return network::text_of(*four);
  return network::text_of(network::address6(blocks(), part_of(part)));
}

// What the thread works on; nobody else touches it after adopt().
struct JobNetworks::Work {
  Work(Options o, const Logger& l) : options(std::move(o)), log(l) {}

  // Opens the fabric, which needs the node's number. The number changes only when the controller
  // has another store, and then no job of the old one may run any more.
  Result<void> open(const proto::NetworkPart& own) {
    if (fabric && number == own.number) return {};
    if (fabric && fabric->attempts() > 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("{} has the number {} now, and jobs run here under {}", own.node,
                              own.number, number));
    fabric.reset();
    if (earlier.empty())
      if (auto r = network::Fabric::remove(options.directory); !r) return r;
    if (::mkdir(options.directory.c_str(), 0711) != 0 && errno != EEXIST)
      return fail(ErrorCode::unavailable,
                  fmt::format("{} cannot be made: {}", options.directory, std::strerror(errno)));
    auto underlay = underlay_of(own);
    if (!underlay) return tl::unexpected(underlay.error());
    network::FabricOptions o;
    o.directory = options.directory;
    o.blocks = blocks();
    o.node = own.number;
    o.underlay = std::move(*underlay);
    o.vni = vni_of(options.cluster);
    auto opened = network::Fabric::open(std::move(o), earlier);
    if (!opened) return tl::unexpected(opened.error());
    fabric = std::move(*opened);
    number = own.number;
    earlier.clear();
    return {};
  }

  Result<JobNetworkPlace> attach(const proto::AttemptKey& key, const proto::JobNetwork& given) {
    if (auto r = open(given.own); !r) return tl::unexpected(r.error());
    const auto job = job_of(key, given);
    if (!job) return tl::unexpected(job.error());
    if (auto r = fabric->attach(*job); !r) return tl::unexpected(r.error());
    return JobNetworkPlace{fabric->space_file(key), fabric->sys_dir(key)};
  }

  void adopt(const Running& running) {
    for (const auto& [key, given] : running) {
      auto job = job_of(key, given);
      if (job)
        earlier.push_back(std::move(*job));
      else
        complain(key, job.error().message);
    }
    const auto done = running.empty() ? network::Fabric::remove(options.directory)
                                      : open(running.front().second.own);
    if (!done) log.error("jobs' networks cannot be taken over", {{"why", done.error().message}});
  }

  void detach(const proto::AttemptKey& key) {
    std::erase_if(earlier, [&](const auto& job) { return job.key == key; });
    if (!fabric) return;
    if (const auto done = fabric->detach(key); !done) complain(key, done.error().message);
  }

  void leave() {
    if (!earlier.empty() || (fabric && fabric->attempts() > 0)) return;
    fabric.reset();
    if (const auto done = network::Fabric::remove(options.directory); !done)
      log.warning("jobs' networks are left", {{"why", done.error().message}});
  }

  void complain(const proto::AttemptKey& key, const std::string& why) const {
    log.error("a job's network is not as it should be",
              {{"job", key.job}, {"attempt", key.attempt}, {"why", why}});
  }

  Options options;
  const Logger& log;
  std::unique_ptr<network::Fabric> fabric;
  // Attempts of earlier daemons which could not be taken over yet; the next open() tries it again.
  std::vector<network::JobNetwork> earlier;
  std::uint32_t number = 0;
};

JobNetworks::JobNetworks(Options options, loop::Loop& loop, const Logger& log)
    : work_(std::make_shared<Work>(std::move(options), log)),
      outlet_(std::make_shared<gpu::Outlet>(loop)) {}

JobNetworks::~JobNetworks() {
  outlet_->shut();
}

void JobNetworks::adopt(Running running) {
  thread_.post([work = work_, running = std::move(running)] { work->adopt(running); });
}

void JobNetworks::attach(const proto::AttemptKey& key, const proto::JobNetwork& network,
                         std::function<void(Result<JobNetworkPlace>&&)> done) {
  thread_.post([work = work_, outlet = outlet_, key, network, done = std::move(done)] {
    auto place = std::make_shared<Result<JobNetworkPlace>>(work->attach(key, network));
    outlet->post([done, place] { done(std::move(*place)); });
  });
}

void JobNetworks::detach(const proto::AttemptKey& key) {
  thread_.post([work = work_, key] { work->detach(key); });
}

void JobNetworks::leave() {
  auto done = std::make_shared<std::promise<void>>();
  thread_.post([work = work_, done] {
    work->leave();
    done->set_value();
  });
  (void)done->get_future().wait_for(std::chrono::microseconds(gpu::kLastCall.us));
}

}  // namespace gantry::node
