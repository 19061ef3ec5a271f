// gctl network: what a running job or the jobs of a tenant may reach, according to which rule, and
// whether an address answers, which the job's node tries from inside the job's network.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/commands/control/gctl.h"
#include "cli/commands/control/gctl_network.h"
#include "cli/session.h"
#include "cli/submit/job_refs.h"
#include "common/codec/codec.h"
#include "common/job/verdict_text.h"
#include "common/proto/job_network.h"
#include "common/proto/tenancy.h"
#include "common/tenancy/tenancy_cluster.h"
#include "common/text/hostlist.h"
#include "common/text/network_range.h"
#include "common/text/text.h"

namespace gantry::cli::gctl_network {
namespace {

struct NetworkOptions {
  std::string node;
  bool json = false;
};

constexpr Option kOptions[] = {
    flag("json", "As JSON", put<&NetworkOptions::json>),
    takes("node", 'w', "NODE", "On this node of the job (default its first)",
          put<&NetworkOptions::node>),
};

void line(std::string_view what, std::string_view whom) {
  fmt::print("  {:<14}{}\n", what, whom);
}

std::string with_ports(const std::string& name, const std::string& ports) {
  return ports.empty() ? name : name + " " + ports;
}

void print_groups(std::string_view what, const std::vector<std::string>& tenants,
                  const std::vector<proto::NetworkGroup>& groups) {
  for (std::size_t i = 0; i < groups.size() && i < tenants.size(); ++i)
    line(what, with_ports(tenants[i].empty() ? "?" : tenants[i], groups[i].ports));
}

void print_job(const proto::NetworkProbed& found) {
  const proto::AttemptNetwork& n = found.network;
  fmt::print("job {} on {}: {}\nprofile {}\n", found.job.value(), found.node,
             fmt::join(n.addresses, ", "), n.reach.profile.empty() ? "own" : n.reach.profile);
  line("own parts", "all ports, both ways");
  for (const std::string& server : n.resolvers) line("resolver", server + " udp/53 tcp/53");
  for (const std::string& range : n.reach.ranges) line("to", range);
  if (!n.reach.proxy.empty()) line("proxy", n.reach.proxy);
  if (n.reach.internet) line("to", "the internet");
  print_groups("to tenant", found.to_tenants, n.reach.to);
  print_groups("from tenant", found.from_tenants, n.reach.from);
  if (!n.no_way_out.empty()) fmt::print("no way out: {}\n", n.no_way_out);
  if (!n.site_addresses.empty())
    fmt::print("net1, by the site's plugins: {}\n", fmt::join(n.site_addresses, ", "));
  if (!n.site_trouble.empty()) fmt::print("net1 is not as it was made: {}\n", n.site_trouble);
  fmt::print("sent {} in {}, received {} in {}; refused {}\n",
             format_memory_rounded(static_cast<std::int64_t>(n.sent_bytes)),
             counted(static_cast<std::int64_t>(n.sent_packets), "packet"),
             format_memory_rounded(static_cast<std::int64_t>(n.received_bytes)),
             counted(static_cast<std::int64_t>(n.received_packets), "packet"),
             counted(static_cast<std::int64_t>(n.denied_packets), "packet"));
}

Result<proto::NetworkProbed> probe(const Invocation& in, const NetworkOptions& options,
                                   const std::string& job, const std::string& target) {
  ASSIGN(refs, job_refs_of({job}));
  return ask<proto::NetworkProbed>(in.program(),
                                   proto::ProbeNetwork{refs->front(), options.node, target});
}

}  // namespace

std::vector<std::string> network_trouble(Session& session, const proto::JobRow& row) {
  constexpr std::size_t kMostPeers = 4;  // each missing answer takes three seconds
  constexpr std::string_view kAnswered = "Connection refused";  // nothing listens at that port
  std::vector<std::string> out;
  const auto nodes = expand_hostlist(row.node_list);
  const proto::JobRef ref{row.job, {}};
  const auto first = session.call<proto::NetworkProbed>(proto::ProbeNetwork{ref, "", ""});
  if (!first || !nodes) return out;  // the job has no network of its own, or not yet
  const proto::AttemptNetwork& own = first->network;
  if (own.denied_packets > 0)
    out.push_back(
        fmt::format("On {} its network refused {}: its profile ({}) does not name where "
                    "they went (gctl network show {}).",
                    first->node, counted(static_cast<std::int64_t>(own.denied_packets), "packet"),
                    own.reach.profile, row.job.value()));
  if (!own.no_way_out.empty())
    out.push_back(fmt::format("Its network has no way out: {}.", own.no_way_out));
  std::size_t tried = 0;
  for (const std::string& peer : *nodes) {
    if (peer == first->node || tried == kMostPeers) continue;
    ++tried;
    const auto found =
        session.call<proto::NetworkProbed>(proto::ProbeNetwork{ref, first->node, peer + ":1"});
    if (!found) continue;
    const proto::AttemptNetwork& n = found->network;
    if (n.result != proto::ProbeResult::open && n.why.find(kAnswered) == std::string::npos)
      out.push_back(fmt::format("{} does not reach its part on {}: {}.", first->node, peer, n.why));
  }
  return out;
}

namespace {

// ---- show

using tenancy::NetworkProfile;
using tenancy::NetworkService;
using tenancy::Tenant;
using tenancy::TenantNetwork;

template <class T>
const T* find(const std::vector<tenancy::Document>& documents, const std::string& name) {
  for (const auto& document : documents)
    if (const T* one = std::get_if<T>(&document); one != nullptr && one->name == name) return one;
  return nullptr;
}

void print_services(const std::vector<tenancy::Document>& documents,
                    const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (const auto* service = find<NetworkService>(documents, name))
      for (const std::string& range : service->to) line("to", range + " (" + name + ")");
}

void print_profile(const std::vector<tenancy::Document>& documents, const TenantNetwork& network,
                   const std::string& name, bool by_default) {
  fmt::print("profile {}{}\n", name, by_default ? " (default)" : "");
  line("own parts", "all ports, both ways");
  const auto* profile = find<NetworkProfile>(documents, name);
  if (profile == nullptr && name == tenancy::kBasicProfile) {
    line("resolvers", "as the node has them");
    print_services(documents, network.services);
  }
  if (profile == nullptr) return;
  if (profile->resolvers) line("resolvers", "as the node has them");
  for (const std::string& range : profile->to) line("to", range);
  print_services(documents, profile->services);
  if (profile->internet) line("to", "the internet");
  if (!profile->proxy.empty()) line("proxy", profile->proxy);
  if (profile->same_tenant) line("to and from", "the tenant's jobs whose profile says so too");
  for (const std::string& peer : profile->to_tenants) line("to tenant", peer);
  for (const std::string& peer : profile->from_tenants) line("from tenant", peer);
}

Result<int> show_tenant(const Invocation& in, const std::string& name) {
  ASSIGN(got, ask<proto::TenancyDocuments>(in.program(), proto::GetTenancy{}));
  const auto* tenant = find<Tenant>(got->documents, name);
  if (tenant == nullptr)
    return fail(ErrorCode::not_found,
                fmt::format("there is no tenant {} that you see, and it is no job", name));
  TenantNetwork network = tenant->network;
  if (const auto* tier = find<tenancy::Tier>(got->documents, tenant->tier)) {
    const TenantNetwork& theirs = tier->defaults.network;
    if (network.default_profile.empty()) network.default_profile = theirs.default_profile;
    if (network.profiles.empty()) network.profiles = theirs.profiles;
    if (network.services.empty()) network.services = theirs.services;
  }
  const std::string first = network.default_profile.empty() ? std::string(tenancy::kBasicProfile)
                                                            : network.default_profile;
  fmt::print("tenant {}\n", name);
  print_profile(got->documents, network, first, true);
  for (const std::string& other : network.profiles)
    if (other != first) print_profile(got->documents, network, other, false);
  if (first != tenancy::kOwnProfile)
    print_profile(got->documents, network, std::string(tenancy::kOwnProfile), false);
  return 0;
}

Result<int> run_show(const Invocation& in) {
  NetworkOptions options;
  OPERANDS(operands, in, &options, 1, 1);
  const std::string& what = (**operands).front();
  if (what.empty() || what.front() < '0' || what.front() > '9') return show_tenant(in, what);
  ASSIGN(found, probe(in, options, what, ""));
  if (options.json)
    fmt::print("{}\n", codec::to_json(*found, codec::JsonStyle::pretty));
  else
    print_job(*found);
  return 0;
}

// ---- probe

// Finds the words of the profile that decide about the target, an address or a node's name.
std::string rule_for(const proto::AttemptNetwork& network, const std::string& target) {
  const auto colon = target.rfind(':');
  std::string host = target.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto address = parse_network_range(host);
  const auto ports = parse_ports("tcp/" + target.substr(colon + 1));
  if (!address || !ports) return "it is a part of the job";
  const auto within = [&](std::string_view text) {
    const auto range = parse_network_range(text);
    return range && range->holds(*address) &&
           (range->ports.protocol == PortProtocol::any ||
            (range->ports.protocol == PortProtocol::tcp && range->ports.first <= ports->first &&
             ports->first <= range->ports.last));
  };
  for (const std::string& server : network.resolvers)
    if (ports->first == 53 && within(server)) return "it is a resolver";
  for (const std::string_view never : kNeverReached)
    if (within(never)) return fmt::format("no job reaches {}", never);
  for (const std::string& range : network.reach.ranges)
    if (within(range)) return fmt::format("the profile has {}", range);
  if (network.reach.internet &&
      std::none_of(std::begin(kNotInternet), std::end(kNotInternet), within))
    return "the profile has the internet";
  if (!network.reach.to.empty() && address->six)
    return "the profile has jobs of tenants, and this may be one";
  return "it is reached if it is a part of the job, and the profile names nothing else there";
}

Result<int> run_probe(const Invocation& in) {
  NetworkOptions options;
  OPERANDS(operands, in, &options, 2, 2);
  const std::string& target = (**operands)[1];
  ASSIGN(found, probe(in, options, (**operands)[0], target));
  const proto::AttemptNetwork& network = found->network;
  const bool open = network.result == proto::ProbeResult::open;
  if (options.json) {
    fmt::print("{}\n", codec::to_json(*found, codec::JsonStyle::pretty));
    return open ? 0 : 1;
  }
  fmt::print("job {} on {}: {} is {}{}\n", found->job.value(), found->node, target,
             enum_name(network.result), network.why.empty() ? "" : ": " + network.why);
  fmt::print("profile {}: {}\n", network.reach.profile, rule_for(network, target));
  if (!network.no_way_out.empty()) fmt::print("no way out: {}\n", network.no_way_out);
  return open ? 0 : 1;
}

const Command kShow{
    {"show", "What a running job, or the jobs of a tenant, may reach", "JOB|TENANT"},
    {.options = kOptions,
     .examples = {{"gctl network show 12",
                   "The addresses of job 12, what it reaches, what it sent and was refused"},
                  {"gctl network show fraud",
                   "The network profiles that jobs of tenant fraud may have"}},
     .run = run_show}};
const Command kProbe{
    {"probe", "Try to connect from within a job's network", "JOB HOST:PORT"},
    {.description = "The node's daemon tries it by TCP in the job's network and closes the "
                    "connection at once; HOST is an address or a node of the job. Ends with 0 "
                    "if it was open. For the job's owner and operators.",
     .options = kOptions,
     .examples = {{"gctl network probe 12 10.1.0.7:443",
                   "Whether job 12 can connect there, tried from within"},
                  {"gctl network probe -w n2 12 n1:29500",
                   "Whether its part on n2 reaches port 29500 on n1"}},
     .run = run_probe}};
constexpr const Command* kSub[] = {&kShow, &kProbe};

}  // namespace

const Command kGctlNetwork{
    {"network", "What jobs reach, and whether an address answers"},
    {.examples = {{"gctl network show 12", "What job 12 reaches, and what it was refused"},
                  {"gctl network probe 12 10.1.0.7:443", "Try it"}},
     .sub = kSub}};

}  // namespace gantry::cli::gctl_network
