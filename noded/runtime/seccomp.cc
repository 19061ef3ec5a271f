#include "noded/runtime/seccomp.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include "noded/machine/files.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace gantry::runtime {
namespace {

struct Condition {
  unsigned index = 0;
  std::uint64_t value = 0;
  std::uint64_t value_two = 0;
  std::string op;
};

struct Rule {
  std::vector<std::string> names;
  bool allow = false;
  std::uint32_t error = EPERM;  // errno of a denied call
  std::vector<Condition> conditions;
};

constexpr std::uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// System calls that the list allows and a job must not have.
constexpr std::array kDenied{"setns",
                             "mount",
                             "umount",
                             "umount2",
                             "pivot_root",
                             "open_tree",
                             "move_mount",
                             "fsopen",
                             "fsconfig",
                             "fsmount",
                             "fspick",
                             "mount_setattr",
                             "io_uring_setup",
                             "io_uring_enter",
                             "io_uring_register",
                             "keyctl",
                             "add_key",
                             "request_key",
                             "bpf",
                             "perf_event_open",
                             "userfaultfd",
                             "quotactl",
                             "fanotify_init"};

// And those that a hardened job must not have either.
constexpr std::array kHardenedDenied{"ptrace",
                                     "process_vm_readv",
                                     "process_vm_writev",
                                     "process_madvise",
                                     "process_mrelease",
                                     "modify_ldt",
                                     "pidfd_getfd",
                                     "personality",
                                     "name_to_handle_at",
                                     "open_by_handle_at",
                                     "memfd_secret",
                                     "remap_file_pages",
                                     "fanotify_mark",
                                     "uselib",
                                     "ustat",
                                     "sysfs",
                                     "lookup_dcookie",
                                     "syslog"};

// The only socket families that a job may use. All others are useless without a capability, or
// ignore network namespaces: with AF_VSOCK jobs on one node could communicate with each other and
// with the hypervisor, bypassing all rules of their networks.
constexpr std::array<std::uint64_t, 4> kFamilies{AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

const char* kArch =
#if defined(__x86_64__)
    "amd64";
#elif defined(__aarch64__)
    "arm64";
#else
    "";
#endif

std::vector<std::uint32_t> architectures(CallFilter filter) {
#if defined(__x86_64__)
  std::vector<std::uint32_t> all{SCMP_ARCH_X86_64, SCMP_ARCH_X86};  // nothing uses x32
#elif defined(__aarch64__)
  std::vector<std::uint32_t> all{SCMP_ARCH_AARCH64, SCMP_ARCH_ARM};
#else
  std::vector<std::uint32_t> all;
#endif
  if (filter == CallFilter::hardened && all.size() > 1) all.resize(1);
  return all;
}

std::vector<std::string> texts(const rapidjson::Value& object, const char* outer,
                               const char* inner) {
  std::vector<std::string> out;
  const auto a = object.FindMember(outer);
  if (a == object.MemberEnd() || !a->value.IsObject()) return out;
  const auto b = a->value.FindMember(inner);
  if (b == a->value.MemberEnd() || !b->value.IsArray()) return out;
  for (const auto& v : b->value.GetArray())
    if (v.IsString()) out.emplace_back(v.GetString());
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// Whether this entry applies to a process on this machine that has no capability.
bool counts(const rapidjson::Value& entry) {
  const auto arches = texts(entry, "includes", "arches");
  return texts(entry, "includes", "caps").empty() && (arches.empty() || has(arches, kArch)) &&
         !has(texts(entry, "excludes", "arches"), kArch);
}

std::uint64_t number(const rapidjson::Value& object, const char* name, std::uint64_t fallback) {
  const auto it = object.FindMember(name);
  return it != object.MemberEnd() && it->value.IsUint64() ? it->value.GetUint64() : fallback;
}

bool special(const std::string& name, CallFilter filter) {
  const auto among = [&](const auto& list) { return std::ranges::find(list, name) != list.end(); };
  return name == "clone" || name == "clone3" || name == "unshare" || name == "socket" ||
         name == "socketcall" || among(kDenied) ||
         (filter == CallFilter::hardened && among(kHardenedDenied));
}

Result<std::vector<Rule>> read_rules(const std::string& list, CallFilter filter) {
  rapidjson::Document document;
  document.Parse(list.data(), list.size());
  if (document.HasParseError() || !document.IsObject() || !document.HasMember("syscalls") ||
      !document["syscalls"].IsArray())
    return fail(ErrorCode::malformed, "not a containers seccomp list");
  std::vector<Rule> rules;
  for (const auto& entry : document["syscalls"].GetArray()) {
    if (!entry.IsObject() || !entry.HasMember("names") || !entry.HasMember("action") ||
        !counts(entry))
      continue;
    Rule rule;
    rule.allow = std::string_view(entry["action"].GetString()) == "SCMP_ACT_ALLOW";
    rule.error = static_cast<std::uint32_t>(number(entry, "errnoRet", EPERM));
    for (const auto& name : entry["names"].GetArray())
      if (!special(name.GetString(), filter)) rule.names.emplace_back(name.GetString());
    if (entry.HasMember("args") && entry["args"].IsArray())
      for (const auto& a : entry["args"].GetArray())
        rule.conditions.push_back({static_cast<unsigned>(number(a, "index", 0)),
                                   number(a, "value", 0), number(a, "valueTwo", 0),
                                   a["op"].GetString()});
    if (!rule.names.empty()) rules.push_back(std::move(rule));
  }
  return rules;
}

void add_own(std::vector<Rule>& rules) {
  rules.push_back({{kDenied.begin(), kDenied.end()}, false, EPERM, {}});
  rules.push_back({{"clone3"}, false, ENOSYS, {}});  // libraries fall back to clone
  const std::string masked = "SCMP_CMP_MASKED_EQ";
  rules.push_back({{"clone"}, true, 0, {{0, kNewNamespaces, 0, masked}}});
  rules.push_back({{"unshare"}, true, 0, {{0, kNewNamespaces | CLONE_NEWTIME, 0, masked}}});
  for (std::uint64_t bit = 1; bit <= CLONE_NEWNET; bit <<= 1) {
    if ((kNewNamespaces & bit) != 0)
      rules.push_back({{"clone"}, false, EPERM, {{0, bit, bit, masked}}});
    if (((kNewNamespaces | CLONE_NEWTIME) & bit) != 0)
      rules.push_back({{"unshare"}, false, EPERM, {{0, bit, bit, masked}}});
  }
}

// All other families get ENOSYS, like every call without a rule: libseccomp accepts no second
// action for other values of the same argument. A filter cannot read socketcall's arguments, so the
// call is not allowed; 32-bit libraries call socket directly since Linux 4.3.
void add_sockets(std::vector<Rule>& rules) {
  for (const std::uint64_t family : kFamilies)
    rules.push_back({{"socket"}, true, 0, {{0, family, 0, "SCMP_CMP_EQ"}}});
}

// TCP and UDP over IP, unix sockets, and the netlink sockets with which the C library reads the
// machine's addresses.
void add_hardened(std::vector<Rule>& rules) {
  rules.push_back({{kHardenedDenied.begin(), kHardenedDenied.end()}, false, EPERM, {}});
  const std::string equal = "SCMP_CMP_EQ", masked = "SCMP_CMP_MASKED_EQ";
  constexpr std::uint64_t kTypes = 0xf;  // higher bits are flags
  rules.push_back({{"socket"}, true, 0, {{0, AF_UNIX, 0, equal}}});
  rules.push_back({{"socket"}, true, 0, {{0, AF_NETLINK, 0, equal}, {2, NETLINK_ROUTE, 0, equal}}});
  for (const std::uint64_t family : {AF_INET, AF_INET6})
    for (const auto& [type, protocol] :
         {std::pair{SOCK_STREAM, IPPROTO_TCP}, std::pair{SOCK_DGRAM, IPPROTO_UDP}})
      for (const int number : {0, static_cast<int>(protocol)})
        rules.push_back({{"socket"},
                         true,
                         0,
                         {{0, family, 0, equal},
                          {1, kTypes, static_cast<std::uint64_t>(type), masked},
                          {2, static_cast<std::uint64_t>(number), 0, equal}}});
}

std::optional<scmp_compare> compare_of(const std::string& op) {
  static constexpr std::array<std::pair<std::string_view, scmp_compare>, 7> kOps{
      {{"SCMP_CMP_NE", SCMP_CMP_NE},
       {"SCMP_CMP_LT", SCMP_CMP_LT},
       {"SCMP_CMP_LE", SCMP_CMP_LE},
       {"SCMP_CMP_EQ", SCMP_CMP_EQ},
       {"SCMP_CMP_GE", SCMP_CMP_GE},
       {"SCMP_CMP_GT", SCMP_CMP_GT},
       {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ}}};
  for (const auto& [name, value] : kOps)
    if (name == op) return value;
  return std::nullopt;
}

Result<void> add_rule(scmp_filter_ctx filter, const Rule& rule) {
  if (!rule.allow && rule.error == ENOSYS) return {};  // every call without a rule gets ENOSYS
  std::vector<scmp_arg_cmp> args;
  for (const auto& c : rule.conditions) {
    const auto op = compare_of(c.op);
    if (!op) return fail(ErrorCode::malformed, "unknown seccomp operator " + c.op);
    args.push_back({c.index, *op, c.value, c.value_two});
  }
  const std::uint32_t action = rule.allow ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(rule.error);
  for (const auto& name : rule.names) {
    const int number = ::seccomp_syscall_resolve_name(name.c_str());
    if (number == __NR_SCMP_ERROR) continue;  // this machine has no such call
    const int rc = ::seccomp_rule_add_array(filter, action, number,
                                            static_cast<unsigned>(args.size()), args.data());
    if (rc != 0 && rc != -EEXIST && rc != -EDOM)
      return fail(ErrorCode::internal, errno_text("seccomp rule " + name, -rc));
  }
  return {};
}

Result<std::string> compile(const std::vector<Rule>& rules, CallFilter which) {
  struct Context {
    scmp_filter_ctx filter = ::seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    ~Context() {
      if (filter != nullptr) ::seccomp_release(filter);
    }
  } context;
  if (context.filter == nullptr) return fail(ErrorCode::internal, "seccomp_init");
  for (const auto arch : architectures(which))
    if (const int rc = ::seccomp_arch_add(context.filter, arch); rc != 0 && rc != -EEXIST)
      return fail(ErrorCode::internal, errno_text("seccomp architecture", -rc));
  // Makes libseccomp emit a binary tree instead of a list.
  ::seccomp_attr_set(context.filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
  for (const auto& rule : rules) TRY(add_rule(context.filter, rule));
  const Fd memory(::memfd_create("seccomp", MFD_CLOEXEC));
  if (const int rc = ::seccomp_export_bpf(context.filter, memory.get()); rc != 0)
    return fail(ErrorCode::internal, errno_text("seccomp_export_bpf", -rc));
  return read_file("/proc/self/fd/" + std::to_string(memory.get()));
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t v = 0;
    for (std::size_t k = 0; k < 3; ++k)
      v = v << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k <= bytes.size() ? kDigits[v >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string to_oci(const std::vector<Rule>& rules, CallFilter which) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> w(buffer);
  w.StartObject();
  w.Key("defaultAction");
  w.String("SCMP_ACT_ERRNO");
  w.Key("defaultErrnoRet");
  w.Uint(ENOSYS);
  w.Key("architectures");
  w.StartArray();
  for (const auto arch : architectures(which))
    w.String(arch == SCMP_ARCH_X86_64    ? "SCMP_ARCH_X86_64"
             : arch == SCMP_ARCH_X86     ? "SCMP_ARCH_X86"
             : arch == SCMP_ARCH_X32     ? "SCMP_ARCH_X32"
             : arch == SCMP_ARCH_AARCH64 ? "SCMP_ARCH_AARCH64"
                                         : "SCMP_ARCH_ARM");
  w.EndArray();
  w.Key("syscalls");
  w.StartArray();
  for (const auto& rule : rules) {
    w.StartObject();
    w.Key("names");
    w.StartArray();
    for (const auto& name : rule.names) w.String(name.c_str());
    w.EndArray();
    w.Key("action");
    w.String(rule.allow ? "SCMP_ACT_ALLOW" : "SCMP_ACT_ERRNO");
    if (!rule.allow) {
      w.Key("errnoRet");
      w.Uint(rule.error);
    }
    if (!rule.conditions.empty()) {
      w.Key("args");
      w.StartArray();
      for (const auto& c : rule.conditions) {
        w.StartObject();
        w.Key("index");
        w.Uint(c.index);
        w.Key("value");
        w.Uint64(c.value);
        w.Key("valueTwo");
        w.Uint64(c.value_two);
        w.Key("op");
        w.String(c.op.c_str());
        w.EndObject();
      }
      w.EndArray();
    }
    w.EndObject();
  }
  w.EndArray();
  w.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace

Result<SeccompFilter> compile_seccomp(const std::string& list, CallFilter which) {
  ASSIGN(rules, read_rules(list, which));
  add_own(*rules);
  if (which == CallFilter::hardened)
    add_hardened(*rules);
  else
    add_sockets(*rules);
  ASSIGN(bpf, compile(*rules, which));
  SeccompFilter filter;
  filter.base64 = base64(*bpf);
  filter.bpf = std::move(*bpf);
  filter.oci = to_oci(*rules, which);
  return filter;
}

}  // namespace gantry::runtime
