#include "noded/gpu/health/xid.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "noded/machine/files.h"

namespace gantry::gpu {

namespace {

using enum XidAction;

constexpr std::array<XidRule, 29> kRules{{
    {13, note, "exception of a program on the graphics engine"},
    {31, note, "a program used memory that is not its own"},
    {38, fail_gpu, "the driver's firmware failed"},
    {43, note, "a program was stopped on the GPU"},
    {45, note, "a program's channel was taken down"},
    {46, fail_gpu, "the GPU stopped processing"},
    {48, fail_gpu, "uncorrectable memory error"},
    {61, fail_gpu, "the GPU's own controller stopped"},
    {62, fail_gpu, "the GPU's own controller halted"},
    {63, note, "a memory row is to be remapped at the next reset"},
    {64, fail_gpu, "a memory row could not be remapped"},
    {68, note, "exception of a program on the video engine"},
    {69, end_jobs, "exception of the graphics engine"},
    {74, fail_gpu, "NVLink error"},
    {79, fail_gpu, "fallen off the bus"},
    {92, fail_gpu, "many corrected memory errors"},
    {94, end_jobs, "contained memory error"},
    {95, fail_gpu, "uncontained memory error"},
    {109, note, "a program's context switch timed out"},
    {110, fail_gpu, "security fault"},
    {119, fail_gpu, "the GPU's system processor does not answer"},
    {120, fail_gpu, "the GPU's system processor failed"},
    {136, fail_gpu, "NVLink could not be trained"},
    {140, fail_gpu, "unrecovered memory error"},
    {143, fail_gpu, "the GPU could not be initialised"},
    {144, fail_gpu, "NVLink error that needs a reset"},
    {145, fail_gpu, "NVLink error of a remote GPU"},
    {151, fail_node, "the GPU's keys were changed under it"},
    {154, note, "the recovery action of the GPU has changed"},
}};

std::string cause_of(const XidRule& rule) {
  return fmt::format("gpu-xid-{}: {}", rule.xid, rule.what);
}

constexpr std::size_t kMostLog = std::size_t{64} << 20;  // bytes; kernels keep far less

// Each read returns one record; EPIPE means that some were overwritten meanwhile.
std::string read_log(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  char record[8192];
  while (fd && text.size() < kMostLog) {
    const ssize_t n = ::read(fd.get(), record, sizeof record);
    if (n < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (n <= 0) break;
    text.append(record, static_cast<std::size_t>(n));
  }
  return text;
}

// Reads a prefix such as "6,1234,5678901,-;text": the third number is microseconds.
std::optional<Duration> time_of(std::string_view head) {
  for (int i = 0; i < 2; ++i) {
    const auto comma = head.find(',');
    if (comma == std::string_view::npos) return std::nullopt;
    head.remove_prefix(comma + 1);
  }
  std::int64_t us = 0;
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), us);
  if (error != std::errc{} || us < 0) return std::nullopt;
  return microseconds(us);
}

}  // namespace

std::span<const XidRule> xid_rules() {
  return kRules;
}

XidRule rule_of(std::uint32_t xid) {
  const auto found = std::lower_bound(kRules.begin(), kRules.end(), xid,
                                      [](const XidRule& rule, auto x) { return rule.xid < x; });
  if (found != kRules.end() && found->xid == xid) return *found;
  return {xid, fail_slice, "not known to Gantry"};
}

XidOutcome judge(const XidEvent& event, Instant now) {
  const XidRule rule = rule_of(event.xid);
  XidOutcome out;
  out.action = rule.action;
  out.fault.cause = cause_of(rule);
  out.fault.since = now;
  out.fault.gpu_instance = event.gpu_instance.value_or(0);
  switch (rule.action) {
    case note: break;
    case end_jobs: out.end_jobs = true; break;
    case fail_slice:
      out.fault.domain = event.gpu_instance ? FaultDomain::slice : FaultDomain::gpu;
      out.end_jobs = true;
      break;
    case fail_gpu:
      out.fault.domain = FaultDomain::gpu;
      out.end_jobs = true;
      break;
    case fail_node:
      out.fault.domain = FaultDomain::node;
      out.end_jobs = true;
      break;
  }
  return out;
}

std::optional<XidLine> parse_xid_line(std::string_view line) {
  constexpr std::string_view kStart = "NVRM: Xid (PCI:";
  // The start that such a line must have. Kernel messages can repeat texts from users, for example
  // an unknown option of a tmpfs that they mount in a namespace of their own.
  if (!line.starts_with(kStart)) return std::nullopt;
  line.remove_prefix(kStart.size());
  const auto end = line.find("): ");
  if (end == std::string_view::npos || end > 40) return std::nullopt;
  XidLine out;
  std::string_view place = line.substr(0, end);
  constexpr std::string_view kSlice = " GPU-I:";
  if (const auto slice = place.find(kSlice); slice != std::string_view::npos) {
    std::uint32_t instance = 0;
    const char* last = place.data() + place.size();
    const auto [to, bad] = std::from_chars(place.data() + slice + kSlice.size(), last, instance);
    if (bad != std::errc{} || to != last) return std::nullopt;
    out.gpu_instance = instance;
    place = place.substr(0, slice);
  }
  if (place.size() > 20) return std::nullopt;
  for (const char c : place) {
    const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
    const bool upper = c >= 'A' && c <= 'F';
    if (!hex && !upper) return std::nullopt;
    out.pci += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (out.pci.find('.') == std::string::npos) out.pci += ".0";
  line.remove_prefix(end + 3);
  const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), out.xid);
  if (error != std::errc{} || out.xid == 0) return std::nullopt;
  return out;
}

std::vector<LoggedXid> logged_xids(const std::string& kmsg, Duration since) {
  const std::string text = read_log(kmsg);
  std::vector<LoggedXid> out;
  for (std::string_view left = text; !left.empty();) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const auto semicolon = line.find(';');
    if (semicolon == std::string_view::npos) continue;
    const auto at = time_of(line.substr(0, semicolon));
    if (!at || *at <= since) continue;
    if (auto xid = parse_xid_line(line.substr(semicolon + 1)))
      out.push_back({*at, std::move(*xid)});
  }
  return out;
}

}  // namespace gantry::gpu
