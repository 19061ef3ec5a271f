// NetworkPolicy: what Kubernetes' policies allow, as a NetworkProfile. Everything is denied first
// in both, so a policy is what it allows. What jobs cannot have (labels of pods, ports by name,
// ingress from addresses) is an error that names the field.
#include <fmt/core.h>

#include <algorithm>

#include "common/text/network_range.h"
#include "config/tenancy/files/k8s_objects.h"
#include "config/tenancy/read_network.h"
#include "config/tenancy/read_parts.h"

namespace gantry::tenancy {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

struct Selector {
  bool everything = true;          // {}
  std::vector<std::string> names;  // names of namespaces, by kNameLabel
};

// Runs `read` for each item of a list.
Result<void> each(const Value& value, const Keys::Handler& read) {
  ASSIGN(items, value.items());
  for (const Value& item : *items)
    if (auto done = read(item); !done) return done;
  return {};
}

class PolicyReader {
 public:
  PolicyReader(const Meta& meta, Translation& into, NetworkParts& parts)
      : meta_(meta), into_(into), parts_(parts) {}

  Result<void> read_spec(const Value& value) {
    std::optional<Value> ingress, egress, types;
    bool says_ingress = false, says_egress = false;
    const auto keep = [](std::optional<Value>& out) {
      return [&out](const Value& v) -> Result<void> {
        out = v;
        return {};
      };
    };
    auto done = Keys(value, into_, meta_)
                    .required("podSelector", [&](const Value& v) { return read_pods(v); })
                    .on("policyTypes", keep(types))
                    .on("ingress", keep(ingress))
                    .on("egress", keep(egress))
                    .run();
    if (!done) return done;
    if (!types) {  // as the API server fills it in
      says_ingress = true;
      says_egress = egress.has_value();
    } else {
      done = each(*types, [&](const Value& type) -> Result<void> {
        static constexpr std::array<std::string_view, 2> kTypes{"Ingress", "Egress"};
        std::string text;
        if (auto r = expect_choice(type, kTypes, text); !r) return r;
        (text == "Ingress" ? says_ingress : says_egress) = true;
        return {};
      });
      if (!done) return done;
    }
    if (ingress && !says_ingress) return ingress->wrong("`policyTypes` lacks Ingress");
    if (egress && !says_egress) return egress->wrong("`policyTypes` lacks Egress");
    parts_.ingress = parts_.ingress || says_ingress;
    parts_.egress = parts_.egress || says_egress;
    if (ingress) done = each(*ingress, [&](const Value& rule) { return read_rule(rule, true); });
    if (done && egress)
      done = each(*egress, [&](const Value& rule) { return read_rule(rule, false); });
    return done;
  }

 private:
  static void add(std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  }

  // Selects all pods, or it is an error: jobs have no labels.
  Result<void> read_pods(const Value& value) {
    ASSIGN(selector, read_selector(value));
    if (selector->everything) return {};
    return value.wrong("jobs have no labels to select by; `{}` means all jobs of the tenant");
  }

  // Without `any`, labels other than that of a namespace's name are an error.
  Result<Selector> read_selector(const Value& value, bool namespaces = false, bool any = false) {
    Selector out;
    const auto other = [&](const Value& at) -> Result<void> {
      out.everything = false;
      if (!namespaces || any) return {};
      return at.wrong(fmt::format("namespaces are selected by the label {} alone", kNameLabel));
    };
    const auto labels = [&](const Value& v) -> Result<void> {
      ASSIGN(entries, v.entries());
      for (const Value::Entry& entry : *entries) {
        ASSIGN(text, entry.value.text());
        out.everything = false;
        if (namespaces && entry.key == kNameLabel)
          out.names.push_back(*text);
        else if (auto r = other(entry.value); !r)
          return r;
      }
      return {};
    };
    const auto expression = [&](const Value& v) -> Result<void> {
      std::string key, how;
      std::vector<std::string> values;
      auto done = Keys(v, into_, meta_)
                      .text("key", key)
                      .text("operator", how)
                      .on("values",
                          [&](const Value& list) {
                            return each(list, [&](const Value& item) -> Result<void> {
                              ASSIGN(text, item.text());
                              values.push_back(*text);
                              return {};
                            });
                          })
                      .run();
      if (!done) return done;
      out.everything = false;
      if (!namespaces || key != kNameLabel || how != "In" || !out.names.empty()) return other(v);
      out.names = values;
      return {};
    };
    ASSIGN(done, Keys(value, into_, meta_)
                     .on("matchLabels", labels)
                     .on("matchExpressions", [&](const Value& v) { return each(v, expression); })
                     .run());
    return out;
  }

  Result<void> read_port(const Value& value, std::vector<PortRange>& out) {
    std::string protocol = "TCP", port, last;
    std::optional<Value> port_value;
    auto done = Keys(value, into_, meta_)
                    .text("protocol", protocol)
                    .on("port",
                        [&](const Value& v) -> Result<void> {
                          ASSIGN(text, v.text());
                          port = *text;
                          port_value = v;
                          return {};
                        })
                    .text("endPort", last)
                    .run();
    if (!done) return done;
    if (protocol != "TCP" && protocol != "UDP")
      return value.wrong(fmt::format("`protocol` \"{}\" is not TCP or UDP", protocol));
    std::string text = protocol == "TCP" ? "tcp" : "udp";
    if (!port.empty()) text += "/" + port;
    if (!last.empty()) text += "-" + last;
    const auto ports = parse_ports(text);
    if (!ports && port_value && port.find_first_not_of("0123456789") != std::string::npos)
      return port_value->wrong("jobs have no ports with names; give its number");
    if (!ports) return value.wrong(ports.error().message);
    out.push_back(*ports);
    return {};
  }

  static bool of_dns(const std::vector<PortRange>& ports) {
    return !ports.empty() && std::all_of(ports.begin(), ports.end(), [](const PortRange& p) {
      return p.first == 53 && p.last == 53;
    });
  }

  Result<void> read_rule(const Value& value, bool inward) {
    const std::string_view side = inward ? "from" : "to";
    std::vector<PortRange> ports;
    std::optional<Value> peers;
    auto done = Keys(value, into_, meta_)
                    .on("ports",
                        [&](const Value& v) {
                          return each(v, [&](const Value& p) { return read_port(p, ports); });
                        })
                    .on(side,
                        [&](const Value& v) -> Result<void> {
                          peers = v;
                          return {};
                        })
                    .run();
    if (!done) return done;
    ASSIGN(items, peers ? peers->items() : Result<std::vector<Value>>());
    if (items->empty() && !inward && of_dns(ports)) {
      parts_.resolvers = true;
      into_.note(meta_, value, "DNS goes to the site's resolvers, and nowhere else");
      return {};
    }
    if (items->empty())
      return value.wrong(
          inward ? "is for everybody; name the namespaces whose jobs may connect"
                 : "is to everywhere, the cluster and its machines with it; name an ipBlock");
    if (ports.empty()) ports.emplace_back();
    for (const Value& peer : *items)
      if (auto r = read_peer(peer, inward, ports); !r) return r;
    return {};
  }

  Result<void> read_peer(const Value& value, bool inward, const std::vector<PortRange>& ports) {
    std::optional<Value> block, pods, namespaces;
    const auto keep = [](std::optional<Value>& out) {
      return [&out](const Value& v) -> Result<void> {
        out = v;
        return {};
      };
    };
    auto done = Keys(value, into_, meta_)
                    .on("ipBlock", keep(block))
                    .on("podSelector", keep(pods))
                    .on("namespaceSelector", keep(namespaces))
                    .run();
    if (!done) return done;
    if (!block && !pods && !namespaces)
      return value.wrong("has none of ipBlock, podSelector and namespaceSelector");
    if (block && (pods || namespaces))
      return value.wrong("has an ipBlock and a selector; the API server refuses that too");
    if (block && inward) return block->wrong("nobody outside of the cluster can connect to a job");
    if (block) return read_block(*block, ports);
    // In Kubernetes the cluster's DNS is in a namespace; here it is the site's.
    if (namespaces && !inward && of_dns(ports)) {
      TRY(read_selector(*namespaces, true, true));
      parts_.resolvers = true;
      return {};
    }
    if (pods)
      if (auto r = read_pods(*pods); !r) return r;
    std::vector<std::string> tenants{meta_.name_space};
    if (namespaces) {
      ASSIGN(which, read_selector(*namespaces, true));
      if (which->everything)
        return namespaces->wrong("selects every namespace; name each by the label " +
                                 std::string(kNameLabel));
      tenants = which->names;
    }
    for (const std::string& tenant : tenants)
      for (const PortRange& port : ports) {
        const std::string text = to_string(port);
        add(inward ? parts_.from_tenants : parts_.to_tenants,
            text.empty() ? tenant : tenant + " " + text);
      }
    return {};
  }

  Result<void> read_block(const Value& value, const std::vector<PortRange>& ports) {
    std::vector<NetworkRange> ranges;
    std::vector<std::pair<Value, NetworkRange>> except;
    const auto cidr = [](const Value& v) -> Result<NetworkRange> {
      ASSIGN(text, v.text());
      const auto range = parse_network_range(*text);
      if (!range || text->find('/') == std::string::npos || text->find(' ') != std::string::npos)
        return v.wrong(range ? "\"" + *text + "\" is not a CIDR" : range.error().message);
      return *range;
    };
    auto done = Keys(value, into_, meta_)
                    .required("cidr",
                              [&](const Value& v) -> Result<void> {
                                ASSIGN(range, cidr(v));
                                ranges.push_back(*range);
                                return {};
                              })
                    .on("except",
                        [&](const Value& v) {
                          return each(v, [&](const Value& item) -> Result<void> {
                            ASSIGN(range, cidr(item));
                            except.emplace_back(item, *range);
                            return {};
                          });
                        })
                    .run();
    if (!done) return done;
    const NetworkRange all = ranges.front();
    for (const auto& [at, hole] : except) {
      if (!all.holds(hole) || hole == all)
        return at.wrong(fmt::format("is no part of {}", address_text(all)));
      std::vector<NetworkRange> left;
      for (const NetworkRange& range : ranges)
        for (const NetworkRange& part : without(range, hole)) left.push_back(part);
      ranges = std::move(left);
    }
    return add_ranges(value, ranges, ports);
  }

  Result<void> add_ranges(const Value& value, std::vector<NetworkRange> ranges,
                          const std::vector<PortRange>& ports) {
    std::sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) {
      return std::tie(a.address, a.bits) < std::tie(b.address, b.bits);
    });
    bool closed = false;
    for (NetworkRange& range : ranges) {
      bool never = false;
      for (const std::string_view text : kNeverReached) {
        const NetworkRange one = *parse_network_range(text);
        never = never || one.holds(range);
        closed = closed || one.holds(range) || range.holds(one);
      }
      for (const PortRange& port : ports) {
        range.ports = port;
        if (!never) add(parts_.to, to_string(range));
      }
    }
    if (closed)
      into_.note(meta_, value,
                 "loopback, link-local and multicast addresses, metadata services and the "
                 "cluster's machines stay closed");
    if (parts_.to.size() > kMostRanges)
      return value.wrong(fmt::format("is {} ranges with those before it; a profile has at most {}",
                                     parts_.to.size(), kMostRanges));
    return {};
  }

  const Meta& meta_;
  Translation& into_;
  NetworkParts& parts_;
};

}  // namespace

std::string profile_name(const std::string& name_space) {
  return "policy-" + name_space;
}

NetworkProfile profile_of(const std::string& name_space, const NetworkParts& parts) {
  NetworkProfile out;
  out.name = profile_name(name_space);
  out.description = "The NetworkPolicies of namespace " + name_space;
  out.resolvers = parts.resolvers || !parts.egress;
  out.to = parts.to;
  out.to_tenants = parts.to_tenants;
  out.from_tenants = parts.from_tenants;
  const auto copy_own = [&](const std::vector<std::string>& from, std::vector<std::string>& to) {
    for (const std::string& peer : from)
      if (peer == name_space || peer.starts_with(name_space + " ")) to.push_back(peer);
  };
  if (!parts.ingress) copy_own(parts.to_tenants, out.from_tenants);
  if (!parts.egress) copy_own(parts.from_tenants, out.to_tenants);
  return out;
}

Result<void> read_network_policy(const Value& root, const Meta& meta, Translation& into) {
  (void)into.in_namespace(meta);
  NetworkParts& parts = into.networks[meta.name_space];
  if (parts.object.empty()) {
    parts.place = meta.place;
    parts.object = meta.shown();
  }
  PolicyReader reader(meta, into, parts);
  return object_keys(root, into, meta)
      .required("spec", [&](const Value& value) { return reader.read_spec(value); })
      .run();
}

}  // namespace gantry::tenancy
