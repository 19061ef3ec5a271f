// The device filters of jobs, for both versions of cgroups: the end of cgroup.h.
#include "noded/machine/cgroup.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "noded/machine/files.h"

namespace gantry::runtime {
namespace {

struct Device {
  int major;
  int minor;  // minor number; -1 = all
  std::uint32_t access =
      BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;  // allowed access, bits of BPF_DEVCG_ACC_*
};
// null, zero, full, random and urandom, then tty, ptmx, pts/*
constexpr std::array<Device, 8> kAllowed{
    {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}, {136, -1}}};

template <class Allow>
Result<void> allow_majors(const std::vector<std::uint32_t>& majors, Allow&& allow) {
  for (const std::uint32_t major : majors) TRY(allow("c " + std::to_string(major) + ":* rw"));
  return {};
}

Result<void> install_v1(const CgroupMount& mount, const std::vector<std::uint32_t>& majors) {
  const auto allow = [&](const std::string& rule) {
    return write_existing(mount.path + "/devices.allow", rule);
  };
  // When jobs run below it, the list cannot be replaced, and need not be; it can only grow.
  const auto list = read_file(mount.path + "/devices.list");
  if (list && !list->starts_with("a")) return allow_majors(majors, allow);
  TRY(write_existing(mount.path + "/devices.deny", "a"));
  for (const char* rule : {"c *:* m", "b *:* m"})
    TRY(write_existing(mount.path + "/devices.allow", rule));
  for (const auto& d : kAllowed) {
    const std::string minor = d.minor < 0 ? "*" : std::to_string(d.minor);
    TRY(allow("c " + std::to_string(d.major) + ":" + minor + " rwm"));
  }
  return allow_majors(majors, allow);
}

// A new directory starts with a copy of its parent's list.
Result<void> install_job_v1(const std::string& dir, const std::vector<std::uint32_t>& majors,
                            const std::vector<DeviceRule>& devices) {
  for (const std::uint32_t major : majors)
    TRY(write_existing(dir + "/devices.deny", "c " + std::to_string(major) + ":* rw"));
  for (const DeviceRule& d : devices)
    if (auto r = write_existing(dir + "/devices.allow",
                                fmt::format("c {}:{} {}", d.major, d.minor, d.access));
        !r)
      return r;
  return {};
}

bpf_insn op(std::uint8_t code, std::uint8_t dst, std::uint8_t src, std::int16_t off,
            std::int32_t imm) {
  bpf_insn i{};
  i.code = code;
  i.dst_reg = dst & 0xf;
  i.src_reg = src & 0xf;
  i.off = off;
  i.imm = imm;
  return i;
}

// In the program r2 = type, r3 = access, r4 = major, r5 = minor; it returns 1 for an allowed
// access.
std::vector<bpf_insn> program(const std::vector<Device>& allowed) {
  constexpr std::uint8_t kLoad = BPF_LDX | BPF_MEM | BPF_W;
  std::vector<bpf_insn> p{
      op(kLoad, 2, 1, 0, 0),  // access_type
      op(BPF_ALU | BPF_MOV | BPF_X, 3, 2, 0, 0),
      op(BPF_ALU | BPF_AND | BPF_K, 2, 0, 0, 0xffff),
      op(BPF_ALU | BPF_RSH | BPF_K, 3, 0, 0, 16),
      op(kLoad, 4, 1, 4, 0),
      op(kLoad, 5, 1, 8, 0),
      op(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1),
      op(BPF_JMP | BPF_JNE | BPF_K, 3, 0, 1, BPF_DEVCG_ACC_MKNOD),  // mknod alone is allowed
      op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
      op(BPF_JMP | BPF_JNE | BPF_K, 2, 0, 0, BPF_DEVCG_DEV_CHAR),  // the offset is set below
  };
  const std::size_t type_check = p.size() - 1;
  constexpr auto kBoth = BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;
  for (const auto& d : allowed) {
    const auto skip =
        static_cast<std::int16_t>((d.minor < 0 ? 0 : 1) + (d.access == kBoth ? 0 : 1));
    p.push_back(op(BPF_JMP | BPF_JNE | BPF_K, 4, 0, static_cast<std::int16_t>(skip + 1), d.major));
    if (d.minor >= 0)
      p.push_back(op(BPF_JMP | BPF_JNE | BPF_K, 5, 0, d.access == kBoth ? 1 : 2, d.minor));
    if (d.access != kBoth)  // refuses access beyond the rule
      p.push_back(
          op(BPF_JMP | BPF_JSET | BPF_K, 3, 0, 1, static_cast<std::int32_t>(~d.access & 7)));
    p.push_back(op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  }
  p[type_check].off = static_cast<std::int16_t>(p.size() - type_check - 1);
  p.push_back(op(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0));
  p.push_back(op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return p;
}

// The program returns 0 for each of these devices, and 1 for all others, which the job's program
// decides.
std::vector<bpf_insn> closing_program(const std::vector<DeviceRule>& closed) {
  constexpr std::uint8_t kLoad = BPF_LDX | BPF_MEM | BPF_W;
  std::vector<bpf_insn> p{
      op(kLoad, 4, 1, 4, 0),  // major
      op(kLoad, 5, 1, 8, 0),  // minor
      op(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
  };
  for (const DeviceRule& d : closed) {
    p.push_back(op(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 2, static_cast<std::int32_t>(d.major)));
    p.push_back(op(BPF_JMP | BPF_JNE | BPF_K, 5, 0, 1, static_cast<std::int32_t>(d.minor)));
    p.push_back(op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  }
  p.push_back(op(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 1));
  p.push_back(op(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return p;
}

long bpf(int command, bpf_attr& attr) {
  return ::syscall(SYS_bpf, command, &attr, sizeof attr);
}

struct Programs {
  std::array<std::uint32_t, 64> ids{};
  std::uint32_t count = 0;
};

// The programs that an earlier noded attached to this directory.
Programs attached_to(int cgroup) {
  Programs found;
  bpf_attr query{};
  query.query.target_fd = static_cast<std::uint32_t>(cgroup);
  query.query.attach_type = BPF_CGROUP_DEVICE;
  query.query.prog_ids = reinterpret_cast<std::uint64_t>(found.ids.data());
  query.query.prog_cnt = static_cast<std::uint32_t>(found.ids.size());
  if (bpf(BPF_PROG_QUERY, query) == 0) found.count = query.query.prog_cnt;
  return found;
}

void detach(int cgroup, const Programs& programs) {
  for (std::uint32_t i = 0; i < programs.count && i < programs.ids.size(); ++i) {
    bpf_attr get{};
    get.prog_id = programs.ids[i];
    const Fd fd(static_cast<int>(bpf(BPF_PROG_GET_FD_BY_ID, get)));
    if (!fd) continue;
    bpf_attr detach{};
    detach.target_fd = static_cast<std::uint32_t>(cgroup);
    detach.attach_bpf_fd = static_cast<std::uint32_t>(fd.get());
    detach.attach_type = BPF_CGROUP_DEVICE;
    bpf(BPF_PROG_DETACH, detach);
  }
}

Result<void> install_v2(const std::string& dir, const std::vector<bpf_insn>& code) {
  const Fd cgroup(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!cgroup) return fail_errno(ErrorCode::io_error, dir);
  static constexpr char kLicense[] = "Apache-2.0";
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<std::uint64_t>(code.data());
  load.insn_cnt = static_cast<std::uint32_t>(code.size());
  load.license = reinterpret_cast<std::uint64_t>(kLicense);
  const Fd prog(static_cast<int>(bpf(BPF_PROG_LOAD, load)));
  if (!prog) return fail_errno(ErrorCode::unsupported, "device filter (eBPF)");
  const auto old = attached_to(cgroup.get());
  bpf_attr attach{};
  attach.target_fd = static_cast<std::uint32_t>(cgroup.get());
  attach.attach_bpf_fd = static_cast<std::uint32_t>(prog.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (bpf(BPF_PROG_ATTACH, attach) != 0)
    return fail_errno(ErrorCode::unsupported, "device filter (eBPF)");
  detach(cgroup.get(), old);
  return {};
}

}  // namespace

Result<void> install_device_filter(const CgroupLayout& layout) {
  if (layout.version == 2) {
    std::vector<Device> allowed(kAllowed.begin(), kAllowed.end());
    for (const std::uint32_t major : layout.device_majors)
      allowed.push_back({static_cast<int>(major), -1});
    return install_v2(layout.mounts.front().path, program(allowed));
  }
  if (const auto* mount = layout.with("devices"); mount != nullptr)
    return install_v1(*mount, layout.device_majors);
  return fail(ErrorCode::unsupported, "no devices controller may be written");
}

Result<void> install_job_device_filter(const CgroupLayout& layout, const std::string& name,
                                       const std::vector<DeviceRule>& devices) {
  if (layout.device_majors.empty()) return {};
  if (layout.version != 2) {
    const auto* mount = layout.with("devices");
    if (mount == nullptr) return fail(ErrorCode::unsupported, "no devices controller");
    return install_job_v1(mount->path + "/" + name, layout.device_majors, devices);
  }
  std::vector<Device> allowed(kAllowed.begin(), kAllowed.end());
  for (const DeviceRule& d : devices) {
    std::uint32_t access = 0;
    if (d.access.find('r') != std::string::npos) access |= BPF_DEVCG_ACC_READ;
    if (d.access.find('w') != std::string::npos) access |= BPF_DEVCG_ACC_WRITE;
    allowed.push_back({static_cast<int>(d.major), static_cast<int>(d.minor), access});
  }
  return install_v2(layout.mounts.front().path + "/" + name, program(allowed));
}

Result<void> close_devices(const CgroupLayout& layout, const std::string& name,
                           const std::vector<DeviceRule>& devices) {
  if (layout.version == 2)
    return install_v2(layout.mounts.front().path + "/" + name, closing_program(devices));
  const auto* mount = layout.with("devices");
  if (mount == nullptr) return fail(ErrorCode::unsupported, "no devices controller");
  // The kernel removes a rule from a list only if it is written exactly as in the list.
  for (const DeviceRule& d : devices)
    if (auto r = write_existing(mount->path + "/" + name + "/devices.deny",
                                fmt::format("c {}:{} rw", d.major, d.minor));
        !r)
      return r;
  return {};
}

bool has_device_rules(const CgroupLayout& layout) {
  return !layout.device_majors.empty() &&
         (layout.version == 2 || (layout.version == 1 && layout.with("devices") != nullptr));
}

void allow_for_runc(const CgroupLayout& layout) {
  if (const auto* mount = layout.with("devices"); layout.version == 1 && mount != nullptr)
    try_write(mount->path + "/devices.allow", "c 10:200 rwm");
}

}  // namespace gantry::runtime
