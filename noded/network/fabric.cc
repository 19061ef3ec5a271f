#include "noded/network/fabric.h"

#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace gantry::network {
namespace {

constexpr const char* kNodeDir = "node";
constexpr const char* kLeft =
    "left.";  // prefix, followed by a number, of what is left of an ended attempt
constexpr const char* kForwarding[] = {"ipv4/ip_forward", "ipv6/conf/all/forwarding"};

// The link name that earlier releases gave to an attempt.
std::string older_link_of(const proto::AttemptKey& key) {
  return fmt::format("{}{:x}.{:x}", kJobLinks, key.job.value() & 0xff'ffff'ffff,
                     key.attempt.value() & 0xff);
}

std::string name_of(const proto::AttemptKey& key) {
  return fmt::format("{}.{}", key.job.value(), key.attempt.value());
}

// The part of a reach about other jobs; the error names what cannot be read.
Result<void> read_groups(const std::vector<proto::NetworkGroup>& from,
                         std::vector<Reach::Group>& to) {
  for (const proto::NetworkGroup& one : from) {
    ASSIGN(ports, parse_ports(one.ports));
    if (one.group == 0 || one.group >= kMostGroups)
      return fail(ErrorCode::invalid_argument, "a tenant has a number that addresses cannot hold");
    to.push_back({one.group, *ports});
  }
  return {};
}

bool has_family(const WayOut::Families& families, const NetworkRange& range) {
  return range.six ? families.six : families.four;
}

// Removes the links of a node's namespace, with their other ends. The kernel does this too when the
// namespace is removed, but only later; and a link to the machine whose alias was not written
// before the daemon was killed can be found in no other way.
Result<void> remove_links_of(const Fd& node_space) {
  return inside(node_space, []() -> Result<void> {
    ASSIGN(netlink, Netlink::open());
    ASSIGN(links, netlink->links());
    for (const Netlink::Link& link : *links) {
      if (link.name == "lo") continue;
      if (auto r = netlink->remove_link(link.name); !r && netlink->index_of(link.name)) return r;
    }
    return {};
  });
}

}  // namespace

Fabric::Fabric(FabricOptions options)
    : options_(std::move(options)), rules_(options_.blocks, options_.node, options_.guarded) {}

Result<WayOut::Families> Fabric::have_way_out() {
  if (way_out_) return *way_out_;
  auto opened =
      WayOut::open({options_.directory, options_.resolvers, nodes_->mtu()}, space_, *links_);
  if (opened) way_out_ = *opened;
  return opened;
}

Result<Member> Fabric::member_of(const JobNetwork& job, const std::string& link) {
  Member out{link, job.part, {}, {}};
  for (const Peer& peer : job.peers) out.peers.push_back(peer.part);
  TRY(read_groups(job.reach.to, out.reach.to));
  TRY(read_groups(job.reach.from, out.reach.from));
  if (!job.reach.leaves()) return out;
  std::vector<NetworkRange> ranges;
  for (const std::string& text : job.reach.ranges) {
    ASSIGN(range, parse_network_range(text));
    ranges.push_back(*range);
  }
  const auto families = have_way_out();
  lacks_.erase(job.key);
  if (!families) lacks_[job.key] = families.error().message;
  if (!families && job.reach.required)
    return fail(families.error().code,
                fmt::format("the job's network profile leads out of the cluster, and {}",
                            families.error().message));
  if (!families) return out;
  for (const NetworkRange& range : ranges)
    if (has_family(*families, range)) out.reach.ranges.push_back(range);
  for (const NetworkRange& resolver : options_.resolvers)
    if (job.reach.resolvers && has_family(*families, resolver))
      out.reach.resolvers.push_back(resolver);
  out.reach.internet = job.reach.internet;
  return out;
}

std::vector<NetworkRange> Fabric::resolvers_of(const proto::AttemptKey& key) const {
  const auto it = rules_.members().find(key);
  return it == rules_.members().end() ? std::vector<NetworkRange>{} : it->second.reach.resolvers;
}

std::string space_file_of(const std::string& directory, const proto::AttemptKey& key) {
  return directory + "/" + name_of(key) + "/" + kSpaceFile;
}

std::string Fabric::directory_of(const proto::AttemptKey& key) const {
  return options_.directory + "/" + name_of(key);
}

Result<std::unique_ptr<Fabric>> Fabric::open(FabricOptions options,
                                             const std::vector<JobNetwork>& attempts) {
  std::unique_ptr<Fabric> out(new Fabric(std::move(options)));
  TRY(out->open_node());
  ASSIGN(links, out->remove_others(attempts));
  for (const JobNetwork& job : attempts) {
    for (const Peer& peer : job.peers) TRY(out->set_way_to(peer));
    // The network that it started with may be gone meanwhile; its own parts stay.
    JobNetwork kept = job;
    kept.reach.required = false;
    const auto link = links->find(job.key);
    auto member =
        out->member_of(kept, link == links->end() ? older_link_of(job.key) : link->second);
    if (!member) return tl::unexpected(member.error());
    (void)out->rules_.add(job.key, std::move(*member));
  }
  TRY(out->filter_->run(out->rules_.whole()));
  return out;
}

Result<proto::AttemptNetwork> Fabric::look(const proto::AttemptKey& key) {
  const auto it = rules_.members().find(key);
  if (it == rules_.members().end())
    return fail(ErrorCode::not_found, "the job has no network of its own here");
  const Member& member = it->second;
  proto::AttemptNetwork out;
  out.addresses.push_back(text_of(address6(options_.blocks, member.part)));
  if (const auto four = address4(options_.blocks, member.part))
    out.addresses.push_back(text_of(*four));
  for (const NetworkRange& server : member.reach.resolvers) {
    const std::string text = address_text(server);
    out.resolvers.push_back(text.substr(0, text.find('/')));
  }
  if (const auto lacks = lacks_.find(key); lacks != lacks_.end()) out.no_way_out = lacks->second;
  ASSIGN(traffic, links_->traffic_of(member.link));
  // What the node's end has received, the job has sent.
  out.sent_packets = traffic->received_packets;
  out.sent_bytes = traffic->received_bytes;
  out.received_packets = traffic->sent_packets;
  out.received_bytes = traffic->sent_bytes;
  ASSIGN(denied, filter_->packets_of(std::string(kTable), std::string(kDeniedOf), member.link));
  out.denied_packets = *denied;
  return out;
}

Result<void> Fabric::limit(const proto::AttemptKey& key, Way way, std::uint64_t bits_per_second) {
  const auto it = rules_.members().find(key);
  if (it == rules_.members().end())
    return fail(ErrorCode::not_found, "the job has no network of its own here");
  const auto set = [&](Netlink& links, const std::string& link) {
    return bits_per_second > 0 ? links.limit_rate(link, bits_per_second) : links.unlimit_rate(link);
  };
  // What leaves by the node's end, the job receives.
  if (way == Way::receives) return set(*links_, it->second.link);
  ASSIGN(space, open_space(space_file(key)));
  return inside(*space, [&]() -> Result<void> {
    auto links = Netlink::open(Netlink::For::changes);
    return links ? set(*links, kJobEnd) : Result<void>(tl::unexpected(links.error()));
  });
}

Result<Fabric::Counts> Fabric::counts() {
  ASSIGN(links, links_->traffic());
  ASSIGN(refused, filter_->counters(fmt::format("list set {} {}", kTable, kDeniedOf)));
  ASSIGN(dropped, filter_->counters(fmt::format("list counters table {}", kTable)));
  Counts out;
  for (const auto& [key, member] : rules_.members()) {
    const auto link = links->find(member.link);
    if (link == links->end()) continue;
    const auto denied = refused->find(member.link);
    // What the node's end has received, the job has sent.
    out.attempts[key] = {link->second.received_bytes, link->second.received_packets,
                         link->second.sent_bytes, link->second.sent_packets,
                         denied == refused->end() ? 0 : denied->second};
  }
  out.dropped = std::move(*dropped);
  return out;
}

Result<void> Fabric::remove(const std::string& directory) {
  TRY(WayOut::remove(directory));
  TRY(NodesLink::remove(directory));
  if (const auto node = open_space(fmt::format("{}/{}/{}", directory, kNodeDir, kSpaceFile)))
    TRY(remove_links_of(*node));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    TRY(release_directory(entry.path()));
  return {};
}

Result<void> Fabric::open_node() {
  const std::string directory = options_.directory + "/" + kNodeDir;
  const std::string file = directory + "/" + kSpaceFile;
  auto space = open_space(file);
  if (!space) {
    TRY(release_directory(directory));
    TRY(make_directory(directory));
    space = make_space(file);
  }
  if (!space) return tl::unexpected(space.error());
  space_ = std::move(*space);
  if (auto r = inside(space_,
                      [this]() -> Result<void> {
                        ASSIGN(links, Netlink::open());
                        links_ = std::make_unique<Netlink>(std::move(*links));
                        ASSIGN(filter, Filter::open());
                        filter_ = std::make_unique<Filter>(std::move(*filter));
                        // The rules are set before forwarding, so that nothing passes without
                        // rules.
                        TRY(filter_->run(rules_.whole()));
                        for (const char* name : kForwarding) TRY(set_sysctl(name, "1"));
                        return {};
                      });
      !r)
    return r;
  TRY(links_->add_address("lo", node_address6(options_.blocks, options_.node)));
  ASSIGN(nodes, NodesLink::open(nodes_options(), space_, *links_));
  nodes_ = std::move(*nodes);
  return {};
}

NodesLink::Options Fabric::nodes_options() const {
  NodesLink::Options out;
  out.transport = options_.transport;
  out.blocks = options_.blocks;
  out.node = options_.node;
  out.underlay = options_.underlay;
  out.vni = options_.vni;
  out.secret = options_.secret;
  out.owner = options_.directory;
  return out;
}

Result<std::map<proto::AttemptKey, std::string>> Fabric::remove_others(
    const std::vector<JobNetwork>& attempts) {
  std::map<std::string, proto::AttemptKey> files, older;
  for (const JobNetwork& job : attempts) {
    files.emplace(name_of(job.key), job.key);
    older.emplace(older_link_of(job.key), job.key);
  }
  ASSIGN(there, links_->links());
  std::map<proto::AttemptKey, std::string> out;
  std::uint64_t first = 1;
  for (const Netlink::Link& link : *there) {
    if (!link.name.starts_with(kJobLinks)) continue;
    const auto file = files.find(link.alias);
    const auto named = older.find(link.name);
    if (file != files.end()) {
      out.insert_or_assign(file->second, link.name);
      first = std::max<std::uint64_t>(
          first, std::strtoull(link.name.c_str() + kJobLinks.size(), nullptr, 10) + 1);
    } else if (named != older.end()) {
      out.insert_or_assign(named->second, link.name);
    } else if (auto r = links_->remove_link(link.name); !r) {
      // Namespaces that were made in advance disappear with their daemon, and their links shortly
      // after.
      if (links_->index_of(link.name)) return tl::unexpected(r.error());
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, error)) {
    const std::string name = entry.path().filename();
    if (name == kNodeDir || files.contains(name)) continue;
    TRY(release_directory(entry.path()));
  }
  ready_ = std::make_unique<ReadySpaces>(*links_, first, nodes_->mtu());
  return out;
}

Result<void> Fabric::set_way_to(const Peer& peer) {
  const std::uint32_t node = peer.part.node;
  if (node == options_.node || peer.underlay.address.empty()) return {};
  const auto known = ways_.find(node);
  if (known != ways_.end() && known->second == peer.underlay) return {};
  TRY(nodes_->set_way(node, peer.underlay));
  ways_.insert_or_assign(node, peer.underlay);
  return {};
}

// If the kernel refuses a change, its rules may differ from what this process assumes. Then it gets
// all of them.
Result<void> Fabric::change(const std::string& rules) {
  if (filter_->run(rules)) return {};
  return filter_->run(rules_.whole());
}

Result<void> Fabric::attach(const JobNetwork& job) {
  Result<void> out;
  turn({}, {job}, [&](const proto::AttemptKey&, const Result<void>& done) { out = done; });
  return out;
}

Result<void> Fabric::detach(const proto::AttemptKey& key) {
  Result<void> out;
  turn({key}, {}, [&](const proto::AttemptKey&, const Result<void>& done) { out = done; });
  for (const std::string& directory : take_left()) TRY(release_directory(directory));
  return out;
}

// All rules are in force before any of the attempts has an address.
void Fabric::turn(const std::vector<proto::AttemptKey>& ends, const std::vector<JobNetwork>& starts,
                  const Told& told) {
  std::string rules;
  std::map<proto::AttemptKey, Result<void>> left;
  for (const proto::AttemptKey& key : ends) {
    lacks_.erase(key);
    rules += rules_.remove(key);
    left[key] = leave(key);
  }
  std::vector<Start> begun;
  for (const JobNetwork& job : starts) take_space(begun.emplace_back(Start{&job, {}, {}, {}}));
  const auto changed = set_rules(std::move(rules), begun);
  for (Start& start : begun) {
    if (start.done) start.done = connect(start);
    if (!start.done) {
      (void)change(rules_.remove(start.job->key));
      (void)release_directory(directory_of(start.job->key));
    }
    told(start.job->key, start.done);
  }
  for (const auto& [key, done] : left) told(key, changed ? done : changed);
}

// Changes the rules for all of them together. If the kernel refuses that, changes them one by one,
// so that one refused start does not prevent the others.
Result<void> Fabric::set_rules(std::string rules, std::vector<Start>& starts) {
  for (const Start& start : starts)
    if (start.done) rules += rules_.add(start.job->key, *start.member);
  if (filter_->run(rules)) return {};
  for (const Start& start : starts) (void)rules_.remove(start.job->key);
  const auto ended = filter_->run(rules_.whole());
  for (Start& start : starts) {
    if (!start.done) continue;
    start.done = change(rules_.add(start.job->key, *start.member));
    if (!start.done) (void)change(rules_.remove(start.job->key));
  }
  return ended;
}

// The namespace of an attempt, and its member in the rules.
void Fabric::take_space(Start& start) {
  const JobNetwork& job = *start.job;
  start.done = leave(job.key);  // removes an earlier network of this attempt
  for (const Peer& peer : job.peers)
    if (start.done) start.done = set_way_to(peer);
  if (!start.done) return;
  auto space = ready_->take();
  if (!space) {
    start.done = tl::unexpected(space.error());
    return;
  }
  start.space = std::move(*space);
  auto member = member_of(job, start.space.link);
  if (!member)
    start.done = tl::unexpected(member.error());
  else
    start.member = std::move(*member);
}

Result<void> Fabric::connect(const Start& start) {
  const JobNetwork& job = *start.job;
  TRY(bind_directory(directory_of(job.key), start.space));
  if (auto r = links_->together([&] { return settle_node(job, start.space.link); }); !r) return r;
  return inside(start.space.space, [&] { return settle_job(job); });
}

Result<void> Fabric::settle_node(const JobNetwork& job, const std::string& link) {
  // By this name the next Fabric can tell to which attempt the link belongs.
  TRY(links_->name(link, name_of(job.key)));
  const Ip6 six = address6(options_.blocks, job.part);
  TRY(links_->add_neighbour(link, six, kJobMac));
  TRY(links_->add_route(link, six, 128, std::nullopt));
  if (const auto four = address4(options_.blocks, job.part)) {
    // The job has one address of each family on its link; the gateway finds it by the IPv6 address.
    TRY(links_->add_route(link, *four, 32, six));
  }
  return job.bits_per_second > 0 ? links_->limit_rate(link, job.bits_per_second) : Result<void>{};
}

// Runs inside the job's namespace.
Result<void> Fabric::settle_job(const JobNetwork& job) {
  ASSIGN(links, Netlink::open(Netlink::For::changes));
  return links->together([&]() -> Result<void> {
    TRY(links->add_address(kJobEnd, address6(options_.blocks, job.part)));
    if (const auto four = address4(options_.blocks, job.part)) {
      TRY(links->add_address(kJobEnd, *four));
      if (auto r = links->add_route(kJobEnd, Ip4{}, 0, kGateway); !r) return r;
    }
    return job.bits_per_second > 0 ? links->limit_rate(kJobEnd, job.bits_per_second)
                                   : Result<void>{};
  });
}

// The directory gets a name that no attempt has, so that the attempt may begin again before it is
// removed. The link disappears with the namespace, later: removing it here would wait for every
// processor, 20 ms and more.
Result<void> Fabric::leave(const proto::AttemptKey& key) {
  const std::string from = directory_of(key);
  std::string to = fmt::format("{}/{}{}", options_.directory, kLeft, next_left_);
  if (::rename(from.c_str(), to.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return fail(ErrorCode::unavailable,
                fmt::format("{} cannot be renamed: {}", from, std::strerror(errno)));
  }
  ++next_left_;
  left_.push_back(std::move(to));
  return {};
}

}  // namespace gantry::network
