#include "noded/network/rules.h"

#include <fmt/core.h>

namespace gantry::network {
namespace {

// Refusals are limited, so that a job which asks without an end does not make its node answer
// without an end. What is not refused is dropped. A connection by TCP is reset, because the kernel
// limits the number of ICMP messages once more.
constexpr std::string_view kChains = R"(
  counter spoofed { }
  counter denied { }
  counter unexpected { }
  counter to_node { }
  chain refuse {
    limit rate over 2000/second burst 2000 packets drop
    meta l4proto tcp reject with tcp reset
    reject with icmpx admin-prohibited
  }
  chain from_job {
    meta nfproto ipv6 iifname . ip6 saddr != @own6 counter name spoofed drop
    meta nfproto ipv4 iifname . ip saddr != @own4 counter name spoofed drop
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
    iifname "j*" jump from_job
    ip6 saddr . ip6 daddr @pairs6 accept
    ip saddr . ip daddr @pairs4 accept
    iifname "j*" counter name denied goto refuse
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
                                         {"pairs6", "ipv6_addr . ipv6_addr"},
                                         {"pairs4", "ipv4_addr . ipv4_addr"}};

}  // namespace

RuleBook::Elements RuleBook::elements_of(const Member& member) const {
  Elements out;
  const std::string six = text_of(address6(blocks_, member.part));
  const auto four = address4(blocks_, member.part);
  out[{"own6", fmt::format("\"{}\" . {}", member.link, six)}] = 1;
  if (four) out[{"own4", fmt::format("\"{}\" . {}", member.link, text_of(*four))}] = 1;
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
  out += kChains.substr(1);
  return out;
}

std::string RuleBook::add(const proto::AttemptKey& key, Member member) {
  std::string out = remove(key);
  for (const auto& [element, one] : elements_of(member))
    if (++elements_[element] == 1)
      out += fmt::format("add element {} {} {{ {} }}\n", kTable, element.first, element.second);
  members_.insert_or_assign(key, std::move(member));
  return out;
}

std::string RuleBook::remove(const proto::AttemptKey& key) {
  const auto it = members_.find(key);
  if (it == members_.end()) return {};
  std::string out;
  for (const auto& [element, one] : elements_of(it->second)) {
    const auto held = elements_.find(element);
    if (held == elements_.end() || --held->second > 0) continue;
    out += fmt::format("delete element {} {} {{ {} }}\n", kTable, element.first, element.second);
    elements_.erase(held);
  }
  members_.erase(it);
  return out;
}

}  // namespace gantry::network
