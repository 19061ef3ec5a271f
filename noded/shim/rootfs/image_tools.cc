#include "noded/shim/rootfs/image_tools.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "noded/machine/cgroup.h"

namespace gantry::runtime {
namespace {

constexpr std::int64_t kToolMemory = std::int64_t{2} << 30;
constexpr std::int64_t kInspectMemory = std::int64_t{256} << 20;  // a manifest has at most 4 MiB
constexpr std::uint32_t kToolTasks = 512;
// Blobs, manifest, and files that skopeo makes meanwhile.
constexpr std::int64_t kIncomingFiles = 2 * kMaxLayers;
constexpr Duration kLook = milliseconds(500);  // pause between two measurements of a directory
constexpr Duration kPatience = seconds(10);

Result<void> give(const std::string& path, std::uint32_t uid, std::uint32_t gid, unsigned mode) {
  const Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir || ::fchown(dir.get(), uid, gid) != 0 || ::fchmod(dir.get(), mode) != 0)
    return fail_errno(ErrorCode::io_error, path);
  return {};
}

// Measures the size of a directory at intervals.
class SizeWatch {
 public:
  SizeWatch(const std::string& dir, const StoreLimits& limits)
      : dir_(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
        limits_(limits) {}
  bool is_over() {
    const Instant now = timer_clock();
    if (now < next_) return false;
    const auto size = tree_size(dir_.get(), limits_);
    const Instant after = timer_clock();
    next_ = after + std::max(kLook, Duration{(after - now).us * 5});
    return size.bytes > limits_.image_bytes || size.files > limits_.image_files;
  }

 private:
  Fd dir_;
  StoreLimits limits_;
  Instant next_{};
};

std::string cgroup_of(const Slot& slot) {
  return "image_" + std::to_string(slot.number);
}

bool is_in_registry(const std::string& source) {
  return source.starts_with("docker://");
}

bool is_archive(const std::string& source) {
  return source.starts_with("oci-archive:") || source.starts_with("docker-archive:");
}

bool says_one_of(const std::string& output, std::initializer_list<int> errors) {
  const auto lower = [](std::string text) {
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
  };
  const auto said = lower(output);
  return std::ranges::any_of(errors, [&](int error) {
    return said.find(lower(std::strerror(error))) != std::string::npos;
  });
}

// Whether the program failed because of the image. The image is not the cause if the node has no
// space or memory, if a file server is gone, or if a registry does not answer.
bool is_fault_of_image(const HelperEnd& end, bool reads_network) {
  if (!end.stopped.empty() || end.status == 0) return false;
  if (says_one_of(end.output, {EFBIG}) || end.output.find("SIGXFSZ") != std::string::npos)
    return true;
  return !reads_network && WIFEXITED(end.status) &&
         !says_one_of(end.output, {ENOSPC, EDQUOT, EIO, ESTALE, ENOTCONN, ETIMEDOUT, EROFS, ENOMEM,
                                   EAGAIN, EMFILE, ENFILE});
}

// The cgroup of a program; it exists as long as this object.
class ToolCgroup {
 public:
  ToolCgroup(const NodeSetup& setup, std::string name)
      : layout_(setup.cgroups), name_(std::move(name)) {}
  ToolCgroup(const ToolCgroup&) = delete;
  ToolCgroup& operator=(const ToolCgroup&) = delete;
  ~ToolCgroup() {
    if (layout_.version == 0 || remove_cgroup(layout_, name_, Duration{})) return;
    kill_cgroup(layout_, name_, kPatience);
    remove_cgroup(layout_, name_, kPatience);
  }
  Result<void> enter(ChildSpec& spec, std::int64_t memory) {
    if (layout_.version == 0) return {};
    CgroupLimits limits;
    limits.memory = memory;
    limits.pids = kToolTasks;
    if (auto r = create_cgroup(layout_, name_, limits); !r)
      return fail(ErrorCode::runtime_failed, "cgroup " + r.error().message);
    entries_ = open_cgroup_entries(layout_, name_);
    directory_ = open_cgroup_directory(layout_, name_);
    spec.cgroup = &entries_;
    spec.cgroup_directory = directory_.get();
    return {};
  }

 private:
  const CgroupLayout& layout_;
  std::string name_;
  std::vector<Fd> entries_;
  Fd directory_;
};

std::string too_large(const StoreLimits& limits) {
  return "it is larger than images may be here: " + std::to_string(limits.image_bytes) +
         " bytes, " + std::to_string(limits.image_files) + " files";
}

void limit_files(ChildSpec& spec, const StoreLimits& limits) {
  spec.limits = {{RLIMIT_FSIZE, static_cast<std::uint64_t>(limits.image_bytes)},
                 {RLIMIT_CORE, 0},
                 {RLIMIT_NOFILE, 4096}};
}

}  // namespace

ImageStore store_of(const NodeSetup& setup) {
  return {setup.image_cache_dir, {setup.image_cache_size, setup.image_size, setup.image_files}};
}

Result<Slot> prepare_slot(const Shim& shim, const ImageStore& store, const Stopped& stopped) {
  auto slot = store.take_slot(stopped);
  if (!slot) return slot;
  for (const char* name : {"/layout", "/out"})
    if (::mkdir((slot->dir + name).c_str(), 0700) != 0)
      return fail_errno(ErrorCode::io_error, slot->dir + name);
  if (shim.setup.rootless) return slot;
  TRY(give(slot->dir + "/layout", 0, slot->uid(), 0750));
  TRY(give(slot->dir + "/out", slot->uid(), slot->uid(), 0700));
  return slot;
}

Result<Fd> make_incoming(const Shim& shim, const Slot& slot) {
  const auto& owner = shim.request.owner;
  const std::string dir = slot.dir + "/incoming", temporary = dir + "/tmp";
  for (const auto& path : {dir, temporary})
    if (::mkdir(path.c_str(), 0700) != 0) return fail_errno(ErrorCode::io_error, path);
  Fd fd(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorCode::io_error, dir);
  if (shim.setup.rootless) return fd;
  for (const auto& path :
       {temporary, dir})  // the outer one last, because it gives access to the other
    TRY(give(path, owner.uid.value(), owner.gid.value(), 0700));
  return fd;
}

Result<Fd> new_file(const Slot& slot, const std::string& path) {
  std::string at = slot.dir + "/layout";
  const auto parts = split(path, '/');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    at += "/" + parts[i];
    if (::mkdir(at.c_str(), 0755) != 0 && errno != EEXIST)
      return fail_errno(ErrorCode::io_error, at);
  }
  at += "/" + parts.back();
  Fd fd(::open(at.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return fail_errno(ErrorCode::io_error, at);
  return fd;
}

ImageTools::ImageTools(const Shim& shim, Signals& signals)
    : shim_(shim), signals_(signals), deadline_(timer_clock() + shim.setup.image_timeout) {}

std::string ImageTools::stopped() {
  for (int s = signals_.next(); s != 0; s = signals_.next())
    if (s == SIGTERM) told_to_end_ = true;
  if (told_to_end_) return "ended by order";
  return deadline_ < timer_clock() ? "over its time" : "";
}

ChildSpec ImageTools::skopeo(const ImageStore& store, const std::string& temporary) const {
  const auto& owner = shim_.request.owner;
  ChildSpec spec;
  // TMPDIR alone is not enough: skopeo still unpacks archives below /var/tmp.
  spec.argv = {"/usr/bin/skopeo", "--policy", store.policy(), "--override-os",
               "linux",           "--tmpdir", temporary};
  spec.env = {"PATH=/usr/bin:/bin", "HOME=" + owner.home, "TMPDIR=" + temporary,
              "XDG_RUNTIME_DIR=/run/user/" + std::to_string(owner.uid.value())};
  limit_files(spec, store.limits());
  if (shim_.setup.rootless) return spec;
  spec.uid = owner.uid.value();
  spec.gid = owner.gid.value();
  for (const auto g : owner.groups) spec.groups.push_back(g.value());
  return spec;
}

Result<void> ImageTools::run(ChildSpec spec, const Bounds& bounds,
                             const std::function<std::string()>& also_stopped) {
  if (const auto why = stopped(); !why.empty()) return fail(ErrorCode::runtime_failed, why);
  ToolCgroup entered(shim_.setup, bounds.cgroup);
  TRY(entered.enter(spec, bounds.memory));
  spec.goes_first = true;
  if (!shim_.setup.rootless) {
    spec.namespaces |= CLONE_NEWNS;
    spec.read_only = true;
    spec.writable = bounds.writable;
  }
  const std::string name = spec.argv[0];
  ASSIGN(end, run_to_end(std::move(spec), signals_, shim_.setup.image_timeout, [&] {
           const auto why = also_stopped ? also_stopped() : std::string();
           return why.empty() ? stopped() : why;
         }));
  told_to_end_ = told_to_end_ || end->by_order;  // then no other program is started
  if (end->status != 0 && read_oom_kills(shim_.setup.cgroups, bounds.cgroup) > 0)
    return fail(
        ErrorCode::invalid_argument,
        name + ": needs more than " + std::to_string(bounds.memory) + " bytes of memory for it");
  const bool by_image = is_fault_of_image(*end, bounds.reads_network);
  const auto said = said_of(name, std::move(*end));
  if (said) return {};
  return fail(by_image ? ErrorCode::invalid_argument : said.error().code, said.error().message);
}

Result<std::string> ImageTools::manifest_of(const std::string& source, const ImageStore::Turn& turn,
                                            const ImageStore& store) {
  auto spec = skopeo(store, "/nonexistent");
  spec.argv.insert(spec.argv.end(), {"inspect", "--raw", "--retry-times", "2"});
  if (is_on_loopback(source)) spec.argv.emplace_back("--tls-verify=false");
  spec.argv.insert(spec.argv.end(), {"--", source});
  for (auto& limit : spec.limits)
    if (limit.what == RLIMIT_FSIZE) limit.most = kMaxImageJson;
  const Fd said(::memfd_create("manifest", MFD_CLOEXEC));
  if (!said) return fail_errno(ErrorCode::runtime_failed, "memfd");
  spec.out = said.get();
  const std::string user = std::to_string(shim_.request.owner.uid.value());
  const std::string cgroup = "image_of_" + user + "_" + std::to_string(turn.number);
  TRY(run(std::move(spec), {cgroup, kInspectMemory, "", true}));
  struct stat st {};
  if (::fstat(said.get(), &st) != 0) return fail_errno(ErrorCode::io_error, "manifest");
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  if (::pread(said.get(), text.data(), text.size(), 0) != st.st_size)
    return fail_errno(ErrorCode::io_error, "manifest");
  return text;
}

// The result is not verified yet; the store also needs a proof.
std::optional<std::string> ImageTools::inspect(const std::string& source,
                                               const ImageStore::Turn& turn,
                                               const ImageStore& store) {
  auto text = manifest_of(source, turn, store);
  if (!text) return std::nullopt;
  const auto chosen = platform_manifest(*text, this_architecture());
  if (!chosen) return std::nullopt;
  if (!chosen->empty()) {
    const auto slash = source.rfind('/');
    const auto end = std::min(source.find_first_of(":@", slash), source.size());
    text = manifest_of(source.substr(0, end) + "@sha256:" + *chosen, turn, store);
    if (!text) return std::nullopt;
  }
  const auto manifest = parse_manifest(*text);
  if (!manifest) return std::nullopt;
  return key_of(*manifest);
}

Result<void> ImageTools::copy(const std::string& source, const Slot& slot,
                              const ImageStore& store) {
  const std::string dir = slot.dir + "/incoming";
  auto spec = skopeo(store, dir + "/tmp");
  spec.argv.insert(spec.argv.end(),
                   {"copy", "--quiet", "--preserve-digests", "--retry-times", "2"});
  if (is_on_loopback(source)) spec.argv.emplace_back("--src-tls-verify=false");
  spec.argv.insert(spec.argv.end(), {"--", source, "dir:" + dir + "/image"});
  StoreLimits limits = store.limits();
  limits.image_files = kIncomingFiles;
  // An archive is stored there as a whole, and again as layers.
  if (is_archive(source)) limits.image_bytes *= 2;
  // Root measures the directory itself: a process with the user's ids could be stopped by the user,
  // and would then never report that the copy is too large.
  SizeWatch size(dir, limits);
  bool over = false;
  const Bounds bounds{cgroup_of(slot), kToolMemory, dir, is_in_registry(source)};
  const auto done = run(std::move(spec), bounds, [&] {
    over = over || size.is_over();
    return over ? too_large(limits) : std::string();
  });
  if (over) return fail(ErrorCode::invalid_argument, too_large(store.limits()));
  return done;
}

Result<void> ImageTools::unpack(std::vector<std::string> argv, const Slot& slot,
                                const StoreLimits& limits) {
  ChildSpec spec;
  spec.argv = std::move(argv);
  spec.env = {"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + slot.dir + "/out"};
  spec.cwd = slot.dir;
  limit_files(spec, limits);
  if (!shim_.setup.rootless) {
    spec.uid = spec.gid = slot.uid();
    spec.namespaces = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
  }
  SizeWatch size(slot.dir + "/out", limits);
  bool over = false;
  const Bounds bounds{cgroup_of(slot), kToolMemory, slot.dir + "/out", false};
  const auto done = run(std::move(spec), bounds, [&] {
    over = over || size.is_over();
    return over ? too_large(limits) : std::string();
  });
  if (over) return fail(ErrorCode::invalid_argument, too_large(limits));
  return done;
}

Result<void> ImageTools::unpack_layers(const Slot& slot, const StoreLimits& limits) {
  return unpack({"/usr/bin/umoci", "raw", "unpack", "--rootless", "--image",
                 slot.dir + "/layout:image", slot.dir + "/out/tree"},
                slot, limits);
}

Result<void> ImageTools::unpack_squashfs(const Slot& slot, const StoreLimits& limits) {
  return unpack(
      {"/usr/bin/unsquashfs", "-no-progress", "-quiet", "-no-xattrs", "-no-exit-code",
       "-processors", "2", "-dest", slot.dir + "/out/tree", slot.dir + "/layout/" + kSquashfsFile},
      slot, limits);
}

}  // namespace gantry::runtime
