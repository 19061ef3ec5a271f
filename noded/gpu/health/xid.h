// Xids: numbers with which the driver reports problems of a GPU, and the consequence of each. The
// facts are from NVIDIA's Xid catalogue and the lists of its Kubernetes drivers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/resources/gpu.h"

namespace gantry::gpu {

enum class XidAction : std::uint8_t {
  note = 1,        // the application's own fault, or only information: reported with the job
  end_jobs = 2,    // the jobs on the device are damaged; the GPU stays in service
  fail_slice = 3,  // takes the slice out of service if the event names one, otherwise the GPU
  fail_gpu = 4,    // takes the whole GPU out of service, whatever the event names
  fail_node = 5,   // only a reboot of the node helps
};
constexpr auto enum_names(XidAction) {
  return std::array<std::pair<XidAction, std::string_view>, 5>{
      {{XidAction::note, "note"},
       {XidAction::end_jobs, "end_jobs"},
       {XidAction::fail_slice, "fail_slice"},
       {XidAction::fail_gpu, "fail_gpu"},
       {XidAction::fail_node, "fail_node"}}};
}

struct XidRule {
  std::uint32_t xid;
  XidAction action;
  std::string_view what;  // the problem, as a clause
};
std::span<const XidRule> xid_rules();  // ascending
// The rule of this number. A number that is not in the table takes the GPU out of service.
XidRule rule_of(std::uint32_t xid);

struct XidEvent {
  std::uint32_t xid = 0;
  std::optional<std::uint32_t> gpu_instance;  // unset: the event is about the whole GPU
};

// The effect of an event: which device goes out of service (FaultDomain::none: none) and the name
// of the fault, "gpu-xid-79: fallen off the bus". `end_jobs`: the jobs on that slice, or otherwise
// on that GPU, end.
struct XidOutcome {
  XidAction action = XidAction::note;
  GpuFault fault;
  bool end_jobs = false;
};
XidOutcome judge(const XidEvent& event, Instant now);

// A line of the kernel's log, for times without events: "NVRM: Xid (PCI:0000:3b:00): 79, pid=…";
// for a slice "NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, …".
struct XidLine {
  std::string pci;  // "0000:3b:00.0"
  std::uint32_t xid = 0;
  std::optional<std::uint32_t> gpu_instance;
};
std::optional<XidLine> parse_xid_line(std::string_view line);

// Xids in the kernel's log, for the time in which no daemon received the driver's events.
struct LoggedXid {
  Duration at{};  // since the machine was booted
  XidLine line;
};

// Xids of /dev/kmsg that came after `since` (runtime::since_boot()), in their order; empty if the
// file cannot be read.
std::vector<LoggedXid> logged_xids(const std::string& kmsg, Duration since);

}  // namespace gantry::gpu
