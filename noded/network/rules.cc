#include "noded/network/rules.h"

#include <fmt/core.h>
#include <nftables/libnftables.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace gantry::network {

namespace {

// Connections that one job may have with others than its own parts on this node, so that no job
// fills the kernel's connection table.
constexpr int kMostConnections = 2048;

// Refusals are limited, so that a job that sends without end does not make its node answer without
// end. Beyond the limit packets are dropped. A TCP connection is reset, because the kernel
// additionally limits the number of ICMP messages.
constexpr std::string_view kFirstChains = R"(
  counter spoofed { }
  counter denied { }
  counter unexpected { }
  counter to_node { }
  chain refuse {
    iifname @denied_of
    limit rate over 2000/second burst 2000 packets drop
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain lie {
    iifname @denied_of drop
    drop
  }
  chain from_job {
    meta nfproto ipv6 iifname . ip6 saddr != @own6 counter name spoofed goto lie
    meta nfproto ipv4 iifname . ip saddr != @own4 counter name spoofed goto lie
  }
)";

// With `reaching`, the rules include what profiles need. Packets of the way out are those that
// leave through its link.
constexpr std::string_view kReachChains = R"(
  map leave { type ifname : verdict; }
  map enter { type ifname : verdict; }
  set flows { type mark . ifname; }
  chain untracked {
    type filter hook prerouting priority raw; policy accept;
    ip6 saddr . ip6 daddr @pairs6 notrack
    ip saddr . ip daddr @pairs4 notrack
  }
  chain never {
    ip6 daddr @never6 counter name denied goto refuse
    ip daddr @never4 counter name denied goto refuse
  }
  chain arrive {
    oifname "nodes" accept
    oifname vmap @enter
    counter name denied goto refuse
  }
)";

constexpr std::string_view kForward[] = {
    R"(
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname "j*" jump from_job
    iifname "nodes" jump from_nodes
    ip6 saddr . ip6 daddr @pairs6 accept
    ip saddr . ip daddr @pairs4 accept
)",
    R"(
    ct state established,related ct mark . iifname @flows accept
    ct state established,related ct mark . oifname @flows accept
    iifname vmap @leave
)",
    R"(
    iifname "j*" counter name denied goto refuse
)",
    R"(
    iifname "nodes" oifname vmap @enter
)"};

constexpr std::string_view kLastChains = R"(
    counter name unexpected
  }
  chain input {
    type filter hook input priority filter; policy drop;
    iifname "j*" jump from_job
    iifname "j*" counter name to_node goto refuse
  }
}
table arp gantry
delete table arp gantry
table arp gantry {
  chain input {
    type filter hook input priority filter; policy drop;
  }
}
)";

constexpr std::string_view kSets[][2] = {{"own6", "ifname . ipv6_addr"},
                                         {"own4", "ifname . ipv4_addr"},
                                         {kDeniedOf, "ifname; counter"},
                                         {"pairs6", "ipv6_addr . ipv6_addr"},
                                         {"pairs4", "ipv4_addr . ipv4_addr"}};

// The number for the link in connection entries; `j7.1` gives it its name.
std::uint32_t mark_of(const proto::AttemptKey& key) {
  return static_cast<std::uint32_t>(key.job.value() & 0xff'ffff) << 8 |
         static_cast<std::uint32_t>(key.attempt.value() & 0xff);
}

std::string match(const PortRange& ports) {
  if (ports.protocol == PortProtocol::any) return {};
  return fmt::format(" {} dport {}-{}", ports.protocol == PortProtocol::tcp ? "tcp" : "udp",
                     ports.first, ports.last);
}

std::string match(const NetworkRange& range) {
  return fmt::format("{} daddr {}{}", range.six ? "ip6" : "ip", address_text(range),
                     match(range.ports));
}

std::string text_of_file(const char* path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

bool of_this_machine(const NetworkRange& server) {
  for (const char* own : {"127.0.0.0/8", "::1/128", "fe80::/10", "0.0.0.0/32", "::/128"})
    if (parse_network_range(own)->holds(server)) return true;
  return false;
}

// The output of libnftables is `counter NAME { packets 1 bytes 2 }` with any white space, or
// `"NAME" counter packets 1 bytes 2`.
std::map<std::string, std::uint64_t> counters_in(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBetween = " \t\n,{}=";
  while (!text.empty()) {
    const auto begin = std::min(text.find_first_not_of(kBetween), text.size());
    text.remove_prefix(begin);
    const auto end = std::min(text.find_first_of(kBetween), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  std::map<std::string, std::uint64_t> out;
  for (std::size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] != "packets") continue;
    std::string_view name = words[i - 1] == "counter" ? words[i - 2] : words[i - 1];
    if (name.size() > 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    out[std::string(name)] = std::strtoull(std::string(words[i + 1]).c_str(), nullptr, 10);
  }
  return out;
}

}  // namespace

// Ranges that no job reaches, and ranges that `internet` does not include.
std::string RuleBook::sets_of_ranges() const {
  std::string out;
  for (const bool six : {true, false}) {
    std::string never, nowhere;
    const auto add = [six](std::string& to, const NetworkRange& range) {
      if (range.six != six) return;
      to += (to.empty() ? "" : ", ") + address_text(range);
    };
    for (const std::string_view text : kNeverReached) add(never, *parse_network_range(text));
    for (const std::string_view text : kNotInternet) add(nowhere, *parse_network_range(text));
    for (const NetworkRange& range : guarded_) add(never, range);
    never += six ? fmt::format(", {}/{}", text_of(blocks_.prefix), kPrefixBits)
                 : fmt::format(", {}/{}", text_of(blocks_.block), kBlockBits);
    for (const auto& [name, elements] : {std::pair{"never", never}, {"nowhere", nowhere}})
      out +=
          fmt::format("  set {}{} {{ type {}; flags interval; auto-merge; elements = {{ {} }} }}\n",
                      name, six ? 6 : 4, six ? "ipv6_addr" : "ipv4_addr", elements);
  }
  return out;
}

RuleBook::Elements RuleBook::elements_of(const Member& member) const {
  Elements out;
  const std::string six = text_of(address6(blocks_, member.part));
  const auto four = address4(blocks_, member.part);
  out[{"own6", fmt::format("\"{}\" . {}", member.link, six)}] = 1;
  if (four) out[{"own4", fmt::format("\"{}\" . {}", member.link, text_of(*four))}] = 1;
  out[{std::string(kDeniedOf), fmt::format("\"{}\"", member.link)}] = 1;
  for (const Part& peer : member.peers) {
    const std::string peer6 = text_of(address6(blocks_, peer));
    out[{"pairs6", six + " . " + peer6}] = 1;
    out[{"pairs6", peer6 + " . " + six}] = 1;
    const auto peer4 = address4(blocks_, peer);
    if (!four || !peer4) continue;
    out[{"pairs4", text_of(*four) + " . " + text_of(*peer4)}] = 1;
    out[{"pairs4", text_of(*peer4) + " . " + text_of(*four)}] = 1;
  }
  return out;
}

// Commands for the chains of one member, and the elements that point to them.
std::string RuleBook::chains_of(const proto::AttemptKey& key, const Member& member) const {
  if (!member.reach.any()) return {};
  const Reach& reach = member.reach;
  const std::string link = member.link;
  const std::uint32_t mark = mark_of(key);
  std::string out = fmt::format("add element {} flows {{ {} . \"{}\" }}\n", kTable, mark, link);
  const auto rule = [&](std::string_view chain, std::string_view what) {
    out += fmt::format("add rule {} {}_{} {}\n", kTable, chain, link, what);
  };
  const auto group = [&](std::string_view side, const Reach::Group& g) {
    return fmt::format("ip6 {} & {} == {}{} ct mark set {}", side, text_of(group_mask()),
                       text_of(group_address(blocks_, g.group)), match(g.ports), mark);
  };
  if (reach.leaves() || !reach.to.empty()) {
    out += fmt::format("add chain {} out_{}\n", kTable, link);
    rule("out", "ct state != new counter name denied goto lie");
    rule("out", fmt::format("ct count over {} counter name denied goto refuse", kMostConnections));
    for (const Reach::Group& g : reach.to) rule("out", group("daddr", g) + " counter goto arrive");
    rule("out", fmt::format("oifname != \"{}\" return", kWayLink));
    const std::string accept = fmt::format(" ct mark set {} counter accept", mark);
    for (const NetworkRange& server : reach.resolvers)
      for (const auto protocol : {PortProtocol::udp, PortProtocol::tcp}) {
        NetworkRange dns = server;
        dns.ports = {protocol, kResolverPort, kResolverPort};
        rule("out", match(dns) + accept);
      }
    rule("out", "jump never");
    for (const NetworkRange& range : reach.ranges) rule("out", match(range) + accept);
    if (reach.internet) {
      rule("out", "ip6 daddr != @nowhere6" + accept);
      rule("out", "ip daddr != @nowhere4" + accept);
    }
    out += fmt::format("add element {} leave {{ \"{}\" : jump out_{} }}\n", kTable, link, link);
  }
  if (!reach.from.empty()) {
    out += fmt::format("add chain {} in_{}\n", kTable, link);
    for (const Reach::Group& g : reach.from) rule("in", group("saddr", g) + " counter accept");
    out += fmt::format("add element {} enter {{ \"{}\" : jump in_{} }}\n", kTable, link, link);
  }
  return out;
}

// This node's own addresses must not arrive from outside.
std::string RuleBook::chain_from_nodes() const {
  std::string out =
      fmt::format("  chain from_nodes {{\n    ip6 saddr {}/{} counter name spoofed drop\n",
                  text_of(node_prefix(blocks_, node_)), kNodePrefixBits);
  if (const auto block = node_block(blocks_, node_))
    out += fmt::format("    ip saddr {}/{} counter name spoofed drop\n", text_of(*block),
                       kNodeBlockBits);
  return out + "  }\n";
}

std::string RuleBook::whole() const {
  std::string out = fmt::format("table {0}\ndelete table {0}\ntable {0} {{\n", kTable);
  for (const auto& [set, type] : kSets) {
    std::string elements;
    for (const auto& [element, count] : elements_)
      if (element.first == set) elements += (elements.empty() ? "" : ", ") + element.second;
    out += fmt::format("  set {} {{ type {};", set, type);
    if (!elements.empty()) out += fmt::format(" elements = {{ {} }}", elements);
    out += " }\n";
  }
  if (reaching_) out += sets_of_ranges();
  out += kFirstChains.substr(1);
  out += chain_from_nodes();
  if (reaching_) out += kReachChains.substr(1);
  out += kForward[0].substr(1);
  if (reaching_) out += kForward[1].substr(1);
  out += kForward[2].substr(1);
  if (reaching_) out += kForward[3].substr(1);
  out += kLastChains.substr(1);
  for (const auto& [key, member] : members_) out += chains_of(key, member);
  return out;
}

std::string RuleBook::add(const proto::AttemptKey& key, Member member) {
  std::string out = remove(key);
  for (const auto& [element, one] : elements_of(member))
    if (++elements_[element] == 1)
      out += fmt::format("add element {} {} {{ {} }}\n", kTable, element.first, element.second);
  out += chains_of(key, member);
  const bool first = member.reach.any() && !reaching_;
  reaching_ = reaching_ || first;
  members_.insert_or_assign(key, std::move(member));
  return first ? whole() : out;
}

std::string RuleBook::remove(const proto::AttemptKey& key) {
  const auto it = members_.find(key);
  if (it == members_.end()) return {};
  const Member& member = it->second;
  std::string out;
  if (member.reach.any())
    out += fmt::format("delete element {} flows {{ {} . \"{}\" }}\n", kTable, mark_of(key),
                       member.link);
  for (const auto& [map, chain, there] :
       {std::tuple{"leave", "out", member.reach.leaves() || !member.reach.to.empty()},
        {"enter", "in", !member.reach.from.empty()}})
    if (there)
      out += fmt::format(
          "delete element {0} {1} {{ \"{3}\" }}\nflush chain {0} {2}_{3}\n"
          "delete chain {0} {2}_{3}\n",
          kTable, map, chain, member.link);
  for (const auto& [element, one] : elements_of(member)) {
    const auto held = elements_.find(element);
    if (held == elements_.end() || --held->second > 0) continue;
    out += fmt::format("delete element {} {} {{ {} }}\n", kTable, element.first, element.second);
    elements_.erase(held);
  }
  members_.erase(it);
  return out;
}

std::vector<NetworkRange> resolvers_of(std::string_view resolv_conf) {
  std::vector<NetworkRange> out;
  std::istringstream lines{std::string(resolv_conf)};
  for (std::string line; std::getline(lines, line) && out.size() < kMostResolvers;) {
    std::istringstream words(line);
    std::string key, server;
    words >> key >> server;
    if (key != "nameserver" || server.find('/') != std::string::npos) continue;
    const auto range = parse_network_range(server);
    if (range && !of_this_machine(*range)) out.push_back(*range);
  }
  return out;
}

std::vector<NetworkRange> resolvers_here(const std::vector<std::string>& configured) {
  std::vector<NetworkRange> out;
  for (const std::string& server : configured)
    if (const auto range = parse_network_range(server)) out.push_back(*range);
  if (out.empty()) out = resolvers_of(text_of_file("/etc/resolv.conf"));
  if (out.empty()) out = resolvers_of(text_of_file("/run/systemd/resolve/resolv.conf"));
  return out;
}

void Filter::CloseContext::operator()(nft_ctx* context) const {
  ::nft_ctx_free(context);
}

Result<Filter> Filter::open() {
  nft_ctx* context = ::nft_ctx_new(NFT_CTX_DEFAULT);
  if (context == nullptr)
    return fail(ErrorCode::unavailable, "libnftables cannot reach the kernel's packet filter");
  Filter out(context);
  ::nft_ctx_buffer_output(context);
  ::nft_ctx_buffer_error(context);
  return out;
}

Result<void> Filter::run(const std::string& commands) {
  if (commands.empty()) return {};
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), commands.c_str());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  (void)::nft_ctx_get_output_buffer(context_.get());
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter refuses its rules: {}",
                                                    said.substr(0, said.find('\n'))));
  return {};
}

Result<std::uint64_t> Filter::packets_of(const std::string& table, const std::string& set,
                                         const std::string& link) {
  const std::string command = fmt::format("get element {} {} {{ \"{}\" }}", table, set, link);
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  const std::string out = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  constexpr std::string_view kPackets = "counter packets ";
  const auto at = out.find(kPackets, out.find("elements"));
  if (failed != 0 || at == std::string::npos)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return std::strtoull(out.c_str() + at + kPackets.size(), nullptr, 10);
}

Result<std::map<std::string, std::uint64_t>> Filter::counters(const std::string& command) {
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  const std::string text = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return counters_in(text);
}

Result<std::string> Filter::list(const std::string& table) {
  ::nft_ctx_output_set_flags(context_.get(), NFT_CTX_OUTPUT_JSON);
  const std::string command = "list table " + table;
  const int failed = ::nft_run_cmd_from_buffer(context_.get(), command.c_str());
  std::string out = ::nft_ctx_get_output_buffer(context_.get());
  const std::string said = ::nft_ctx_get_error_buffer(context_.get());
  ::nft_ctx_output_set_flags(context_.get(), 0);
  if (failed != 0)
    return fail(ErrorCode::unavailable, fmt::format("the packet filter cannot be read: {}",
                                                    said.substr(0, said.find('\n'))));
  return out;
}

}  // namespace gantry::network
