#include "noded/job_networks.h"

#include <fmt/core.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <mutex>

#include "common/proto/meeting_point.h"
#include "noded/network/rules.h"
#include "noded/network/space.h"
#include "noded/network/wireguard.h"
#include "noded/network_orders.h"

namespace gantry::node {
namespace {

// Namespaces are made, and removed, when nothing has started or ended for this long. While jobs
// come without a pause, this many are kept ready, and at most this many ended ones are left.
constexpr Duration kIdle = milliseconds(200);
constexpr std::size_t kLeastReady = 4, kMostLeft = 64;

std::string job_address(const network::Blocks& blocks, const proto::NetworkPart& part) {
  if (const auto four = network::address4(blocks, part_of(part))) return network::text_of(*four);
  return network::text_of(network::address6(blocks, part_of(part)));
}

}  // namespace

Result<std::string> try_job_networks(const JobNetworks::Options& options,
                                     const std::string& directory, const std::string& address) {
  TRY(network::try_networks(directory, options.transport));
  if (!options.cni.list.empty()) TRY(network::Cni::open(options.cni));
  std::string host;
  if (options.transport == network::Transport::routed) {
    proto::NetworkPart own;
    own.node = "this node";
    own.address = address;
    ASSIGN(underlay, underlay_of(own));
    host = underlay->address;
  }
  return network::introduction(options.transport, options.key_file, host);
}

// Network namespaces that are ready for the next jobs.
struct JobNetworks::Stock {
  std::size_t ready = 0;
  bool makes = false;  // true if namespaces can be made at present
};

// The data of the thread; nothing else uses it after adopt(), except `waiting`.
struct JobNetworks::Work {
  using Done = std::function<void(Result<JobNetworkPlace>&&)>;
  struct Start {
    proto::AttemptKey key;
    proto::JobNetwork network;
    Done done;
  };
  struct Waiting {
    std::vector<proto::AttemptKey> ends;
    std::vector<Start> starts;
  };

  Work(Options o, const Logger& l) : options(std::move(o)), log(l) {}

  // Opens the fabric, which needs the node's number. The number changes only when the controller
  // has another store, and then jobs of the old one must not run any more.
  Result<void> open(const proto::NetworkPart& own) {
    if (fabric && number == own.number) return {};
    if (fabric && fabric->attempts() > 0)
      return fail(ErrorCode::unavailable,
                  fmt::format("{} has the number {} now, and jobs run here under {}", own.node,
                              own.number, number));
    fabric.reset();
    if (earlier.empty()) TRY(network::Fabric::remove(options.directory));
    if (::mkdir(options.directory.c_str(), 0711) != 0 && errno != EEXIST)
      return fail(ErrorCode::unavailable,
                  fmt::format("{} cannot be made: {}", options.directory, std::strerror(errno)));
    ASSIGN(underlay, underlay_of(own));
    network::FabricOptions o;
    o.directory = options.directory;
    o.blocks = options.blocks;
    o.transport = options.transport;
    if (o.transport == network::Transport::wireguard) {
      ASSIGN(key, network::load_key(options.key_file));
      o.secret = *key;
    }
    o.node = own.number;
    o.underlay = std::move(*underlay);
    o.vni = vni_of(options.cluster);
    o.guarded = addresses_of(options.machines);
    o.resolvers = network::resolvers_here(options.resolvers);
    ASSIGN(opened, network::Fabric::open(std::move(o), earlier));
    fabric = std::move(*opened);
    number = own.number;
    earlier.clear();
    return {};
  }

  [[nodiscard]] JobNetworkPlace place_of(const proto::AttemptKey& key) const {
    JobNetworkPlace out{fabric->space_file(key), fabric->sys_dir(key)};
    for (const NetworkRange& server : fabric->resolvers_of(key)) {
      const std::string text = address_text(server);
      out.resolvers.push_back(text.substr(0, text.find('/')));
    }
    return out;
  }

  // Drops a start that has not been made yet; its caller is not called back.
  void end_later(const proto::AttemptKey& key) {
    const std::scoped_lock lock(mutex);
    std::erase_if(waiting.starts, [&](const Start& start) { return start.key == key; });
    waiting.ends.push_back(key);
  }

  // Makes all waiting starts and ends. `told` gets the functions to be called on the loop.
  void turn(const std::function<void(std::function<void()>)>& told) {
    Waiting now;
    {
      const std::scoped_lock lock(mutex);
      std::swap(now, waiting);
    }
    for (const proto::AttemptKey& key : now.ends) {
      orders.erase(key);
      std::erase_if(earlier, [&](const auto& job) { return job.key == key; });
    }
    const auto tell = [&](const Done& done, Result<JobNetworkPlace>&& place) {
      auto kept = std::make_shared<Result<JobNetworkPlace>>(std::move(place));
      told([done, kept] { done(std::move(*kept)); });
    };
    // Another node number needs another fabric, which is opened when nothing runs in this one.
    if (fabric && std::ranges::any_of(now.starts, [&](const Start& start) {
          return start.network.own.number != number;
        })) {
      fabric->turn(now.ends, {}, [&](const proto::AttemptKey& key, const Result<void>& done) {
        if (!done) complain(key, done.error().message);
      });
      now.ends.clear();
    }
    std::map<proto::AttemptKey, const Start*> starts;
    std::vector<network::JobNetwork> jobs;
    for (const Start& start : now.starts) {
      auto opened = open(start.network.own);
      auto job =
          opened.and_then([&] { return job_of(start.key, start.network, options.transport); });
      if (!job) {
        tell(start.done, tl::unexpected(job.error()));
        continue;
      }
      jobs.push_back(std::move(*job));
      starts.insert_or_assign(start.key, &start);
    }
    if (!fabric) return;
    makes = makes || !jobs.empty();
    fabric->turn(now.ends, jobs, [&](const proto::AttemptKey& key, const Result<void>& done) {
      const auto start = starts.find(key);
      if (start == starts.end()) {
        if (!done) complain(key, done.error().message);
        return;
      }
      if (done) orders.insert_or_assign(key, start->second->network);
      tell(start->second->done,
           done ? Result<JobNetworkPlace>(place_of(key)) : tl::unexpected(done.error()));
      starts.erase(start);
    });
  }

  [[nodiscard]] Stock stock() const { return fabric ? Stock{fabric->ready(), makes} : Stock{}; }

  // One piece of work for times when no job starts or ends.
  void tend() {
    if (!fabric || !makes || fabric->ready() >= wanted()) return;
    const auto done = fabric->make_ready();
    makes = done.has_value();
    if (!done) say("no network can be made in advance", done.error());
  }

  [[nodiscard]] std::size_t wanted() const { return options.ready; }

  // Logs each reason once, because the problem may last for long.
  void say(const char* what, const Error& why) {
    if (why.message != said) log.warning(what, {{"why", why.message}});
    said = why.message;
  }

  void adopt(const Running& running) {
    for (const auto& [key, given] : running) {
      orders.insert_or_assign(key, given);
      auto job = job_of(key, given, options.transport);
      if (job)
        earlier.push_back(std::move(*job));
      else
        complain(key, job.error().message);
    }
    const auto done = running.empty() ? network::Fabric::remove(options.directory)
                                      : open(running.front().second.own);
    if (!done) log.error("jobs' networks cannot be taken over", {{"why", done.error().message}});
    // The previous daemon may have throttled some of them for the sake of others.
    for (const auto& [key, given] : running)
      for (const auto way : {network::Fabric::Way::sends, network::Fabric::Way::receives})
        if (done && fabric)
          if (const auto own = fabric->limit(key, way, given.bits_per_second); !own)
            complain(key, own.error().message);
  }

  // Returns what is known of the attempt, and a socket in its namespace that connects to the
  // target.
  Result<proto::AttemptNetwork> look(const proto::AttemptKey& key, const std::string& target,
                                     Fd& socket) {
    const auto it = orders.find(key);
    if (!fabric || it == orders.end())
      return fail(ErrorCode::not_found,
                  fmt::format("job {} has no network of its own here", key.job.value()));
    auto out = fabric->look(key);
    if (!out) return out;
    out->reach = it->second.reach;
    if (target.empty()) return out;
    auto made = connect_from(key, target, it->second);
    if (made) {
      socket = std::move(*made);
    } else {
      out->result = proto::ProbeResult::failed;
      out->why = made.error().message;
    }
    return out;
  }

  Result<Fd> connect_from(const proto::AttemptKey& key, const std::string& target,
                          const proto::JobNetwork& job) {
    const auto colon = target.rfind(':');
    std::string host = host_of(target);
    std::vector<const proto::NetworkPart*> parts{&job.own};
    for (const proto::NetworkPart& peer : job.peers) parts.push_back(&peer);
    for (const proto::NetworkPart* part : parts)
      if (part->node == host && part->job != JobId{}) {
        host = job_address(options.blocks, *part);
        break;
      }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // the machine's resolver is not used
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), target.c_str() + colon + 1, &hints, &found) != 0)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("\"{}\" is neither an address nor a node of the job", host));
    auto space = network::open_space(fabric->space_file(key));
    Fd socket;
    int error = 0;
    if (space)
      (void)network::inside(*space, [&]() -> Result<void> {
        socket.reset(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const bool done = socket && ::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0;
        error = done ? 0 : errno;
        return {};
      });
    ::freeaddrinfo(found);
    if (!space) return tl::unexpected(space.error());
    if (error != 0 && error != EINPROGRESS)
      return fail(ErrorCode::unavailable, std::strerror(error));
    return socket;
  }

  void leave() {
    if (!earlier.empty()) return;
    if (fabric && fabric->attempts() > 0) return;
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
  // Attempts of earlier daemons that could not be taken over yet; the next open() tries again.
  std::vector<network::JobNetwork> earlier;
  std::uint32_t number = 0;
  std::map<proto::AttemptKey, proto::JobNetwork>
      orders;         // facts of the attempts that have a network
  bool makes = true;  // result of the last tend()
  std::string said;
  std::mutex mutex;  // guards waiting
  Waiting waiting;
};

JobNetworks::JobNetworks(Options options, loop::Loop& loop, const Logger& log)
    : loop_(loop),
      blocks_(options.blocks),
      links_(options.cni.list.empty() ? nullptr
                                      : std::make_unique<SiteLinks>(options.cni, loop, log)),
      work_(std::make_shared<Work>(std::move(options), log)),
      outlet_(std::make_shared<gpu::Outlet>(loop)),
      removals_(std::make_shared<gpu::DriverThread>()) {}

std::string JobNetworks::address_of(const proto::NetworkPart& part) const {
  return job_address(blocks_, part);
}

JobNetworks::~JobNetworks() {
  outlet_->shut();
}

void JobNetworks::adopt(Running running) {
  if (links_) {
    std::vector<SiteLinks::Place> places;
    for (const auto& [key, network] : running) places.push_back(place_of(key));
    links_->adopt(std::move(places));
  }
  thread_.post([this, work = work_, outlet = outlet_, running = std::move(running)] {
    work->adopt(running);
    outlet->post([this, stock = work->stock()] { tend(stock); });
  });
}

void JobNetworks::attach(const proto::AttemptKey& key, const proto::JobNetwork& network,
                         std::function<void(Result<JobNetworkPlace>&&)> done) {
  if (links_) {
    attaching_.insert(key);
    done = [this, key, done = std::move(done)](Result<JobNetworkPlace>&& place) {
      add_links(key, std::move(place), done);
    };
  }
  {
    const std::scoped_lock lock(work_->mutex);
    work_->waiting.starts.push_back({key, network, std::move(done)});
  }
  turn();
}

SiteLinks::Place JobNetworks::place_of(const proto::AttemptKey& key) const {
  return {key, network::space_file_of(work_->options.directory, key)};
}

// The network is ready; next the site's plugins run. An attempt that was given up meanwhile gets
// none.
void JobNetworks::add_links(const proto::AttemptKey& key, Result<JobNetworkPlace>&& place,
                            const std::function<void(Result<JobNetworkPlace>&&)>& done) {
  if (attaching_.erase(key) == 0 || !place) return done(std::move(place));
  auto kept = std::make_shared<Result<JobNetworkPlace>>(std::move(place));
  links_->add({key, (*kept)->space}, [done, kept](Result<void>&& added) {
    if (!added) *kept = tl::unexpected(added.error());
    done(std::move(*kept));
  });
}

void JobNetworks::detach(const proto::AttemptKey& key) {
  attaching_.erase(key);
  const auto end = [this, key] {
    work_->end_later(key);
    turn();
  };
  if (links_) return links_->remove(place_of(key), end);
  end();
}

// The first of several posted calls makes all starts and ends; the others find nothing to do.
void JobNetworks::turn() {
  ++turns_;
  thread_.post([this, work = work_, outlet = outlet_, removals = removals_] {
    work->turn([&](std::function<void()> handler) { outlet->post(std::move(handler)); });
    if (work->fabric)
      for (std::string& directory : work->fabric->take_left())
        removals->post([work, directory = std::move(directory)] {
          if (const auto done = network::release_directory(directory); !done)
            work->log.error("a job's network is left", {{"why", done.error().message}});
        });
    outlet->post([this, stock = work->stock()] { tend(stock); });
  });
}

// Makes another namespace at once if few are ready, and otherwise when nothing has started or ended
// for a while.
void JobNetworks::tend(const Stock& stock) {
  const std::size_t wanted = work_->wanted();
  if (!stock.makes || stock.ready >= wanted) return;
  const bool idle = turns_ == idle_after_;  // in an idle time one piece of work follows the other
  if (idle || stock.ready < std::min(kLeastReady, wanted)) return do_one();
  idle_ = loop_.after(kIdle, [this] {
    idle_after_ = turns_;
    do_one();
  });
}

void JobNetworks::do_one() {
  if (tending_) return;
  tending_ = true;
  thread_.post([this, work = work_, outlet = outlet_] {
    work->tend();
    outlet->post([this, stock = work->stock()] {
      tending_ = false;
      tend(stock);
    });
  });
}

void JobNetworks::probe(const proto::AttemptKey& key, const std::string& target,
                        std::function<void(Result<proto::AttemptNetwork>&&)> done) {
  if (links_)
    done = [this, key, done = std::move(done)](Result<proto::AttemptNetwork>&& network) {
      if (!network) return done(std::move(network));
      auto kept = std::make_shared<Result<proto::AttemptNetwork>>(std::move(network));
      links_->look(place_of(key), [done, kept](SiteLinks::Look&& look) {
        (*kept)->site_addresses = std::move(look.addresses);
        (*kept)->site_trouble = std::move(look.wrong);
        done(std::move(*kept));
      });
    };
  thread_.post([this, work = work_, outlet = outlet_, key, target, done = std::move(done)] {
    auto socket = std::make_shared<Fd>();
    auto network =
        std::make_shared<Result<proto::AttemptNetwork>>(work->look(key, target, *socket));
    outlet->post([this, done, socket, network] {
      if (!*network || !*socket) return done(std::move(*network));
      try_out({std::move(*socket), std::move(**network), done, {}, {}});
    });
  });
}

void JobNetworks::hold(const proto::AttemptKey& key, network::Fabric::Way way,
                       std::uint64_t bytes_per_second) {
  thread_.post([work = work_, key, way, bytes_per_second] {
    const auto order = work->orders.find(key);
    if (!work->fabric || order == work->orders.end()) return;  // the attempt has ended
    const auto done = work->fabric->limit(
        key, way, bytes_per_second > 0 ? bytes_per_second * 8 : order->second.bits_per_second);
    if (!done) work->complain(key, done.error().message);
  });
}

void JobNetworks::count(std::function<void(Result<network::Fabric::Counts>&&)> done) {
  thread_.post([work = work_, outlet = outlet_, done = std::move(done)] {
    auto counts = std::make_shared<Result<network::Fabric::Counts>>();
    if (work->fabric) *counts = work->fabric->counts();
    outlet->post([done, counts] { done(std::move(*counts)); });
  });
}

// Waits on the loop until the connection is made or refused.
void JobNetworks::try_out(Trial trial) {
  constexpr Duration kPatience = seconds(3);
  const std::uint64_t number = next_trial_++;
  Trial& one = trials_.emplace(number, std::move(trial)).first->second;
  one.ready = loop_.on_writable(one.socket.get(), [this, number] {
    const auto it = trials_.find(number);
    if (it == trials_.end()) return;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(it->second.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    finish(number, error == 0 ? proto::ProbeResult::open : proto::ProbeResult::refused,
           error == 0 ? "" : std::strerror(error));
  });
  one.limit = loop_.after(kPatience, [this, number] {
    finish(number, proto::ProbeResult::silent, "nothing answered within 3 seconds");
  });
}

void JobNetworks::finish(std::uint64_t number, proto::ProbeResult result, std::string why) {
  const auto it = trials_.find(number);
  if (it == trials_.end()) return;
  Trial trial = std::move(it->second);
  trials_.erase(it);
  trial.ready.cancel();
  trial.limit.cancel();
  trial.network.result = result;
  trial.network.why = std::move(why);
  trial.done(std::move(trial.network));
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
